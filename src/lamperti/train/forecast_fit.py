"""A model fitted to its own forecasts: the CRPS at several horizons, by gradient through free-running paths.

Notation   x_0: filtered state at an origin      x_h: h steps of the equation from it, S paths      y_h: what is seen
           score: mean over horizons of CRPS_h, each in units of what it was at the start
Equations  docs/theory.md (30)

The likelihood is a product of one-step forecasts. Where the model is right, nothing forecasts better at any horizon.
Where it is not, and no recording is made of a few coordinates with Gaussian noise, the parameters that are best for one
step are not those that are best for fifty. The CRPS is a proper score: sharpness and spread are fitted alike. Held-out
segments choose the point, and must clearly gain (docs/adr/0030).
"""

import math
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lamperti._compile import compiled, to_jax
from lamperti._params import realise
from lamperti._process import while_training
from lamperti._typing import Array, Float, Int, PRNGKeyArray, Scalar
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.interfaces import AbstractEmission
from lamperti.math import small
from lamperti.model import LatentSDE, Segment
from lamperti.train.fitted import UNITS, Fitted, search_range, with_noise
from lamperti.train.likelihood import filtered_states

_ROUNDS = 160
_JUDGED_EVERY = 20  # rounds, after which held-out segments are looked at
_RATES = (0.05, 0.01, 0.002)  # Adam's at the start, in the units of the search; it falls to nothing
_LOST = -0.1  # share of the CRPS at the first look, from which on the rate is too large for this model
_SAMPLES, _PATHS = 2_100, 16  # that are forecast in a round, from one origin each; and by how many paths
_JUDGING_PATHS = 64
_ORIGINS = 4  # of a segment
_CONTEXT = 0.1  # of a segment, at least, before an origin
_HORIZON = 2 / 3  # of a segment, that is forecast
_SHORTEST, _LONGEST = 100, 300  # samples of a segment
_WINDOWS = 3  # of the encoder, that a segment is long
_CHANNELS = 32  # that are scored, so that many of them cost no more
_FEWEST = 4  # held-out segments, from which a standard error can be told
_CLEARLY, _NOTICED = 1.0, 0.02  # standard errors, and share of the CRPS, by which held-out segments must gain
_STEEPEST = 1.0  # norm of the gradient: beyond the time that is predictable, single paths have enormous ones


class Scores(NamedTuple):
    """CRPS of every segment by horizon, averaged over origins and channels, and over how many samples."""

    crps: Float[Array, "B G"]
    count: Float[Array, "B G"]

    def by_horizon(self) -> Float[Array, " G"]:
        """Averaged over segments; infinite where there are no samples, so that nothing counts there."""
        n = jnp.sum(self.count, axis=0)
        return jnp.where(n > 0, jnp.sum(self.crps * self.count, axis=0) / jnp.maximum(n, 1.0), jnp.inf)


