"""Conjugate regression with Normal-Gamma prior: posterior in weight space, evidence in function space.

Notation   r = X v + N(0, I / lam),  v | lam ~ N(0, I / lam),  lam ~ Gamma(a, rate b)
           r | lam ~ N(0, S / lam),  S = I + X X'
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln


class Posterior(NamedTuple):
    """Of one coordinate."""

    shape: float
    rate: float
    shift: np.ndarray
    prec: np.ndarray


def posterior(X: np.ndarray, r: np.ndarray, a: float, b: float) -> Posterior:
    """The exact posterior of (v, lam)."""
    prec = np.eye(X.shape[1]) + X.T @ X
    mu = np.linalg.solve(prec, X.T @ r)
    return Posterior(a + 0.5 * len(r), b + 0.5 * (r @ r - mu @ prec @ mu), X.T @ r, prec)


def path_log_evidence(K: np.ndarray, dx: np.ndarray, dt: np.ndarray, a: float, b: float) -> float:
    """log p(dx) for dx = f dt + N(0, dt / lam), f | lam ~ N(0, K / lam): v and lam integrated out.

    ``dx`` is centred: what the mean function moves is already taken away."""
    n = len(dx)
    root = np.sqrt(dt)
    r = dx / root
    S = np.eye(n) + root[:, None] * K * root[None, :]
    quad = r @ np.linalg.solve(S, r)
    return (
        -0.5 * n * np.log(2 * np.pi)
        - 0.5 * np.sum(np.log(dt))
        - 0.5 * np.linalg.slogdet(S)[1]
        + a * np.log(b)
        - gammaln(a)
        + gammaln(a + 0.5 * n)
        - (a + 0.5 * n) * np.log(b + 0.5 * quad)
    )


def log_density(v: np.ndarray, lam: np.ndarray, q: Posterior) -> np.ndarray:
    """log of the Normal-Gamma density at draws v [S, M], lam [S]."""
    away = v - np.linalg.solve(q.prec, q.shift)
    quad = np.einsum("si,ij,sj->s", away, q.prec, away)
    m = v.shape[1]
    normal = 0.5 * (np.linalg.slogdet(q.prec)[1] + m * np.log(lam / (2 * np.pi)) - lam * quad)
    gamma = q.shape * np.log(q.rate) - gammaln(q.shape) + (q.shape - 1) * np.log(lam) - q.rate * lam
    return normal + gamma
