"""The public functions: read top to bottom, they are the walk of the data.

fit: check -> scale -> segment -> start -> train.  forecast: check -> scale -> filter -> roll -> emit -> unscale.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lamperti._errors import ConfigError, SeriesError
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.bridging import Piece, bridge
from lamperti.data.matching import match_channels, warn_if_far, warn_if_starved
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series, as_series_list, check_for_training
from lamperti.data.windows import Batch, Track, segment, whole
from lamperti.forecasting import Start, draw_drifts, emit, encode_context, filter_context, roll_out, smooth
from lamperti.model import LatentSDE, Segment
from lamperti.results import Config, Embedding, FitResult, Forecast, Simulation
from lamperti.train.build import build_model, choose
from lamperti.train.loop import Progress, Settings, Watch, as_segment, train
from lamperti.train.schedule import Schedule
from lamperti.train.step import LearningRates

_BUCKET = 64  # series are padded to multiples of this, so that few lengths are compiled
_MAX_CONTEXT = 512  # samples of context that a forecast's filter runs over
_KEPT_STATES = 512
_VALIDATION_SEGMENTS = 32

_C = TypeVar("_C", ModelConfig, FitConfig)


def build(data: Any, model: ModelConfig | None = None, *, seed: int = 0) -> LatentSDE:
    """The model at its start, before training: the Hankel embedding with a regressed drift."""
    model = _config(model, ModelConfig, "model")
    series = as_series_list(data)
    check_for_training(series)
    tracks = _tracks(series, Scaler.from_series(series))
    return build_model(choose(model, tracks), tracks, seed=seed)


def fit(
    data: Any,
    model: ModelConfig | None = None,
    fit: FitConfig | None = None,
    *,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> FitResult:
    """Learn a latent stochastic differential equation from one or many series.

    data: a Series, a list of them (ragged allowed), or an array [T], [R, T] or [R, T, P].
    progress: called with each history record (ELBO terms, validation score, time left).
    watch: called with every iteration and the model as it is then; copy what is to be kept of it.
    Ctrl-C stops training and returns the best state so far.
    """
    model, fit = _config(model, ModelConfig, "model"), _config(fit, FitConfig, "fit")
    series = as_series_list(data)
    check_for_training(series)
    scaler = Scaler.from_series(series)
    tracks = _tracks(series, scaler)
    config = choose(model, tracks)
    training, held_out = _hold_out(tracks, fit.validation_fraction, config.window or 1, np.random.default_rng(fit.seed))

    start = build_model(config, training, seed=fit.seed)
    lead = start.encoder.lead
    length = min(fit.segment_length, max(len(t.y) for t in training))
    segments = segment(training, length, lead)
    validation = segment(held_out, length, lead).cover(_VALIDATION_SEGMENTS) if held_out else None
    trained, history = train(start, segments, validation, _settings(fit), progress, watch)
    states = _visited(trained, segments.cover(_VALIDATION_SEGMENTS), seed=fit.seed)
    return FitResult(trained, history, Config(config, fit), scaler, series[0].names, states)


def embed(result: FitResult, series: Any) -> Embedding:
    """The state at every sample of a series, given all of the series: mean [T, D] and covariance [T, D, D]."""
    one = _matching(result, series)
    means, covs = [], []
    for track, rows in _pieces(one, result.scaler):
        padded = as_segment(whole(*track, result.model.encoder.lead, _BUCKET))
        marginals = smooth(result.model, _one(padded), key=jax.random.key(0))
        means.append(np.asarray(marginals.mean)[rows])
        covs.append(np.asarray(marginals.cov)[rows])
    return Embedding(np.concatenate(means), np.concatenate(covs), one.times)


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
    _positive(horizon=horizon, n_samples=n_samples, n_particles=n_particles)
    one = _matching(result, series)
    context = _context(_pieces(one, result.scaler)[-1].track, result.model.encoder.lead)
    key_start, key_drift, key_roll, key_emit = jax.random.split(_random_key(seed), 4)
    if start == "filter":
        begin = filter_context(
            result.model, context, n_samples=n_samples, n_particles=max(n_particles, n_samples), key=key_start
        )
    elif start == "encoder":
        begin = encode_context(result.model, context, n_samples=n_samples, key=key_start)
    else:
        raise ConfigError(f"start must be 'filter' or 'encoder'; got {start!r}.")
    warn_if_starved(float(begin.least_ess))
    draws = draw_drifts(result.model, n=n_samples, uncertain=drift_uncertainty, key=key_drift)
    states = roll_out(draws, begin.x, n_steps=horizon, key=key_roll)
    y = emit(result.model, states, noise=observation_noise, key=key_emit)
    times = one.times[-1] + result.scaler.time_unit * np.arange(1, horizon + 1)
    samples = result.scaler.unscale_values(np.asarray(y))
    return Forecast(samples, np.asarray(states), times, result.names, float(begin.least_ess))


def simulate(
    result: FitResult,
    *,
    n_steps: int = 1000,
    n_paths: int = 4,
    seed: int = 0,
    start: Any = None,
    observation_noise: bool = True,
    drift_uncertainty: bool = True,
) -> Simulation:
    """Free-running paths. ``start``: latent states [D] or [n_paths, D]; by default states the data went through."""
    _positive(n_steps=n_steps, n_paths=n_paths)
    key_start, key_drift, key_roll, key_emit = jax.random.split(_random_key(seed), 4)
    x = _start_states(result, start, n_paths, key_start)
    draws = draw_drifts(result.model, n=n_paths, uncertain=drift_uncertainty, key=key_drift)
    states = roll_out(draws, x, n_steps=n_steps, key=key_roll)
    y = emit(result.model, states, noise=observation_noise, key=key_emit)
    times = result.scaler.time_unit * np.arange(1, n_steps + 1)
    return Simulation(result.scaler.unscale_values(np.asarray(y)), np.asarray(states), times, result.names)


def _config(given: _C | None, kind: type[_C], name: str) -> _C:
    if given is not None and not isinstance(given, kind):
        raise ConfigError(f"{name} must be a lamperti.{kind.__name__}(...); got a {type(given).__name__}.")
    return kind() if given is None else given


def _tracks(series: Sequence[Series], scaler: Scaler) -> list[Track]:
    return [piece.track for one in series for piece in _pieces(one, scaler)]


def _pieces(series: Series, scaler: Scaler) -> list[Piece]:
    """A series in the model's units, its gaps bridged or cut."""
    return bridge(Track(np.nan_to_num(scaler.values(series.values)), series.mask, scaler.steps(series.steps)))