def fit_forecasts(
    model: LatentSDE,
    batch: Segment,
    held_out: Segment,
    *,
    seed: int = 0,
    max_seconds: float = math.inf,
) -> tuple[LatentSDE, float]:
    """The model with noises, loadings and drift moved to where its forecasts of the batch are best, and with noise of
    the motion that depends on the state; and the share by which the CRPS of held-out segments fell. The model as it
    was, and zero, where they do not clearly gain.

    ``max_seconds``: when it takes longer, the best that was found by then."""
    if not _has_forecasts(model) or len(held_out.y) < _FEWEST:
        return model, 0.0
    n_segments = max(round(_SAMPLES / _ahead(held_out.y.shape[1] - model.encoder.lead)), 4)
    deadline = time.monotonic() + max_seconds
    start = model if model.dynamics.noise is not None else with_noise(model, _no_field(model))
    origin, *bounds = search_range(start, "state noise")
    rng, judging_key = np.random.default_rng(seed), jax.random.key(seed)
    before = _judge(origin, start, held_out, key=judging_key)
    reference = before.by_horizon()

    def search(rate: float) -> tuple[Fitted | None, float]:
        """The best point, if there is a good one, and its gain; at once minus infinity if the rate is too large."""
        values, state = origin, _start(origin)
        best, most = None, 0.0
        for i in range(1, _ROUNDS + 1):
            picked = rng.integers(len(batch.y), size=n_segments)
            part = jax.tree.map(lambda a, rows=picked: to_jax(np.asarray(a)[rows]), batch)
            key = jax.random.key(int(rng.integers(2**31)))
            values, state = _round(values, state, start, part, bounds, reference, to_jax(np.asarray(rate)), key=key)
            if i % _JUDGED_EVERY == 0:
                gain, se = gained(before, _judge(values, start, held_out, key=judging_key))
                if gain > max(most, _NOTICED, _CLEARLY * se):  # one that is not finite is not
                    best, most = values, gain
                if i == _JUDGED_EVERY and not gain > _LOST:
                    return None, -math.inf
                if time.monotonic() > deadline:
                    break
        return best, most

    with while_training:
        for rate in _RATES:
            best, gain = search(rate)
            if best is not None:
                return _settle(best, start), gain
            if gain > -math.inf:  # a smaller one would only be slower
                break
    return model, 0.0


def _has_forecasts(model: LatentSDE) -> bool:
    """Whether `forecast_scores` starts from where forecasts of this model do."""
    return model.told_by in ("emission", "window") and isinstance(model.emission, LinearGaussian)


def segment_length(window: int, longest: int) -> int:
    """Samples of the segments that are forecast: a few windows, so that what is forecast goes on until little is known
    of it, but no more than the longest recording has."""
    return min(max(_WINDOWS * window, _SHORTEST), _LONGEST, longest)


def _ahead(n_states: int) -> int:
    return max(int(_HORIZON * (n_states - 1)), 1)


def gained(before: Scores, after: Scores) -> tuple[float, float]:
    """Share by which the CRPS fell, averaged over horizons, and its standard error over segments."""
    reference, count = np.asarray(before.by_horizon()), np.asarray(before.count)
    weight = count / np.maximum(count.mean(axis=0), np.finfo(float).tiny)
    share = (np.asarray(before.crps) - np.asarray(after.crps)) / reference * weight
    each = share[:, np.isfinite(reference)].mean(axis=1)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def horizons(n: int) -> Int[np.ndarray, " G"]:
    """1, 2, 4, ... and the last of n steps."""
    return np.unique(np.append(2 ** np.arange(int(math.log2(n)) + 1), n))


def forecast_scores(values: Fitted, model: LatentSDE, batch: Segment, n_paths: int, *, key: PRNGKeyArray) -> Scores:
    """How well segments are forecast from some origins within them, each from what the filter knows there."""
    model, w = realise(values.put_into(model)), values.weights(model)
    transition = model.dynamics.condition(w)
    mean, cov = filtered_states(model, batch, w)
    last = mean.shape[1] - 1
    n_ahead = _ahead(last + 1)
    origins = np.linspace(min(_CONTEXT * last, last - n_ahead), last - n_ahead, _ORIGINS).astype(int)
    ahead = horizons(n_ahead)
    channels = np.unique(np.linspace(0, batch.y.shape[-1] - 1, _CHANNELS).round().astype(int))
    emission = _of_channels(model.emission, channels)

    @jax.checkpoint  # of a path, only the states are kept for the way back
    def step(x: Float[Array, "S D"], inputs: tuple[Scalar, Float[Array, "S D"]]):
        dt, noise = inputs
        moved, variance = jax.vmap(lambda x: (transition.mean(x, dt), transition.variance(x, dt)))(x)
        x = moved + jnp.sqrt(variance) * noise
        return x, x

    def from_origin(segment: Segment, mean: Array, cov: Array, origin: Array, key: PRNGKeyArray):
        key_x, key_path, key_y = jax.random.split(key, 3)
        part = segment.chain_part(model.encoder.lead)
        dt, link = (jax.lax.dynamic_slice_in_dim(a, origin, n_ahead) for a in (part.dt, part.link))
        y, mask = (jax.lax.dynamic_slice_in_dim(a, origin + 1, n_ahead)[ahead - 1] for a in (part.y, part.mask))
        y, mask = y[:, channels], mask[:, channels]
        noise = jax.random.normal(key_path, (n_ahead, n_paths, mean.shape[1]))
        x = mean[origin] + small.matvec(small.cholesky(cov[origin]), jax.random.normal(key_x, noise.shape[1:]))
        _, path = jax.lax.scan(step, x, (dt, noise))
        samples = emission.sample(path[ahead - 1], key=key_y)
        return crps(samples, y), mask & jnp.cumprod(link).astype(bool)[ahead - 1][:, None]

    def one(segment: Segment, mean: Array, cov: Array, key: PRNGKeyArray):
        each, counted = jax.vmap(from_origin, in_axes=(None, None, None, 0, 0))(
            segment, mean, cov, jnp.asarray(origins), jax.random.split(key, _ORIGINS)
        )
        count = jnp.sum(counted, axis=(0, 2)).astype(float)
        return jnp.sum(jnp.where(counted, each, 0.0), axis=(0, 2)) / jnp.maximum(count, 1.0), count

    return Scores(*jax.vmap(one)(batch, mean, cov, jax.random.split(key, len(batch.y))))


