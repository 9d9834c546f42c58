"""The Gaussian over a whole path, written out as one big matrix: slow, plain, and hard to get wrong.

Notation   X: the path, stacked [T D]      J, h: its joint precision and information
           E(X) = -log(initial x transitions x potentials) = X'JX/2 - h'X + constant
"""

from typing import NamedTuple

import numpy as np

from lamperti.interfaces import AffineStep, Gaussian, Potentials


class DensePath(NamedTuple):
    """The exact smoothing distribution of a linear-Gaussian chain."""

    mean: np.ndarray  # [T, D]
    cov: np.ndarray  # [T, D, T, D]
    log_normaliser: float
    entropy: float

    @property
    def marginal_cov(self) -> np.ndarray:
        """[T, D, D]."""
        return np.stack([self.cov[t, :, t] for t in range(len(self.mean))])

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log-density of each path in x [S, T, D]."""
        size = self.mean.size
        away = (np.asarray(x) - self.mean).reshape(-1, size)
        cov = self.cov.reshape(size, size)
        quad = np.sum(away * np.linalg.solve(cov, away.T).T, axis=1)
        return -0.5 * (quad + np.linalg.slogdet(cov)[1] + size * np.log(2 * np.pi))


def dense_path(initial: Gaussian, steps: AffineStep, potentials: Potentials) -> DensePath:
    """Joint Gaussian of all states; ``steps`` has a leading time axis of length T - 1."""
    n, d = np.shape(potentials.information)
    J, h = np.zeros((n, d, n, d)), np.array(potentials.information)
    for t, L in enumerate(np.asarray(potentials.precision)):
        J[t, :, t] += L
    start, inverse = np.asarray(initial.mean), np.linalg.inv(np.asarray(initial.cov))
    J[0, :, 0] += inverse
    h[0] += inverse @ start
    constant = 0.5 * (start @ inverse @ start - np.linalg.slogdet(inverse)[1])
    for t in range(n - 1):
        F, b, noise = (np.asarray(a[t]) for a in (steps.F, steps.b, np.linalg.inv(steps.Omega)))
        J[t, :, t] += F.T @ noise @ F
        J[t, :, t + 1] -= F.T @ noise
        J[t + 1, :, t] -= noise @ F
        J[t + 1, :, t + 1] += noise
        h[t] -= F.T @ noise @ b
        h[t + 1] += noise @ b
        constant += 0.5 * (b @ noise @ b - np.linalg.slogdet(noise)[1])
    size = n * d
    J, h = J.reshape(size, size), h.reshape(size)
    cov = np.linalg.inv(J)
    log_det = np.linalg.slogdet(J)[1]
    return DensePath(
        mean=(cov @ h).reshape(n, d),
        cov=cov.reshape(n, d, n, d),
        # The factors (2 pi)^(n d / 2) of the densities and of the integral cancel.
        log_normaliser=float(0.5 * h @ cov @ h - 0.5 * log_det - constant),
        entropy=float(0.5 * (size * (1 + np.log(2 * np.pi)) - log_det)),
    )
