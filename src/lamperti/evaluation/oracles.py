"""Forecasts by someone who knows the true equations; the one of the skill scale.

Notation   contexts: what was observed before each forecast origin [R, T], NaN where missing
           x: state [D]   K particles   S ensemble members   H horizons, 1..H samples after the context
Equations  exact Kalman filter for a linear system (``kalman``); else a particle filter with systematic resampling
           where the effective sample size 1/sum(w^2) is under K/2: the bootstrap filter, weights p(y | x), or with
           little or no observation noise the guided one, whose particles are led to y (``guided``)

All forecast the observable without its noise, given the noisy context.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from lamperti._errors import ConfigError
from lamperti.data.systems import System
from lamperti.evaluation.guided import guided_move
from lamperti.evaluation.kalman import check_contexts

DEFINITION = "guided without noise"
"""What an oracle is; part of the name of everything that was scored against one. Change it with the numbers."""
# Observation noise under this share of the contexts' sd starves a bootstrap filter.
GUIDED_BELOW = 0.05
# So many particles of a bootstrap filter do not do what one guided one does.
GUIDED_WORTH = 4
# Few draws of the stationary law agree with what comes next (a rare burst under way, say), and who is led has no second
# chance. So the guided filter takes the first samples, a third of the context at most, to have a noise that falls from
# and to these shares of the contexts' sd, and begins with more particles. All later samples count as they are.
WARM_UP, WARM_UP_SHARE = 16, 3
WARM_UP_NOISE = (0.3, 1e-3)
GUIDED_START = 4
# Stationary draws per particle, of which the first sample picks.
POOL, GUIDED_POOL = 10, 40
# Where the stationary law is reached by simulation only, this many paths are run in and visited repeatedly.
POOL_PATHS = 1024
# Share of the contexts' sd that is rounding error.
_ROUNDING = 1e-6
_START_DRAWS = 4096

Proposal = Literal["bootstrap", "guided"]
Update = Callable[[np.ndarray, np.ndarray, float, np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""(x [R, K, D], y [R], noise_sd, rng) to the states at y, and the log weights that they gain by it."""


class LinearLaw(NamedTuple):
    """What a Kalman filter needs of a linear system: its step over a sample, its observable, its start."""

    transition: Float[np.ndarray, "D D"]
    process_cov: Float[np.ndarray, "D D"]
    observation: Float[np.ndarray, " D"]
    initial_cov: Float[np.ndarray, "D D"] | None
    """None stands for the stationary law."""


def linear_law(system: System, dt: float) -> LinearLaw:
    """Of a linear system; where it has no stationary law, with that of its starts, to second order."""
    F, start = system.transition_matrix(dt), None
    if np.abs(np.linalg.eigvals(F)).max() >= 1:
        draws = system.initial(_START_DRAWS, np.random.default_rng(0))
        start = draws.T @ draws / len(draws)
    return LinearLaw(F, system.process_covariance(dt), system.observe(np.eye(system.dimension))[:, 0], start)


@dataclass(frozen=True)
class FilteredParticles:
    """The particles after the context, equally weighted; on the way, the mean state and how well the filter was fed."""

    x: Float[np.ndarray, "R K D"]
    ess: Float[np.ndarray, "R T"]
    """0 where no particle could have made the sample; the filter then goes on as if it had not been observed."""
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


def proposal_for(contexts: Float[np.ndarray, "R T"], noise_sd: float) -> Proposal:
    """Which filter suits the observation noise."""
    return "guided" if noise_sd <= GUIDED_BELOW * np.nanstd(contexts) else "bootstrap"


