"""Where the mean drift vanishes, and whether states near there stay.

Notation   f: mean drift [D]   J: its Jacobian   mu: eigenvalues of J   h: the sample interval
Equations  Newton: x <- x - J^-1 f(x), from many starts      m = 1 + mu h: multipliers of one step

The learned equation is stepped at the sample interval (docs/theory.md), so a point is stable when all |m| < 1. For
short steps that is Re(mu) < 0; for a fast rotation it is not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float
from scipy import optimize

Moments = Callable[[Float[np.ndarray, "K D"]], tuple[np.ndarray, np.ndarray]]

_ITERATIONS = 40
_DIFFERENCE = 1e-4  # of the spread of the states: central differences are then good to about 8 digits
_TOLERANCE = 1e-7  # |f| at a fixed point, over its root mean square along the states
_SAME = 1e-2  # of the spread: nearer points are one


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A state at which the mean drift is zero, inside the convex hull of the states that the data went through."""

    x: Float[np.ndarray, " D"]
    eigenvalues: Complex[np.ndarray, " D"]
    """Of the Jacobian, per unit of the user's time; largest real part first."""
    step: float
    uncertainty: float
    """Sd of the drift at the point over the root mean square drift along the data: near 1, nothing is known there."""

    @property
    def multipliers(self) -> Complex[np.ndarray, " D"]:
        """Growth of small deviations over one sample interval."""
        return 1.0 + self.eigenvalues * self.step

    @property
    def kind(self) -> str:
        """As "stable node", "unstable focus", "saddle" or "saddle-focus"."""
        turns = bool(np.any(np.abs(np.imag(self.eigenvalues)) > 1e-6 * np.abs(self.eigenvalues).max(initial=0.0)))
        grows = np.abs(self.multipliers) > 1.0
        if grows.any() and not grows.all():
            return "saddle-focus" if turns else "saddle"
        return f"{'unstable' if grows.all() else 'stable'} {'focus' if turns else 'node'}"

    @property
    def period(self) -> float:
        """Time of a turn about the point along its slowest-decaying pair; infinite where nothing turns."""
        angle = np.abs(np.angle(self.multipliers))
        turning = angle[np.imag(self.eigenvalues) != 0]
        return float(2 * np.pi * self.step / turning[0]) if turning.size else np.inf


def fixed_points(
    drift: Moments, states: Float[np.ndarray, "K D"], step: float, *, n_starts: int = 64, seed: int = 0
) -> tuple[FixedPoint, ...]:
    """Zeros of a drift among states, by Newton's method from many starts; nearest to the centre of the states first.

    Args:
        drift: points [K, D] to mean and sd of the drift, as ``FitResult.drift``.
        states: what the data went through; points outside their convex hull are not reported.
        step: sample interval, in the time unit of the drift.
    """
    rng = np.random.default_rng(seed)
    spread = states.std(axis=0) + np.finfo(float).tiny
    # Half of the starts lie between two states: a cycle has its fixed point where no data is.
    a, b = states[rng.integers(len(states), size=(2, n_starts))]
    share = np.where(np.arange(n_starts) % 2, 1.0, rng.uniform(size=n_starts))[:, None]
    x = share * a + (1 - share) * b
    speed = float(np.sqrt(np.mean((drift(states)[0] / spread) ** 2)))
    for _ in range(_ITERATIONS):
        f, jacobian = _linearised(drift, x, spread)
        move = -np.einsum("kij,kj->ki", np.linalg.pinv(np.nan_to_num(jacobian), rcond=1e-10), f)
        length = np.linalg.norm(move, axis=1, keepdims=True)
        x = x + spread * move / np.maximum(length, 1.0)
    f, jacobian = _linearised(drift, x, spread)
    centre = states.mean(axis=0)
    found: list[int] = []
    for k in np.argsort(np.linalg.norm((x - centre) / spread, axis=1)):
        small = np.abs(f[k]).max() <= _TOLERANCE * speed
        if small and all(np.linalg.norm((x[k] - x[j]) / spread) > _SAME for j in found) and inside(x[k], states):
            found.append(int(k))
    if not found:
        return ()
    sd = np.sqrt(np.mean((drift(x)[1] / spread) ** 2, axis=1)) / max(speed, np.finfo(float).tiny)
    return tuple(FixedPoint(x[k], _ordered(np.linalg.eigvals(jacobian[k])), step, float(sd[k])) for k in found)


def inside(x: Float[np.ndarray, " D"], states: Float[np.ndarray, "K D"]) -> bool:
    """Whether a point is a weighted mean of states."""
    spread = states.std(axis=0) + np.finfo(float).tiny
    away = (states - x) / spread
    conditions = np.vstack([away.T, np.ones(len(states))])
    target = np.append(np.zeros(states.shape[1]), 1.0)
    return bool(optimize.linprog(np.zeros(len(states)), A_eq=conditions, b_eq=target, method="highs").status == 0)


def _linearised(drift: Moments, x: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drift and Jacobian at points, in coordinates of unit spread (the eigenvalues do not depend on them)."""
    n, dim = x.shape
    moves = np.concatenate([np.zeros((1, dim)), np.eye(dim), -np.eye(dim)]) * _DIFFERENCE
    values = drift((x[None] + spread * moves[:, None]).reshape(-1, dim))[0].reshape(-1, n, dim) / spread
    slopes = (values[1 : dim + 1] - values[dim + 1 :]) / (2 * _DIFFERENCE)  # [D (along), n, D (of)]
    return values[0], np.moveaxis(slopes, 0, -1)


def _ordered(eigenvalues: np.ndarray) -> Complex[np.ndarray, " D"]:
    return eigenvalues[np.lexsort((-np.imag(eigenvalues), -np.real(eigenvalues).round(9)))].astype(complex)
