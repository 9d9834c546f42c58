"""The public functions: read top to bottom, they are the walk of the data.

fit, resume, build: in `lamperti.fitting`.  forecast: check -> scale -> filter -> roll -> emit -> unscale.
"""

import warnings
from typing import Any

import jax
import numpy as np

from lamperti._compile import to_jax
from lamperti._errors import ConfigError, LampertiWarning, SeriesError
from lamperti._numbers import as_count, as_flag, as_seed
from lamperti._runtime import refuse_fork
from lamperti.data.bridging import pieces
from lamperti.data.matching import match_channels, warn_if_far, warn_if_starved
from lamperti.data.series import Series, as_series_list
from lamperti.data.windows import Batch, Track, whole
from lamperti.fitting import build, fit, resume
from lamperti.forecasting import Start, draw_drifts, emit, encode_context, filter_context, pick, roll_out, smooth
from lamperti.model import Segment
from lamperti.results import Embedding, FitResult, Forecast, Simulation
from lamperti.train.loop import part
from lamperti.train.memory import check_memory, filter_bytes, path_bytes, smoother_bytes

__all__ = ["build", "embed", "fit", "forecast", "resume", "simulate"]

_BUCKET = 64  # series are padded to multiples of this, so that few lengths are compiled
_FAR = 10.0  # sds of the states of the data, from their mean: nothing was learned there
_MAX_CONTEXT = 512  # samples of context that a forecast's filter runs over


def embed(result: FitResult, series: Any) -> Embedding:
    """The state at every sample of a series, given all of the series: mean [T, D] and covariance [T, D, D]."""
    _check_fitted(result)
    one = _matching(result, series)
    parts = pieces(one, result.scaler)
    m = result.config.model
    if m.smoother == "particle":
        longest = max(len(track.y) for track, _ in parts)
        needed = smoother_bytes(n_particles=m.n_particles, length=longest, **_sizes(result))
        check_memory(needed, "the states of the series", "series, or a model with a smaller n_particles")
    means, covs = [], []
    for track, rows in parts:
        padded = whole(*track, result.model.encoder.lead, _BUCKET)
        marginals = smooth(result.model, part(padded), key=jax.random.key(0))
        means.append(np.asarray(marginals.mean)[rows])
        covs.append(np.asarray(marginals.cov)[rows])
    return Embedding(np.concatenate(means), np.concatenate(covs), one.times, one.time_unit)


def forecast(
    result: FitResult,
    series: Any,
    *,
    horizon: int = 200,
    n_samples: int = 256,
    seed: int = 0,
    observation_noise: bool = True,
    drift_uncertainty: bool = True,
    start: Start = "filter",
    n_particles: int = 1000,
) -> Forecast:
    """Sampled futures of a series, ``horizon`` steps of the training data's median step ahead.

    Each path has one drift function and one diffusion, drawn from the posterior (or their mean).
    start: "filter" runs the learned model over the context; "encoder" takes the encoder's last state (the paper).
    """
    _check_fitted(result)
    horizon, n_samples = as_count("horizon", horizon), as_count("n_samples", n_samples)
    noise, uncertain = _flags(observation_noise, drift_uncertainty)
    n_particles = max(as_count("n_particles", n_particles), n_samples)
    _check_room(result, n_samples, horizon, "the forecast", "horizon or n_samples")
    check_memory(filter_bytes(n_particles=n_particles, **_sizes(result)), "the filter", "n_particles or n_samples")
    one = _matching(result, series)
    context = _context(pieces(one, result.scaler)[-1].track, result.model.encoder.lead)
    key_start, key_drift, key_roll, key_emit = jax.random.split(_random_key(seed), 4)
    if start == "filter":
        begin = filter_context(result.model, context, n_samples=n_samples, n_particles=n_particles, key=key_start)
    elif start == "encoder":
        begin = encode_context(result.model, context, n_samples=n_samples, key=key_start)
    else:
        raise ConfigError(f"start must be 'filter' or 'encoder'; got {start!r}.")
    warn_if_starved(float(begin.least_ess))
    draws = draw_drifts(result.model, n=n_samples, uncertain=uncertain, key=key_drift)
    states = roll_out(draws, begin.x, n_steps=horizon, key=key_roll)
    y = emit(result.model, states, noise=noise, key=key_emit)
    times = result.scaler.times_after(float(one.times[-1]), horizon, one.time_unit)
    samples = result.scaler.unscale_values(np.asarray(y))
    _warn_of_runaways(samples)
    least = float(begin.least_ess)
    return Forecast(samples, np.asarray(states), times, result.names, least, result.units, one.time_unit)


