"""Kalman filter and Rauch-Tung-Striebel smoother, as in a textbook: one step at a time, with explicit inverses.

Notation   x' = F x + b + N(0, Q)      y = H x + c + N(0, diag(r)), channels missing where mask is False
           m, P: filtered      ms, Ps: smoothed
"""

from typing import NamedTuple

import numpy as np


class LinearModel(NamedTuple):
    """A linear-Gaussian state-space model with steps that differ in time, and its data."""

    m0: np.ndarray  # [D]
    P0: np.ndarray  # [D, D]
    F: np.ndarray  # [T-1, D, D]
    b: np.ndarray  # [T-1, D]
    Q: np.ndarray  # [T-1, D, D]
    H: np.ndarray  # [P, D]
    c: np.ndarray  # [P]
    r: np.ndarray  # [P]
    y: np.ndarray  # [T, P]
    mask: np.ndarray  # [T, P]


class Smoothed(NamedTuple):
    """Filtered and smoothed moments, the log-likelihood, and the entropy of the smoothing distribution."""

    m: np.ndarray
    P: np.ndarray
    ms: np.ndarray
    Ps: np.ndarray
    log_likelihood: float
    entropy: float


def simulate(weight, bias, diffusion, dt, H, c, r, observed, rng) -> LinearModel:
    """Euler steps of dx = (weight x + bias) dt + noise, observed where ``observed`` is True."""
    d = len(bias)
    F = np.eye(d) + dt[:, None, None] * weight
    b = dt[:, None] * bias
    Q = dt[:, None, None] * np.diag(diffusion)
    chol = np.tril(0.3 * rng.normal(size=(d, d))) + np.eye(d)
    m0 = rng.normal(size=d)
    x = [m0 + chol @ rng.normal(size=d)]
    for k in range(len(dt)):
        x.append(F[k] @ x[-1] + b[k] + np.sqrt(np.diag(Q[k])) * rng.normal(size=d))
    y = np.array(x) @ H.T + c + np.sqrt(r) * rng.normal(size=(len(x), len(c)))
    return LinearModel(m0, chol @ chol.T, F, b, Q, H, c, r, y, observed)


def smooth(model: LinearModel) -> Smoothed:
    """Filter forwards, smooth backwards."""
    m, P, log_likelihood = _filter(model)
    ms, Ps = [m[-1]], [P[-1]]
    entropy = _entropy(P[-1])
    for k in reversed(range(len(m) - 1)):
        F, b, Q = model.F[k], model.b[k], model.Q[k]
        predicted = F @ P[k] @ F.T + Q
        G = P[k] @ F.T @ np.linalg.inv(predicted)
        entropy += _entropy(P[k] - G @ predicted @ G.T)
        ms.insert(0, m[k] + G @ (ms[0] - F @ m[k] - b))
        Ps.insert(0, P[k] + G @ (Ps[0] - predicted) @ G.T)
    return Smoothed(np.array(m), np.array(P), np.array(ms), np.array(Ps), log_likelihood, entropy)


def _filter(model: LinearModel) -> tuple[list, list, float]:
    m, P, log_likelihood = [], [], 0.0
    mean, cov = model.m0, model.P0
    for k in range(len(model.y)):
        if k > 0:
            F = model.F[k - 1]
            mean, cov = F @ mean + model.b[k - 1], F @ cov @ F.T + model.Q[k - 1]
        seen = model.mask[k]
        if seen.any():
            H = model.H[seen]
            innovation = model.y[k, seen] - model.c[seen] - H @ mean
            S = H @ cov @ H.T + np.diag(model.r[seen])
            gain = cov @ H.T @ np.linalg.inv(S)
            log_likelihood -= 0.5 * (innovation @ np.linalg.inv(S) @ innovation + np.linalg.slogdet(2 * np.pi * S)[1])
            mean, cov = mean + gain @ innovation, cov - gain @ S @ gain.T
        m.append(mean)
        P.append(cov)
    return m, P, log_likelihood


def _entropy(cov: np.ndarray) -> float:
    return 0.5 * np.linalg.slogdet(2 * np.pi * np.e * cov)[1]


def future(m: np.ndarray, P: np.ndarray, F: np.ndarray, b: np.ndarray, Q: np.ndarray, horizon: int) -> tuple:
    """Mean [H D] and covariance [H D, H D] of the next states, one after the other, from x ~ N(m, P)."""
    d = len(m)
    means, cov = [], np.zeros((horizon * d, horizon * d))
    for h in range(horizon):
        m, P = F @ m + b, F @ P @ F.T + Q
        means.append(m)
        ahead = P
        for k in range(h, horizon):
            rows, columns = slice(k * d, (k + 1) * d), slice(h * d, (h + 1) * d)
            cov[rows, columns], cov[columns, rows] = ahead, ahead.T
            ahead = F @ ahead
    return np.concatenate(means), cov