def _hold_out(
    tracks: list[Track], fraction: float, window: int, rng: np.random.Generator
) -> tuple[list[Track], list[Track]]:
    """Whole series for validation where the share comes to one or more, else the end of the longest."""
    if fraction == 0.0:
        return tracks, []
    n = min(round(fraction * len(tracks)), len(tracks) - 1)
    if n > 0:
        picked = set(rng.choice(len(tracks), n, replace=False).tolist())
        training = [t for i, t in enumerate(tracks) if i not in picked]
        if _suffices(training, window):
            return training, [tracks[i] for i in sorted(picked)]
    place = max(range(len(tracks)), key=lambda i: len(tracks[i].y))
    longest, others = tracks[place], [t for i, t in enumerate(tracks) if i != place]
    length, total = len(longest.y), sum(len(t.y) for t in tracks)
    cut = max(round(length - fraction * total), length // 2 if others else 0)
    head = Track(longest.y[:cut], longest.mask[:cut], longest.dt[: max(cut - 1, 0)])
    training = [*others[:place], head, *others[place:]]
    if length - cut < max(window, 8) or not _suffices(training, window):
        return tracks, []
    return training, [Track(longest.y[cut:], longest.mask[cut:], longest.dt[cut:])]


def _suffices(tracks: Sequence[Track], window: int) -> bool:
    """Whether a model can start from these series: one has more than a window, and every channel was observed."""
    seen = np.any([t.mask.any(axis=0) for t in tracks], axis=0)
    return bool(seen.all()) and any(len(t.y) > window for t in tracks)


def _settings(fit: FitConfig) -> Settings:
    return Settings(
        max_iterations=fit.max_iterations,
        max_seconds=np.inf if fit.max_minutes is None else 60.0 * fit.max_minutes,
        batch_size=fit.batch_size,
        n_samples=fit.n_samples,
        span_rate=fit.span_rate,
        follow=fit.encoder_follow,
        gauge_at=fit.gauge_at,
        validate_every=fit.validate_every,
        patience=fit.patience,
        rates=LearningRates(fit.learning_rate, fit.kernel_rate, fit.diffusion_rate),
        schedule=Schedule(fit.natural_rate, fit.start_rate, fit.start_iterations),
        seed=fit.seed,
    )


def _visited(model: LatentSDE, batch: Batch, *, seed: int) -> np.ndarray:
    """States that the training data went through: smoothed means, thinned."""
    lead = model.encoder.lead
    segments = as_segment(batch)
    means = [np.asarray(smooth(model, _one(segments, i), key=jax.random.key(seed)).mean) for i in range(len(batch.y))]
    linked = np.concatenate([batch.link[:, lead:], np.zeros((len(batch.y), 1), bool)], axis=1)
    x = np.concatenate(means)[linked.reshape(-1)]
    return x[np.linspace(0, len(x) - 1, min(len(x), _KEPT_STATES)).astype(int)]


def _one(batch: Segment, i: int = 0) -> Segment:
    return jax.tree.map(lambda a: a[i], batch)


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
        return _one(as_segment(whole(y, mask, dt, lead, _BUCKET)))
    padded = whole(y[lead:], mask[lead:], dt[lead:], 0, _BUCKET)
    real = Batch(
        np.concatenate([Track(y, mask, dt).y[None, :lead], padded.y], axis=1),
        np.concatenate([mask[None, :lead], padded.mask], axis=1),
        np.concatenate([dt[None, :lead], padded.dt], axis=1),
        np.concatenate([np.ones((1, lead), bool), padded.link], axis=1),
    )
    return _one(as_segment(real))


def _start_states(result: FitResult, start: Any, n_paths: int, key) -> jax.Array:
    if start is None:
        picked = jax.random.choice(key, len(result.states), (n_paths,), replace=len(result.states) < n_paths)
        return jnp.asarray(result.states)[picked]
    x = np.atleast_2d(np.asarray(start, dtype=float))
    d = result.model.latent_dim
    if x.shape[1] != d or x.shape[0] not in (1, n_paths) or not np.isfinite(x).all():
        raise SeriesError(f"start must be finite states [{d}] or [{n_paths}, {d}]; got shape {np.shape(start)}.")
    return jnp.broadcast_to(jnp.asarray(x), (n_paths, d))


def _random_key(seed: int) -> jax.Array:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise ConfigError(f"seed must be a whole number from 0 to 2**63 - 1; got {seed!r}.")
    return jax.random.key(int(seed))


def _positive(**values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise ConfigError(f"{name} must be a whole number of at least 1; got {value!r}.")