def enough_particles(contexts: Float[np.ndarray, "R T"], noise_sd: float, n_particles: int, least: int = 1) -> int:
    """How many do what ``n_particles`` of a bootstrap filter do."""
    guided = proposal_for(contexts, noise_sd) == "guided"
    return max(least, n_particles // GUIDED_WORTH) if guided else n_particles


def particle_filter(
    system: System,
    contexts: Float[np.ndarray, "R T"],
    dt: float,
    noise_sd: float,
    *,
    n_particles: int = 2000,
    substeps: int | None = None,
    proposal: Proposal | None = None,
    rng: np.random.Generator,
) -> FilteredParticles:
    """Filter over all origins at once, from draws of the system's stationary law; guided where noise is small."""
    n_origins, n_times = contexts.shape
    guided = (proposal or proposal_for(contexts, noise_sd)) == "guided"
    update = _guided(system, dt, substeps, contexts) if guided else _bootstrap(system, dt, substeps)
    assumed = _warmed_up(contexts, noise_sd) if guided else np.full(n_times, noise_sd)
    n_first = (GUIDED_START if guided else 1) * n_particles

    # One pool serves every origin: the first sample picks its own particles from it.
    pool = stationary_draws(system, (GUIDED_POOL if guided else POOL) * n_particles, dt, rng, substeps)
    log_w, first_ess = _normalised(_log_likelihood(system.observe(pool)[None, :, 0], contexts[:, 0], assumed[0]))
    x = pool[_systematic(log_w, n_first, rng)]
    log_w = np.zeros((n_origins, n_first))
    means, ess = [x.mean(axis=1)], [first_ess]

    for k in range(1, n_times):
        x, gained = update(x, contexts[:, k], assumed[k], rng)
        log_w, size = _normalised(log_w + gained)
        ess.append(size)
        means.append(_weighted_mean(x, log_w))
        starved = size < x.shape[1] / 2
        if x.shape[1] > n_particles and assumed[k] == noise_sd:
            x, log_w = _resampled(x, log_w, n_particles, rng), np.zeros((n_origins, n_particles))
        elif starved.any():
            x[starved] = _resampled(x[starved], log_w[starved], x.shape[1], rng)
            log_w[starved] = 0.0

    # pool and first clouds are larger than K; keep to the scale of the later ones
    shown = np.minimum(np.stack(ess, axis=1), n_particles)
    return FilteredParticles(_resampled(x, log_w, n_particles, rng), shown, np.stack(means, axis=1))


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
        noise_sd: sd of the observation noise. Without it, or with less than 5 % of the contexts' sd, particles are
            led to the observations, and a quarter of ``n_particles`` is taken.
        horizon: number of sample intervals to look ahead.
        substeps: integration steps a sample interval, the system's own choice by default; fewer are faster
            and less exact.
    """
    check_contexts(contexts, horizon)
    if not 1 <= n_samples <= n_particles:
        raise ConfigError(f"n_samples must be between 1 and n_particles={n_particles}, got {n_samples}.")
    rng = np.random.default_rng(seed)
    taken = enough_particles(contexts, noise_sd, n_particles, least=n_samples)
    cloud = particle_filter(system, contexts, dt, noise_sd, n_particles=taken, substeps=substeps, rng=rng)
    # copies of one particle lie side by side, so members are taken at even strides rather than off the front
    x = cloud.x[:, np.arange(n_samples) * taken // n_samples]
    shape, steps, advance = x.shape, [], system.stepper(dt, substeps)
    for _ in range(horizon):
        x = advance(x.reshape(-1, shape[-1]), rng).reshape(shape)
        steps.append(system.observe(x)[..., :1])
    return np.stack(steps, axis=2)


def _warmed_up(contexts: Float[np.ndarray, "R T"], noise_sd: float) -> Float[np.ndarray, " T"]:
    """The noise that a guided filter assumes of each sample."""
    n_times = contexts.shape[1]
    n = min(WARM_UP, max(1, n_times // WARM_UP_SHARE))
    falling = np.geomspace(*WARM_UP_NOISE, n + 1)[:n] * np.nanstd(contexts)
    return np.concatenate([np.maximum(falling, noise_sd), np.full(n_times - n, noise_sd)])


def _bootstrap(system: System, dt: float, substeps: int | None) -> Update:
    """Move blindly, weigh by the likelihood."""
    advance = system.stepper(dt, substeps)

    def update(
        x: np.ndarray, y: np.ndarray, noise_sd: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        x = advance(x.reshape(-1, x.shape[2]), rng).reshape(x.shape)
        return x, _log_likelihood(system.observe(x)[..., 0], y, noise_sd)

    return update


def _guided(system: System, dt: float, substeps: int | None, contexts: Float[np.ndarray, "R T"]) -> Update:
    """Move to the observation; blindly where there is none, or where it lies on a boundary that absorbs."""
    tolerance = _ROUNDING * float(np.nanstd(contexts))
    advance, lead = system.stepper(dt, substeps), guided_move(system, dt, tolerance, substeps)

    def update(
        x: np.ndarray, y: np.ndarray, noise_sd: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        moved, gained = x.copy(), np.zeros(x.shape[:2])
        absorbed = _absorbed(system, x[:, 0], y) & (noise_sd == 0)
        led = np.isfinite(y) & ~absorbed
        if led.any():
            moved[led], gained[led] = lead(x[led], y[led], noise_sd**2, rng)
        if not led.all():
            blind = x[~led]
            moved[~led] = advance(blind.reshape(-1, x.shape[2]), rng).reshape(blind.shape)
        # absorption has a probability, not a density: a particle shares it or not
        missed = np.abs(system.observe(moved)[..., 0] - np.nan_to_num(y)[:, None]) > tolerance
        gained[absorbed[:, None] & missed] = -np.inf
        return moved, gained

    return update


def _absorbed(system: System, x: Float[np.ndarray, "R D"], y: Float[np.ndarray, " R"]) -> Bool[np.ndarray, " R"]:
    """Where states beyond y are put back to y, so that many paths end in y itself; x gives the other coordinates."""
    if system.project is None:
        return np.zeros(len(y), dtype=bool)
    row = system.observe(np.eye(system.dimension))[:, 0]
    to_y = np.outer((y - x @ row) / (row @ row), row)
    beyond = (system.project(x + to_y + side * row) @ row == y for side in (-1.0, 1.0))
    return np.logical_or(*beyond)


def _log_likelihood(
    predicted: Float[np.ndarray, "*R K"], y: Float[np.ndarray, " R"], noise_sd: float
) -> Float[np.ndarray, "R K"]:
    """Without its constant; 0 where y is missing."""
    error = np.where(np.isfinite(y)[:, None], np.nan_to_num(y)[:, None] - predicted, 0.0)
    return np.asarray(-0.5 * (error / noise_sd) ** 2)


def _normalised(log_w: Float[np.ndarray, "R K"]) -> tuple[Float[np.ndarray, "R K"], Float[np.ndarray, " R"]]:
    """Log weights, the largest of a row being 0, and the effective sample size: 0 where all weights are, which then
    are taken as equal."""
    best = log_w.max(axis=1, keepdims=True)
    lost = np.isneginf(best)
    log_w = np.where(lost, 0.0, log_w - np.where(lost, 0.0, best))
    w = np.exp(log_w)
    return log_w, np.where(lost[:, 0], 0.0, w.sum(axis=1) ** 2 / (w**2).sum(axis=1))


def _weighted_mean(x: Float[np.ndarray, "R K D"], log_w: Float[np.ndarray, "R K"]) -> Float[np.ndarray, "R D"]:
    w = np.exp(log_w)
    return np.einsum("rk,rkd->rd", w / w.sum(axis=1, keepdims=True), x)


def _resampled(
    x: Float[np.ndarray, "R _K D"], log_w: Float[np.ndarray, "R _K"], n: int, rng: np.random.Generator
) -> Float[np.ndarray, "R n D"]:
    return np.take_along_axis(x, _systematic(log_w, n, rng)[..., None], axis=1)


def _systematic(log_w: Float[np.ndarray, "R K"], n: int, rng: np.random.Generator) -> Int[np.ndarray, "R n"]:
    """Systematic resampling of n indices a row: one uniform shift, n equal strides."""
    edges = np.cumsum(np.exp(log_w), axis=1)
    edges /= edges[:, -1:]  # the last edge is exactly 1, so no stride falls off the end
    points = (rng.uniform(size=(len(log_w), 1)) + np.arange(n)) / n
    return np.stack([np.searchsorted(e, p) for e, p in zip(edges, points, strict=True)])
