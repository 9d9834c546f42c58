"""Exact filter and forecast of a linear Gaussian system with one observable.

Notation   contexts: what was observed before each forecast origin [R, T], NaN where missing
           (F, Q): x' = F x + N(0, Q) over one sample   h: observation row [D], y = h'x + N(0, noise_var)
Equations  P <- (I - k h') P (I - k h')' + k noise_var k', k the gain: a covariance whatever is rounded
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from lamperti._errors import ConfigError
from lamperti.evaluation.scores import gaussian_crps

# Without any noise the variance of an innovation falls to rounding error. Under this share of the observable's variance
# at the start it is one: there is nothing left to learn, and nothing to divide by.
_ROUNDING = 1e-13
# Of a forecast that is certain: a share of the observable's sd at the start.
_LEAST_SD = 1e-10
_TRACE = 1e-9


@dataclass(frozen=True)
class GaussianForecast:
    """Mean and sd of the noise-free observable, horizon by horizon."""

    mean: Float[np.ndarray, "R H 1"]
    sd: Float[np.ndarray, "R H 1"]

    def crps(self, truth: Float[np.ndarray, "R H 1"]) -> Float[np.ndarray, "R H 1"]:
        return gaussian_crps(self.mean, self.sd, truth)

    def samples(self, n_samples: int, *, seed: int = 0) -> Float[np.ndarray, "R S H 1"]:
        """Draws with the right marginals; horizons are drawn independently, so these are not paths."""
        r, h, _ = self.mean.shape
        z = np.random.default_rng(seed).standard_normal((r, n_samples, h, 1))
        return self.mean[:, None] + self.sd[:, None] * z


@dataclass(frozen=True)
class FilteredGaussian:
    """The state after the context, and its mean on the way."""

    mean: Float[np.ndarray, "R D"]
    cov: Float[np.ndarray, "R D D"]
    means: Float[np.ndarray, "R T D"]
    """E[x_k | y_1..y_k]: what the past alone tells of the state, which a smoother may exceed."""


def kalman_filter(
    transition: Float[np.ndarray, "D D"],
    process_cov: Float[np.ndarray, "D D"],
    observation: Float[np.ndarray, " D"],
    noise_var: float,
    contexts: Float[np.ndarray, "R T"],
    *,
    initial_cov: Float[np.ndarray, "D D"] | None = None,
) -> FilteredGaussian:
    """Filter every context from N(0, initial_cov) at its first sample, by default the stationary law.

    Args:
        transition, process_cov: the step over one sample interval.
        observation: row h with noise-free observable h'x.
        noise_var: variance of the observation noise; 0 is allowed.
        contexts: observations [R, T], NaN where missing.
        initial_cov: covariance of the state at the first sample; needed where there is no stationary law.
    """
    check_contexts(contexts)
    if initial_cov is None:
        initial_cov = _stationary_cov(transition, process_cov)
    n_origins = len(contexts)
    noticed = _ROUNDING * _scale(initial_cov, process_cov, observation)
    mean = np.zeros((n_origins, len(transition)))
    cov = np.broadcast_to(initial_cov, (n_origins, *transition.shape))
    means = []
    for k, y in enumerate(contexts.T):
        if k > 0:
            mean, cov = mean @ transition.T, transition @ cov @ transition.T + process_cov
        cross = cov @ observation
        variance = cross @ observation + noise_var
        told = np.isfinite(y) & (variance > noticed)
        gain = cross * np.divide(told, variance, out=np.zeros(n_origins), where=told)[:, None]
        mean = mean + gain * (np.nan_to_num(y) - mean @ observation)[:, None]
        kept = np.eye(len(transition)) - gain[:, :, None] * observation
        cov = kept @ cov @ kept.transpose(0, 2, 1) + noise_var * gain[:, :, None] * gain[:, None, :]
        cov = 0.5 * (cov + cov.transpose(0, 2, 1))
        means.append(mean)
    return FilteredGaussian(mean, cov, np.stack(means, axis=1))


def kalman_forecast(
    transition: Float[np.ndarray, "D D"],
    process_cov: Float[np.ndarray, "D D"],
    observation: Float[np.ndarray, " D"],
    noise_var: float,
    contexts: Float[np.ndarray, "R T"],
    horizon: int,
    *,
    initial_cov: Float[np.ndarray, "D D"] | None = None,
) -> GaussianForecast:
    """Exact forecast of the noise-free observable of a linear system about zero; arguments as for the filter.

    ``horizon`` is the number of sample intervals to look ahead.
    """
    check_contexts(contexts, horizon)
    if initial_cov is None:
        initial_cov = _stationary_cov(transition, process_cov)
    state = kalman_filter(transition, process_cov, observation, noise_var, contexts, initial_cov=initial_cov)
    mean, cov = state.mean, state.cov
    means, variances = [], []
    for _ in range(horizon):
        mean, cov = mean @ transition.T, transition @ cov @ transition.T + process_cov
        means.append(mean @ observation)
        variances.append(np.einsum("i,rij,j->r", observation, cov, observation))
    least = _LEAST_SD**2 * _scale(initial_cov, process_cov, observation)
    sd = np.sqrt(np.maximum(np.stack(variances, axis=1), least))
    return GaussianForecast(np.stack(means, axis=1)[..., None], sd[..., None])


def innovation_variance(
    transition: Float[np.ndarray, "D D"], process_cov: Float[np.ndarray, "D D"], observation: Float[np.ndarray, " D"]
) -> float:
    """Variance of the noise-free observable h'x given its whole past: what nobody can foresee one sample ahead.

    It does not depend on the coordinates of x, so that linear models of different coordinates can be compared.
    """
    row = observation[None]
    # a trace of observation noise keeps the Riccati equation solvable
    P = solve_discrete_are(transition.T, row.T, process_cov, _TRACE * row @ process_cov @ row.T)
    return float((row @ P @ row.T)[0, 0])


def _stationary_cov(
    transition: Float[np.ndarray, "D D"], process_cov: Float[np.ndarray, "D D"]
) -> Float[np.ndarray, "D D"]:
    if np.abs(np.linalg.eigvals(transition)).max() >= 1:
        raise ConfigError(
            "the Kalman filter starts from the stationary law; this transition has none (|eigenvalue| >= 1). "
            "Pass initial_cov, the covariance of the state at the first sample."
        )
    return np.asarray(solve_discrete_lyapunov(transition, process_cov))


def _scale(
    initial_cov: Float[np.ndarray, "D D"], process_cov: Float[np.ndarray, "D D"], observation: Float[np.ndarray, " D"]
) -> float:
    """A variance of the observable to compare others with, in its own units."""
    return max(float(observation @ cov @ observation) for cov in (initial_cov, process_cov))


def check_contexts(contexts: Float[np.ndarray, "R T"], horizon: int = 1) -> None:
    """Refuse what is not one channel of at least one sample, or a horizon of nothing."""
    if contexts.ndim != 2 or contexts.shape[1] < 1:
        raise ConfigError(f"contexts must be [R, T] with T >= 1, got {contexts.shape}. Take one channel.")
    if horizon < 1:
        raise ConfigError(f"horizon counts sample intervals and must be at least 1, got {horizon}.")
