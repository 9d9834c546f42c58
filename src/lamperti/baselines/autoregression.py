"""Linear autoregression of a scalar series, its order chosen by an information criterion.

Notation   y' = c + a_1 y_k + a_2 y_{k-1} + ... + a_p y_{k-p+1} + e      p: order
Equations  least squares over all series;  n log(mean e^2) + (p + 1) w, the same n targets at every order, with
           w = log n: Bayesian information criterion (BIC)      w = 2: Akaike's (AIC)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lamperti._errors import ConfigError
from lamperti._typing import Float
from lamperti.baselines.interface import check_request, training_arrays
from lamperti.data.delay import hankel
from lamperti.data.series import Series

_BURN_IN = 500
_ANY = 2**31


@dataclass(frozen=True)
class Autoregression:
    """AR(p) with residuals drawn again ("bootstrap") or from a normal law ("gaussian")."""

    max_order: int = 30
    innovations: Literal["bootstrap", "gaussian"] = "bootstrap"
    criterion: Literal["bic", "aic"] = "bic"

    def __post_init__(self):
        if self.max_order < 1:
            raise ConfigError(f"max_order must be at least 1, got {self.max_order}.")

    def fit(self, series: Sequence[Series], seed: int) -> "FittedAutoregression":
        arrays = training_arrays(series, scalar="Autoregression")
        longest = max(map(len, arrays))
        # at least as many targets as coefficients in the longest series
        max_order = max(1, min(self.max_order, longest // 3))
        rows = np.concatenate([hankel(a, max_order + 1) for a in arrays if len(a) > max_order])
        past, target = rows[:, -2::-1], rows[:, -1]  # newest first
        fits = [_least_squares(past[:, :p], target) for p in range(1, max_order + 1)]
        n = len(target)
        price = np.log(n) if self.criterion == "bic" else 2.0
        score = [n * np.log(max(np.mean(e**2), np.finfo(float).tiny)) + len(w) * price for w, e in fits]
        weights, errors = fits[int(np.argmin(score))]
        mean, sd = (float(f(np.concatenate(arrays))) for f in (np.mean, np.std))
        return FittedAutoregression(weights[1:], float(weights[0]), errors, self.innovations, mean, sd)


@dataclass(frozen=True, eq=False)
class FittedAutoregression:
    coefficients: Float[np.ndarray, " p"]
    """Newest sample first."""
    intercept: float
    residuals: Float[np.ndarray, " n"]
    innovations: Literal["bootstrap", "gaussian"]
    mean: float
    sd: float

    @property
    def order(self) -> int:
        return len(self.coefficients)

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        check_request(context, horizon, n_samples, n_channels=1, least=self.order, furthest=_ANY)
        start = np.repeat(context[None, -self.order :, 0], n_samples, axis=0)
        return self._run(start, horizon, np.random.default_rng(seed))[..., None]

    def simulate(self, n_paths: int, n_steps: int, seed: int) -> Float[np.ndarray, "N T P"]:
        """Free-running paths, after a burn-in from noise about the training mean."""
        rng = np.random.default_rng(seed)
        start = self.mean + self.sd * rng.standard_normal((n_paths, self.order))
        return self._run(start, _BURN_IN + n_steps, rng)[:, _BURN_IN:, None]

    def _run(self, start: Float[np.ndarray, "S p"], n_steps: int, rng: np.random.Generator) -> Float[np.ndarray, "S H"]:
        n = len(start)
        if self.innovations == "bootstrap":
            noise = rng.choice(self.residuals, (n, n_steps))
        else:
            noise = rng.normal(0.0, self.residuals.std(), (n, n_steps))
        path = np.empty((n, self.order + n_steps))
        path[:, : self.order] = start
        oldest_first = self.coefficients[::-1]
        with np.errstate(over="ignore", invalid="ignore"):  # an unstable fit blows up, and is scored as such
            for k in range(n_steps):
                path[:, self.order + k] = self.intercept + path[:, k : k + self.order] @ oldest_first + noise[:, k]
        return path[:, self.order :]


def _least_squares(
    past: Float[np.ndarray, "n p"], target: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " n"]]:
    design = np.column_stack([np.ones(len(past)), past])
    weights = np.linalg.lstsq(design, target, rcond=None)[0]
    return weights, target - design @ weights
