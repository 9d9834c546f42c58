"""Where the mean drift vanishes, and whether states near there stay.

Notation   f: mean drift [D]   J: its Jacobian   mu: eigenvalues of J   h: the sample interval
Equations  Newton: x <- x - J^-1 f(x), from many starts
           m = 1 + mu h: multipliers of one step      lam = log(m) / h: eigenvalues of continuous time

The learned equation is stepped at the sample interval (docs/theory.md): what it says of continuous time is the flow
that does in h what its step does. A system dx = -a x dt, learned from samples h apart, has m = exp(-a h), so mu is not
-a, but lam is. A point is stable when all Re(lam) < 0, which is |m| < 1. A real m of zero or below belongs to no flow:
the motion turns by half a cycle or more between two samples, and its rate cannot be told.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Complex, Float
from scipy import optimize

Moments = Callable[[Float[np.ndarray, "K D"]], tuple[np.ndarray, np.ndarray]]

_ITERATIONS = 40
_DIFFERENCE = 1e-4  # of the spread of the states: central differences are then good to about 8 digits
_TOLERANCE = 1e-7  # |f| at a fixed point, over its root mean square along the states
_ZERO = 1e-6  # a multiplier that differences cannot tell from zero
_REAL = 1e-9  # radians a step: a smaller angle is the rounding of none
_SAME = 1e-2  # of the spread: nearer points are one


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A state at which the mean drift is zero, inside the convex hull of the states that the data went through."""

    x: Float[np.ndarray, " D"]
    eigenvalues: Complex[np.ndarray, " D"]
    """Of continuous time, per unit of the user's time; largest real part first."""
    step: float
    uncertainty: float
    """Sd of the drift at the point over the root mean square drift along the data: near 1, nothing is known there."""

    @property
    def multipliers(self) -> Complex[np.ndarray, " D"]:
        """Growth of small deviations over one sample interval."""
        growth, angle = np.exp(np.real(self.eigenvalues) * self.step), np.imag(self.eigenvalues) * self.step
        return growth * np.exp(1j * angle)

    @property
    def too_coarse(self) -> bool:
        """Whether the sampling is too coarse to tell the rate of some direction: its multiplier is zero or negative."""
        return bool(self.lost.any())

    @property
    def kind(self) -> str:
        """As "stable node", "unstable focus", "saddle" or "saddle-focus"."""
        turns = bool(self._turning.any())
        grows = np.real(self.eigenvalues) > 0.0
        if grows.any() and not grows.all():
            return "saddle-focus" if turns else "saddle"
        return f"{'unstable' if grows.all() else 'stable'} {'focus' if turns else 'node'}"

    @property
    def period(self) -> float:
        """Time of a turn about the point along its slowest-decaying pair; infinite where nothing turns."""
        turning = np.abs(np.imag(self.eigenvalues))[self._turning]
        return float(2 * np.pi / turning[0]) if turning.size else np.inf

    @property
    def lost(self) -> Bool[np.ndarray, " D"]:
        """Of each eigenvalue, whether the sampling is too coarse for it."""
        half_a_turn = np.abs(np.imag(self.eigenvalues)) * self.step >= np.pi * (1 - _REAL)
        return half_a_turn | (np.abs(self.multipliers) < _ZERO)

    @property
    def _turning(self) -> Bool[np.ndarray, " D"]:
        return (np.abs(np.imag(self.eigenvalues)) * self.step > _REAL) & ~self.lost


def continuous(eigenvalues: np.ndarray, step: float) -> Complex[np.ndarray, " D"]:
    """Eigenvalues of continuous time from those of a drift that is stepped at ``step``; largest real part first.

    -inf where a step takes a direction to zero at once; half a turn a step where its multiplier is negative."""
    multipliers = 1.0 + np.asarray(eigenvalues, dtype=complex) * step
    size, angle = np.abs(multipliers), np.angle(multipliers)
    growth = np.log(size, out=np.full(size.shape, -np.inf), where=size > 0)
    order = np.lexsort((-angle, -growth.round(9)))
    rates = np.empty(size.shape, dtype=complex)
    rates.real, rates.imag = growth[order] / step, angle[order] / step  # apart: complex infinities divide to NaN
    return rates


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
    return tuple(FixedPoint(x[k], continuous(np.linalg.eigvals(jacobian[k]), step), step, float(sd[k])) for k in found)


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
