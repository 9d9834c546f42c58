"""Forecasts by someone who knows the true equations; the one of the skill scale.

Notation   contexts: what was observed before each forecast origin [R, T], NaN where missing
           x: state [D]   K particles   S ensemble members   H horizons, 1..H samples after the context
Equations  exact Kalman filter for a linear system (``kalman``); else the bootstrap particle filter, weights p(y | x),
           systematic resampling where the effective sample size 1/sum(w^2) is under K/2

Both forecast the observable without its noise, given the noisy context.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from lamperti._errors import ConfigError
from lamperti.data.systems import System
from lamperti.evaluation.kalman import check_contexts

# Without observation noise the weights of a bootstrap filter are all zero. We then assume a noise of this
# share of the contexts' sd, coming down to it from a larger one: the cloud gathers before it is pinned.
ASSUMED_NOISE = 0.02
ASSUMED_START = 0.3
ASSUMED_DECAY = 0.8
# Stationary draws per particle, of which the first sample picks: few of them agree with it.
POOL = 10
# Where the stationary law is reached by simulation only, this many paths are run in and visited repeatedly.
POOL_PATHS = 1024


@dataclass(frozen=True)
class FilteredParticles:
    """The particles after the context, equally weighted; on the way, the mean state and how well the filter was fed."""

    x: Float[np.ndarray, "R K D"]
    ess: Float[np.ndarray, "R T"]
    mean: Float[np.ndarray, "R T D"]
    """E[x_k | y_1..y_k]: what the past alone tells of the state, which a smoother may exceed."""


def stationary_draws(
    system: System, n: int, dt: float, rng: np.random.Generator, substeps: int | None = None
) -> Float[np.ndarray, "n D"]:
    """States from the system's long-run law (from its law of starts, where it has no other)."""
    if system.burn_in == 0:
        return system.initial(n, rng)
    advance = system.stepper(dt, substeps)
    x = system.initial(min(n, POOL_PATHS), rng)
    for _ in range(math.ceil(system.burn_in / dt)):
        x = advance(x, rng)
    visits = [x]
    while len(visits) * len(x) < n:
        for _ in range(math.ceil(system.burn_in / 20 / dt)):
            x = advance(x, rng)
        visits.append(x)
    return np.concatenate(visits)[:n]


def particle_filter(
    system: System,
    contexts: Float[np.ndarray, "R T"],
    dt: float,
    noise_sd: float,
    *,
    n_particles: int = 2000,
    substeps: int | None = None,
    rng: np.random.Generator,
) -> FilteredParticles:
    """Bootstrap filter over all origins at once, from draws of the system's stationary law."""
    n_origins, n_times = contexts.shape
    assumed = _noise_schedule(contexts, noise_sd)
    advance = system.stepper(dt, substeps)

    # One pool serves every origin: the first sample picks its own particles from it.
    pool = stationary_draws(system, POOL * n_particles, dt, rng, substeps)
    log_w, first_ess = _weigh(system.observe(pool)[..., 0], contexts[:, 0], assumed[0])
    x = pool[_systematic(log_w, n_particles, rng)]
    log_w = np.zeros((n_origins, n_particles))
    means = [x.mean(axis=1)]
    # the pool is larger than K; keep to the scale of the later ones
    ess = [np.minimum(first_ess, n_particles)]

    for k in range(1, n_times):
        x = advance(x.reshape(n_origins * n_particles, -1), rng).reshape(x.shape)
        gained, size = _weigh(system.observe(x)[..., 0], contexts[:, k], assumed[k], log_w)
        ess.append(size)
        means.append(_weighted_mean(x, gained))
        starved = size < n_particles / 2
        if starved.any():
            chosen = _systematic(gained[starved], n_particles, rng)
            x[starved] = np.take_along_axis(x[starved], chosen[..., None], axis=1)
        log_w = np.where(starved[:, None], 0.0, gained)

    x = np.take_along_axis(x, _systematic(log_w, n_particles, rng)[..., None], axis=1)
    return FilteredParticles(x, np.stack(ess, axis=1), np.stack(means, axis=1))


