"""Expectations under a Gaussian by Gauss-Hermite quadrature on a full grid."""

import itertools

import numpy as np


def gauss_hermite(mean: np.ndarray, cov: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [n^D, D] and weights [n^D] of N(mean, cov)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    d = len(mean)
    grid = np.array(list(itertools.product(nodes, repeat=d)))
    w = np.array(list(itertools.product(weights / weights.sum(), repeat=d))).prod(axis=1)
    return mean + grid @ np.linalg.cholesky(cov).T, w