def simulate(
    result: FitResult,
    *,
    n_steps: int = 1000,
    n_paths: int = 4,
    seed: int = 0,
    start: Any = None,
    observation_noise: bool = True,
    drift_uncertainty: bool = True,
    since_start: bool = False,
) -> Simulation:
    """Free-running paths. ``start``: latent states [D] or [n_paths, D]; by default states the data went through.

    A model that was trained with dates gives dates, from the step after the last of them on; with ``since_start``,
    times from the start of the path, in ``result.step_unit``, as models trained without dates do.
    """
    _check_fitted(result)
    n_steps, n_paths = as_count("n_steps", n_steps), as_count("n_paths", n_paths)
    noise, uncertain = _flags(observation_noise, drift_uncertainty)
    _check_room(result, n_paths, n_steps, "the simulation", "n_steps or n_paths")
    key_start, key_drift, key_roll, key_emit = jax.random.split(_random_key(seed), 4)
    x = _start_states(result, start, n_paths, key_start)
    draws = draw_drifts(result.model, n=n_paths, uncertain=uncertain, key=key_drift)
    states = roll_out(draws, x, n_steps=n_steps, key=key_roll)
    y = emit(result.model, states, noise=noise, key=key_emit)
    end, unit = result.scaler.end, result.time_unit
    if end is None or as_flag("since_start", since_start):
        times, unit = result.step * np.arange(1, n_steps + 1), result.step_unit
    else:
        times = result.scaler.times_after(end, n_steps, unit)
    samples = result.scaler.unscale_values(np.asarray(y))
    _warn_of_runaways(samples)
    return Simulation(samples, np.asarray(states), times, result.names, result.units, unit)


def _flags(observation_noise: Any, drift_uncertainty: Any) -> tuple[bool, bool]:
    return as_flag("observation_noise", observation_noise), as_flag("drift_uncertainty", drift_uncertainty)


def _warn_of_runaways(samples: np.ndarray) -> None:
    lost = int((~np.isfinite(samples).all(axis=(1, 2))).sum())
    if lost:
        warnings.warn(
            "paths left the range of numbers: where the learned motion has seen no data, it runs away. Look fewer "
            "steps ahead, train longer, or take a trend out of the data before training "
            f"({lost} of {len(samples)} paths).",
            LampertiWarning,
            stacklevel=3,
        )


def _matching(result: FitResult, data: Any) -> Series:
    """The one series given, with the channels the model was trained on, in its order."""
    series = as_series_list(data)
    if len(series) != 1:
        raise SeriesError(
            f"one series is needed here; got {len(series)}. Call once for each; one recording of several channels, "
            "[T, P], goes in as lamperti.Series(array)."
        )
    one = match_channels(series[0], result.names)
    warn_if_far(one, result.scaler)
    return one


def _context(track: Track, lead: int) -> Segment:
    """The end of a series as one segment: with a real lead where the series is long enough, a made-up one else."""
    y, mask, dt = (a[-(_MAX_CONTEXT + lead) :] for a in track)
    dt = dt[-(len(y) - 1) :]
    if len(y) <= 2 * lead:
        return part(whole(y, mask, dt, lead, _BUCKET))
    padded = whole(y[lead:], mask[lead:], dt[lead:], 0, _BUCKET)
    real = Batch(
        np.concatenate([Track(y, mask, dt).y[None, :lead], padded.y], axis=1),
        np.concatenate([mask[None, :lead], padded.mask], axis=1),
        np.concatenate([dt[None, :lead], padded.dt], axis=1),
        np.concatenate([np.ones((1, lead), bool), padded.link], axis=1),
    )
    return part(real)


def _start_states(result: FitResult, start: Any, n_paths: int, key) -> jax.Array:
    if start is None:
        return to_jax(result.states[np.asarray(pick(len(result.states), n_paths, key=key))])
    d = result.model.latent_dim
    wanted = f"start must be finite states [{d}] or [{n_paths}, {d}]"
    try:
        x = np.atleast_2d(np.asarray(start, dtype=float))
    except (TypeError, ValueError):
        got = f"a {type(start).__name__}"
        raise SeriesError(f"{wanted}; got {got}. States of a series: lamperti.embed(result, series).mean.") from None
    if x.ndim != 2 or x.shape[1] != d or x.shape[0] not in (1, n_paths) or not np.isfinite(x).all():
        raise SeriesError(f"{wanted}; got shape {np.shape(start)}.")
    far = np.abs((x - result.states.mean(axis=0)) / (result.states.std(axis=0) + np.finfo(float).tiny)).max()
    if far > _FAR:
        warnings.warn(
            f"start lies {far:.3g} sds from the states of the training data (result.states), where nothing was "
            "learned: paths from there are guesses.",
            LampertiWarning,
            stacklevel=3,
        )
    return to_jax(np.broadcast_to(x, (n_paths, d)))


def _random_key(seed: Any) -> jax.Array:
    return jax.random.key(as_seed(seed))


def _check_fitted(result: Any) -> None:
    refuse_fork()
    if not isinstance(result, FitResult):
        raise ConfigError(
            f"a fitted model must come first; got a {type(result).__name__}. Fit one with lamperti.fit(series), or "
            "load it first: lamperti.load(path)."
        )


def _check_room(result: FitResult, n_paths: int, n_steps: int, what: str, less: str) -> None:
    width = result.model.latent_dim + len(result.names)
    n_inducing = result.config.model.n_inducing
    check_memory(path_bytes(n_paths=n_paths, n_steps=n_steps, width=width, n_inducing=n_inducing), what, less)


def _sizes(result: FitResult) -> dict[str, int]:
    """What the memory of one particle depends on."""
    dynamics = result.model.dynamics
    return {"dim": dynamics.dim, "n_inducing": len(dynamics.Z), "n_kernels": len(dynamics.kernels)}