def particle_forecast(
    system: System,
    contexts: Float[np.ndarray, "R T"],
    dt: float,
    noise_sd: float,
    horizon: int,
    *,
    n_particles: int = 2000,
    n_samples: int = 256,
    seed: int = 0,
    substeps: int | None = None,
) -> Float[np.ndarray, "R S H 1"]:
    """Forecast paths of the noise-free observable under the true equations.

    Args:
        system: the system that made the data.
        contexts: observations [R, T] of its first observable, NaN where missing. They may start anywhere in a
            recording of a stationary system, but at its beginning if the system has no stationary law.
        dt: sample interval.
        noise_sd: sd of the observation noise. With 0 the filter assumes 2 % of the contexts' sd, tempered at
            the start, so that the forecast is a little wider than the true limit.
        horizon: number of sample intervals to look ahead.
        substeps: integration steps a sample interval, the system's own choice by default; fewer are faster
            and less exact.
    """
    check_contexts(contexts, horizon)
    if not 1 <= n_samples <= n_particles:
        raise ConfigError(f"n_samples must be between 1 and n_particles={n_particles}, got {n_samples}.")
    rng = np.random.default_rng(seed)
    cloud = particle_filter(system, contexts, dt, noise_sd, n_particles=n_particles, substeps=substeps, rng=rng)
    # copies of one particle lie side by side, so members are taken at even strides rather than off the front
    x = cloud.x[:, np.arange(n_samples) * n_particles // n_samples]
    shape, steps, advance = x.shape, [], system.stepper(dt, substeps)
    for _ in range(horizon):
        x = advance(x.reshape(-1, shape[-1]), rng).reshape(shape)
        steps.append(system.observe(x)[..., :1])
    return np.stack(steps, axis=2)


def _noise_schedule(contexts: Float[np.ndarray, "R T"], noise_sd: float) -> Float[np.ndarray, " T"]:
    if noise_sd > 0:
        return np.full(contexts.shape[1], noise_sd)
    share = np.maximum(ASSUMED_NOISE, ASSUMED_START * ASSUMED_DECAY ** np.arange(contexts.shape[1]))
    return share * np.nanstd(contexts)


def _weigh(
    predicted: Float[np.ndarray, "*R K"],
    y: Float[np.ndarray, " R"],
    noise_sd: float,
    log_w: Float[np.ndarray, "R K"] | float = 0.0,
) -> tuple[Float[np.ndarray, "R K"], Float[np.ndarray, " R"]]:
    """Log weights after y, the largest of a row being 0, and the effective sample size. No y, no change."""
    error = np.where(np.isfinite(y)[:, None], np.nan_to_num(y)[:, None] - predicted, 0.0)
    gained = np.asarray(log_w - 0.5 * (error / noise_sd) ** 2)
    gained -= gained.max(axis=1, keepdims=True)
    w = np.exp(gained)
    return gained, w.sum(axis=1) ** 2 / (w**2).sum(axis=1)


def _weighted_mean(x: Float[np.ndarray, "R K D"], log_w: Float[np.ndarray, "R K"]) -> Float[np.ndarray, "R D"]:
    w = np.exp(log_w)
    return np.einsum("rk,rkd->rd", w / w.sum(axis=1, keepdims=True), x)


def _systematic(log_w: Float[np.ndarray, "R K"], n: int, rng: np.random.Generator) -> Int[np.ndarray, "R n"]:
    """Systematic resampling of n indices a row: one uniform shift, n equal strides."""
    edges = np.cumsum(np.exp(log_w), axis=1)
    edges /= edges[:, -1:]  # the last edge is exactly 1, so no stride falls off the end
    points = (rng.uniform(size=(len(log_w), 1)) + np.arange(n)) / n
    return np.stack([np.searchsorted(e, p) for e, p in zip(edges, points, strict=True)])
