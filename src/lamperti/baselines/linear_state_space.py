"""Linear Gaussian state space of a scalar series by maximum likelihood.

Notation   x' = F x + b e, e ~ N(0, q)      y = x_1 + N(0, r q)      d: dimension
           F: first column phi, ones above the diagonal; so y is ARMA(d, d-1) plus white noise, which every linear
           Gaussian model of d states with one observable is
           K: steady gain of the Kalman filter; its innovations are (1 - sum phi_i B^i) / (1 + sum (K_i - phi_i) B^i) y
           with B for one sample back
Equations  the likelihood, maximised over q, falls with log mean(innovations^2): that is minimised over phi (through
           partial autocorrelations, so that F is stable), b_2..b_d and log r, b_1 being 1

The first samples of each series, where the filter is not yet steady, do not count. The dimension is the one that
predicts held-out series best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov
from scipy.optimize import minimize
from scipy.signal import lfilter

from lamperti._errors import ConfigError
from lamperti._typing import Float
from lamperti.baselines.held_out import hold_out
from lamperti.baselines.interface import check_request, training_arrays
from lamperti.data.correlation import autocorrelation
from lamperti.data.series import Series
from lamperti.evaluation.kalman import kalman_filter

_TRANSIENT = 50
_LONGEST_CONTEXT = 500
_LOG_R = (-16.0, 10.0)
_LOG_R_STARTS = (-2.0, 1.0, 4.0)
_INNERMOST = 0.9995  # roots of a start are kept inside this radius, where partial autocorrelations are finite
_LARGEST_PARTIAL = 1 - 1e-5  # at 1 an oscillation lasts for ever and has no stationary law to start from
_ANY = 2**31


@dataclass(frozen=True)
class LinearStateSpace:
    """Forecasts the noise-free signal, or with ``observation_noise`` what will be observed."""

    max_dimension: int = 4
    observation_noise: bool = False

    def __post_init__(self):
        if self.max_dimension < 1:
            raise ConfigError(f"max_dimension must be at least 1, got {self.max_dimension}.")

    def fit(self, series: Sequence[Series], seed: int) -> "FittedLinearStateSpace":
        arrays = training_arrays(series, scalar="LinearStateSpace", shortest=20)
        mean = float(np.concatenate(arrays).mean())
        centred = [a[:, 0] - mean for a in arrays]
        train, held = (_by_length(part) for part in hold_out(centred))
        fits = [_maximise(train, d) for d in range(1, self.max_dimension + 1)]
        held_scores = [_log_error(theta, held) for theta in fits]
        best = fits[int(np.argmin(held_scores))]
        everything = _by_length(centred)
        theta = _descend(best, everything)
        F, b, r = _model(theta)
        gain, variance = _steady(F, b, r)
        scale = float(np.mean(_innovations(F, gain, everything) ** 2)) / variance
        return FittedLinearStateSpace(F, b * np.sqrt(scale), r * scale, mean, self.observation_noise)


@dataclass(frozen=True, eq=False)
class FittedLinearStateSpace:
    F: Float[np.ndarray, "d d"]
    b: Float[np.ndarray, " d"]
    noise_var: float
    mean: float
    observation_noise: bool

    @property
    def dimension(self) -> int:
        return len(self.b)

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        check_request(context, horizon, n_samples, n_channels=1, least=1, furthest=_ANY)
        recent = context[None, -_LONGEST_CONTEXT:, 0] - self.mean
        state = kalman_filter(self.F, np.outer(self.b, self.b), np.eye(self.dimension)[0], self.noise_var, recent)
        rng = np.random.default_rng(seed)
        x = rng.multivariate_normal(state.mean[0], state.cov[0], n_samples, method="eigh", check_valid="ignore")
        return self._run(x, horizon, rng)

    def simulate(self, n_paths: int, n_steps: int, seed: int) -> Float[np.ndarray, "N T P"]:
        """Free-running paths from the stationary law."""
        rng = np.random.default_rng(seed)
        cov = np.asarray(solve_discrete_lyapunov(self.F, np.outer(self.b, self.b)))
        x = rng.multivariate_normal(np.zeros(self.dimension), cov, n_paths, method="eigh", check_valid="ignore")
        return self._run(x, n_steps, rng)

    def _run(self, x: Float[np.ndarray, "S d"], n_steps: int, rng: np.random.Generator) -> Float[np.ndarray, "S H 1"]:
        path = np.empty((len(x), n_steps, 1))
        for k in range(n_steps):
            x = x @ self.F.T + rng.standard_normal((len(x), 1)) * self.b
            path[:, k, 0] = self.mean + x[:, 0]
        if self.observation_noise:
            path += np.sqrt(self.noise_var) * rng.standard_normal(path.shape)
        return path


def _by_length(arrays: list[Float[np.ndarray, " _"]]) -> list[Float[np.ndarray, "R T"]]:
    """Series stacked with others of their length, to be filtered together."""
    lengths = sorted({len(a) for a in arrays})
    return [np.stack([a for a in arrays if len(a) == n]) for n in lengths]


def _model(theta: Float[np.ndarray, " q"]) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, " d"], float]:
    d = len(theta) // 2
    F = np.diag(np.ones(d - 1), 1)
    F[:, 0] = _from_partial(_LARGEST_PARTIAL * np.tanh(theta[:d]))
    return F, np.concatenate([[1.0], theta[d : 2 * d - 1]]), float(np.exp(np.clip(theta[-1], *_LOG_R)))


def _steady(F: Float[np.ndarray, "d d"], b: Float[np.ndarray, " d"], r: float) -> tuple[Float[np.ndarray, " d"], float]:
    """Steady gain of the one-step predictor and the variance of its innovations."""
    h = np.eye(len(b))[:, :1]
    P = solve_discrete_are(F.T, h, np.outer(b, b), np.array([[r]]))
    variance = float(P[0, 0] + r)
    return F @ P[:, 0] / variance, variance


def _innovations(
    F: Float[np.ndarray, "d d"], gain: Float[np.ndarray, " d"], groups: list[Float[np.ndarray, "_R _T"]]
) -> Float[np.ndarray, " n"]:
    ar, ma = np.concatenate([[1.0], -F[:, 0]]), np.concatenate([[1.0], gain - F[:, 0]])
    steady = [np.asarray(lfilter(ar, ma, y, axis=1))[:, min(_TRANSIENT, y.shape[1] // 4) :] for y in groups]
    return np.concatenate([e.ravel() for e in steady])


def _log_error(theta: Float[np.ndarray, " q"], groups: list[Float[np.ndarray, "_R _T"]]) -> float:
    F, b, r = _model(theta)
    try:
        gain, _ = _steady(F, b, r)
    except (np.linalg.LinAlgError, ValueError):  # at the edge of stability there is no steady state, or none is found
        return np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean(_innovations(F, gain, groups) ** 2))
    return np.log(error) if np.isfinite(error) and error > 0 else np.inf


def _descend(theta: Float[np.ndarray, " q"], groups: list[Float[np.ndarray, "_R _T"]]) -> Float[np.ndarray, " q"]:
    start = _log_error(theta, groups)
    if not np.isfinite(start):
        return theta
    # The line search may try points without a steady state; to it they are merely bad.
    penalised = lambda t: min(_log_error(t, groups), start + 10.0)  # noqa: E731
    found = minimize(penalised, theta, method="BFGS", options={"gtol": 1e-5, "maxiter": 100})
    return found.x if found.fun <= start else theta


def _maximise(groups: list[Float[np.ndarray, "_R _T"]], d: int) -> Float[np.ndarray, " q"]:
    """Best of several starts that differ in the share of observation noise."""
    partial = np.arctanh(np.clip(_to_partial(_yule_walker(groups, d)), -0.9999, 0.9999))
    starts = [np.concatenate([partial, np.zeros(d - 1), [log_r]]) for log_r in _LOG_R_STARTS]
    return min((_descend(s, groups) for s in starts), key=lambda t: _log_error(t, groups))


def _yule_walker(groups: list[Float[np.ndarray, "_R _T"]], d: int) -> Float[np.ndarray, " d"]:
    """Autoregressive part from autocorrelations beyond lag d, which white noise on the observations leaves alone."""
    last = min(4 * d + 10, max(g.shape[1] for g in groups) - 1)
    acf = autocorrelation([row for g in groups for row in g], last)[:, 0]
    lags = np.arange(min(d + 1, last), last + 1)
    past = acf[np.abs(lags[:, None] - np.arange(1, d + 1))]
    phi = np.linalg.lstsq(past, acf[lags], rcond=None)[0]
    roots = np.roots(np.concatenate([[1.0], -phi]))
    size = np.abs(roots)
    roots = np.where(size > 1, roots / np.maximum(size, 1e-9) ** 2, roots)  # an explosive root becomes its mirror image
    roots = roots * np.minimum(1.0, _INNERMOST / np.maximum(np.abs(roots), 1e-9))
    padded = np.concatenate([roots, np.zeros(d - len(roots))])  # np.roots drops those at zero
    return -np.poly(padded)[1:].real


def _from_partial(partial: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Coefficients of the stable autoregression with these partial autocorrelations (Levinson and Durbin)."""
    phi = np.zeros(0)
    for p in partial:
        phi = np.append(phi - p * phi[::-1], p)
    return phi


def _to_partial(phi: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    partial = np.zeros(len(phi))
    for k in range(len(phi) - 1, -1, -1):
        partial[k] = p = phi[k]
        phi = (phi[:k] + p * phi[:k][::-1]) / max(1 - p**2, 1e-9)
    return partial