def _of_channels(emission: AbstractEmission, channels: Int[np.ndarray, " K"]) -> LinearGaussian:
    assert isinstance(emission, LinearGaussian)  # fit_forecasts has looked
    e = emission
    moments = jax.tree.map(lambda a: a[channels], e.moments)
    return LinearGaussian(e.C[channels], e.c[channels], e.noise[channels], moments)


def crps(samples: Float[Array, "G S P"], y: Float[Array, "G P"]) -> Float[Array, "G P"]:
    """Of S draws, without the bias that few draws have."""
    n = samples.shape[1]
    rank = 2.0 * jnp.arange(n)[:, None] - (n - 1.0)
    half_distance = jnp.sum(rank * jnp.sort(samples, axis=1), axis=1) / (n * (n - 1))
    return jnp.mean(jnp.abs(samples - y[:, None]), axis=1) - half_distance


@compiled
def _round(values: Fitted, state, model: LatentSDE, batch: Segment, bounds, reference, rate: Scalar, *, key):
    """One step of Adam, in the units of the search and within its bounds."""
    unit = Fitted(*map(jnp.asarray, UNITS))

    def cost(way: Fitted) -> Scalar:
        scores = forecast_scores(jax.tree.map(jnp.multiply, way, unit), model, batch, _PATHS, key=key)
        return jnp.mean(scores.by_horizon() / reference, where=jnp.isfinite(reference) & (jnp.sum(scores.count, 0) > 0))

    way = jax.tree.map(jnp.divide, values, unit)
    slope = jax.tree.map(lambda s: jnp.where(jnp.isfinite(s), s, 0.0), jax.grad(cost)(way))
    step, state = _optimiser().update(slope, state)
    moved = jax.tree.map(lambda a, s, u: u * (a + rate * s), way, step, unit)
    return jax.tree.map(jnp.clip, moved, *bounds), state


def _optimiser() -> optax.GradientTransformation:
    falling = optax.cosine_decay_schedule(1.0, _ROUNDS)
    return optax.chain(optax.clip_by_global_norm(_STEEPEST), optax.adam(falling))


@compiled
def _start(values: Fitted) -> optax.OptState:
    return _optimiser().init(values)


@compiled
def _judge(values: Fitted, model: LatentSDE, batch: Segment, *, key: PRNGKeyArray) -> Scores:
    return forecast_scores(values, model, batch, _JUDGING_PATHS, key=key)


@compiled
def _no_field(model: LatentSDE) -> Float[Array, "D M"]:
    return jnp.zeros_like(model.dynamics.q.shift)


_settle = compiled(Fitted.settled_in)
