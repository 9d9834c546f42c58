"""Models that need no training, in place of one that was trained: taken where they forecast held-out data better."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from lamperti._text import counted
from lamperti._typing import Float
from lamperti.config import Config, ModelConfig
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.free_running import SHAKE
from lamperti.data.holding import Judged
from lamperti.data.regressed import DelayCoordinates, delay_coordinates
from lamperti.data.starts import linear_law
from lamperti.data.windows import interpolate
from lamperti.forecasting import draw_drifts, emit, pick, roll_out
from lamperti.model import LatentSDE
from lamperti.prepared import PreparedData
from lamperti.train.bounded import bounded
from lamperti.train.build import (
    LINEAR_KERNEL,
    closed_form_model,
    linear_config,
    regressed_config,
    regressed_model,
)
from lamperti.train.compare import compare_forecasts
from lamperti.train.loop import Progress
from lamperti.train.noise_scale import rescale_noise

_SHAKES = (SHAKE, 2 * SHAKE, 4 * SHAKE)
_TWICE, _NEAR = 2.0, 0.1  # of the distance of halves of the data, and sds
_PATHS, _STEPS, _QUANTILES = 16, 2_000, 200
_NOTICED = 0.02  # share of the CRPS by which another model must be better to be kept


class Found(NamedTuple):
    """A model with its configuration, and how its dimension was chosen."""

    model: LatentSDE
    config: Config
    dimensions: DimensionCurve | None


def or_regressed(walk: PreparedData, found: Found, progress: Progress | None) -> Found:
    """The model that was found, or one with a regressed drift that forecasts held-out data clearly better."""
    tell(progress, "comparing with a regressed drift")
    arrays = [interpolate(track) for track in walk.training]
    coordinates = delay_coordinates(arrays)
    if coordinates is None:
        return found
    chosen = regressed_config(walk.config.model, coordinates.delays, arrays)
    config = Config(chosen, walk.config.fit)
    model = rescaled(walk, that_stays(walk, chosen, coordinates))
    kind = f"whose state is read off a window of {counted(coordinates.window, 'sample')}, with a regressed drift"
    return _better(walk, found, model, config, coordinates.curve, kind, walk.judged, progress)


def or_linear(walk: PreparedData, found: Found, progress: Progress | None) -> Found:
    """The model that was found, or a linear one in closed form that forecasts held-out data clearly better."""
    tell(progress, "comparing with a linear model")
    law = linear_law([interpolate(track) for track in walk.training], trending=walk.trending)
    if law is None:
        return found
    config = Config(linear_config(walk.config.model, law), walk.config.fit)
    linear = rescaled(walk, closed_form_model(config.model, law, walk.training, seed=walk.config.fit.seed))
    # Two linear models have so few coefficients that the data they were fitted to can tell them apart as well.
    both = found.config.model.kernel == LINEAR_KERNEL
    judged = [*walk.judged, *map(Judged, walk.training)] if both else walk.judged
    kind = f"of a linear model, an autoregression on {counted(law.window, 'sample')}"
    return _better(walk, found, linear, config, law.curve, kind, judged, progress)


def _better(
    walk: PreparedData,
    found: Found,
    other: LatentSDE,
    config: Config,
    curve: tuple[tuple[int, float, float], ...],
    kind: str,
    judged: Sequence[Judged],
    progress: Progress | None,
) -> Found:
    """The other model in place of the one that was found, if it forecasts clearly better; and why."""
    models = (bounded_of(walk, found.model), bounded_of(walk, other))
    gain = compare_forecasts(*models, judged, seed=walk.config.fit.seed)
    if gain is None or not gain.clearly(_NOTICED):
        return found
    reason = (
        f"{counted(other.latent_dim, 'latent coordinate')} {kind}: its forecasts of held-out data have a CRPS that is "
        f"{gain.share:.0%} lower than those of the model of {counted(found.model.latent_dim, 'coordinate')} that was "
        "found before."
    )
    tell(progress, reason, stays=True)
    return Found(other, config, DimensionCurve(other.latent_dim, curve, reason))


def that_stays(walk: PreparedData, config: ModelConfig, coordinates: DelayCoordinates) -> LatentSDE:
    """A model with a drift that is regressed on states shaken as little as may be for its free runs to have the values
    of the data: no further from them than the halves of the data are from each other, twice. Else the nearest.

    Less is more exact one step ahead. Of a clean signal, though, the data is a thin sheet in the state space, and
    nothing but shaken states says what brings a path back to it (docs/adr/0033)."""
    seed = walk.config.fit.seed
    y = np.concatenate([interpolate(track) for track in walk.training])
    near = max(_TWICE * _apart(y[: len(y) // 2], y[len(y) // 2 :]), _NEAR)
    tried = []
    for shake in _SHAKES:
        model = regressed_model(config, coordinates, walk.training, seed=seed, shake=shake)
        apart = _apart(_free_values(bounded_of(walk, model), seed), y) if walk.config.model.bounded else 0.0
        if apart <= near:
            return model
        tried.append((apart, shake, model))
    return min(tried, key=lambda one: one[:2])[2]


def _free_values(model: LatentSDE, seed: int) -> Float[np.ndarray, "n P"]:
    """What is seen of paths that run freely from states that the data went through, in sds of the data."""
    key_start, key_drift, key_roll, key_emit = jax.random.split(jax.random.key(seed), 4)
    Z = model.dynamics.Z
    start = Z[pick(len(Z), _PATHS, key=key_start)]
    draws = draw_drifts(model, n=_PATHS, uncertain=True, key=key_drift)
    states = roll_out(draws, start, n_steps=_STEPS, key=key_roll)
    y = np.asarray(emit(model, states, noise=True, key=key_emit))
    return np.nan_to_num(y.reshape(-1, y.shape[2]), nan=np.inf)


def _apart(a: Float[np.ndarray, "n P"], b: Float[np.ndarray, "m P"]) -> float:
    """How far the values of two samples are apart, in sds: the Wasserstein distance, averaged over channels."""
    at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    apart = float(np.abs(np.quantile(a, at, axis=0) - np.quantile(b, at, axis=0)).mean())
    return apart if np.isfinite(apart) else np.inf


def rescaled(walk: PreparedData, model: LatentSDE) -> LatentSDE:
    """A model in closed form with the noise that its forecasts of the training part ask for."""
    near = bounded_of(walk, model)
    scaled = rescale_noise(near, walk.to_forecast(model.encoder.lead), seed=walk.config.fit.seed)
    return model if scaled is near else scaled


def bounded_of(walk: PreparedData, model: LatentSDE) -> LatentSDE:
    """The model that stays near its data, where the data has a law that stays."""
    if not walk.config.model.bounded:
        return model
    return bounded(model, walk.batch(model.encoder.lead), walk.scaler.most_room)


def tell(progress: Progress | None, stage: str, *, stays: bool = False) -> None:
    tell = getattr(progress, "stage", None)
    tell = getattr(progress, "tell", tell) if stays else tell
    if callable(tell):
        tell(stage)
