"""Delay coordinates that predict: the few linear functions of a window that say most of what follows it.

Notation   p: a window of W samples [W*P]      f: the samples at some horizons after it [F]
           S_pp, S_fp: their covariances      E = S_ff - S_fp S_pp^-1 S_pf: what a linear prediction leaves
           x = B p with Cov(x) = I: scores of the leading right singular vectors of diag(E)^-1/2 S_fp S_pp^-1/2

Principal components of a window are the directions in which it varies most: with a slow wander under sharp waves, the
wander. Reduced-rank regression asks instead which d functions of the window leave the least squared error of the
samples that follow, each horizon measured in what cannot be predicted of it. They are those of the newest sample and
not of the window's middle, so that the emission starts with the noise of the data, not with the lag of a window.
"""

from collections.abc import Sequence

import numpy as np

from lamperti._typing import Float, Int
from lamperti.data.delay import LEAST_SD, hankel

_N_HORIZONS = 12
_MAX_ROWS = 20_000
_RIDGE = 1e-4  # of the mean variance of a sample, as if a hundredth of its sd were noise
_LEAST_ERROR = 1e-4  # of a sample's variance: nothing counts as predicted better
_ROUNDING = 1e-5  # of the sd of a sample: what varies less beside other directions is not blown up


def horizons(furthest: int) -> Int[np.ndarray, " F"]:
    """Steps ahead, closer together where they are few."""
    return np.unique(np.geomspace(1, max(furthest, 1), _N_HORIZONS).round().astype(int))


def windows_and_futures(
    y: Sequence[Float[np.ndarray, "_ P"]], window: int, ahead: Int[np.ndarray, " F"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, "n V"], Float[np.ndarray, "n G"]]:
    """Windows without gaps, and the samples at the given steps after each (channels varying fastest); at most 20,000,
    drawn at random."""
    span, n_channels = window + int(ahead[-1]), y[0].shape[1]
    rows = [hankel(one, span) for one in y if len(one) >= span]
    h = np.concatenate(rows) if rows else np.empty((0, span * n_channels))
    h = h[np.isfinite(h).all(axis=1)]
    if len(h) > _MAX_ROWS:
        h = h[np.sort(rng.choice(len(h), size=_MAX_ROWS, replace=False))]
    later = ((window - 1 + ahead)[:, None] * n_channels + np.arange(n_channels)).ravel()
    return h[:, : window * n_channels], h[:, later]


def principal_directions(
    past: Float[np.ndarray, "n V"], n_directions: int
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "d V"]]:
    """The same for principal components: directions in which the windows vary most."""
    mean = past.mean(axis=0)
    values, vectors = np.linalg.eigh((past - mean).T @ (past - mean) / len(past))
    sd = np.sqrt(np.maximum(values[::-1][:n_directions], 0.0))
    return mean, vectors[:, ::-1].T[:n_directions] / np.maximum(sd, LEAST_SD * max(sd[0], np.finfo(float).tiny))[
        :, None
    ]


def predictive_directions(
    past: Float[np.ndarray, "n V"], future: Float[np.ndarray, "n G"], n_directions: int
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "d V"]]:
    """The mean of the windows, and B [d, V] with scores B (p - mean) of unit variance, uncorrelated."""
    mean = past.mean(axis=0)
    p, f = past - mean, future - future.mean(axis=0)
    S_pp, S_fp = p.T @ p / len(p), f.T @ p / len(p)
    variance = np.mean(f**2, axis=0)
    values, vectors = np.linalg.eigh(S_pp)
    values = np.maximum(values, 0.0) + _RIDGE * max(float(np.trace(S_pp)) / len(S_pp), np.finfo(float).tiny)
    half = vectors / np.sqrt(values) @ vectors.T  # S_pp^-1/2
    explained = S_fp @ half
    error = np.maximum(variance - np.sum(explained**2, axis=1), _LEAST_ERROR * variance)
    weight = 1.0 / np.sqrt(np.maximum(error, np.finfo(float).tiny))
    _, _, right = np.linalg.svd(weight[:, None] * explained, full_matrices=False)
    B = right[:n_directions] @ half
    newest = B[:, -1:]
    B = B * np.where(newest < 0, -1.0, 1.0)
    return mean, B / np.maximum(np.sqrt(np.mean((p @ B.T) ** 2, axis=0)), np.finfo(float).tiny)[:, None]


def newest_directions(
    past: Float[np.ndarray, "n V"],
    future: Float[np.ndarray, "n G"],
    n_directions: int,
    n_channels: int,
    *,
    newest: int = 1,
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "d V"]]:
    """The same with the newest samples first, and then what the whole window tells beside them: the newest sample of
    each channel, what the ``newest`` last ones hold beside it (their differences), and the functions of the window that
    predict best what all of these do not. Scores have unit variance and are uncorrelated."""
    mean = past.mean(axis=0)
    p, f, P = past - mean, future - future.mean(axis=0), n_channels
    now = p[:, -P:]
    values, vectors = np.linalg.eigh(now.T @ now / len(p))
    values = np.maximum(values[::-1], LEAST_SD**2 * max(float(values[-1]), np.finfo(float).tiny))
    B = np.zeros((P, past.shape[1]))
    B[:, -P:] = (vectors[:, ::-1] / np.sqrt(values)).T
    B = B[:n_directions]
    for samples, most in ((newest * P, newest * P), (past.shape[1], n_directions)):
        n_more = min(most, n_directions, samples) - len(B)
        if n_more > 0:
            B = np.concatenate([B, _beside(B, p, f, samples, n_more)])
    return mean, B


def _beside(
    B: Float[np.ndarray, "d V"],
    p: Float[np.ndarray, "n V"],
    f: Float[np.ndarray, "n G"],
    samples: int,
    n_more: int,
) -> Float[np.ndarray, "e V"]:
    """What the end of the window (so many of its columns) tells beside B p: directions of what a regression on B p
    leaves of the windows that predict best what it leaves of the futures."""
    x = p @ B.T
    onto = np.linalg.lstsq(x.T @ x / len(p), x.T @ np.concatenate([p, f], axis=1) / len(p), rcond=None)[0]
    of_window, of_future = onto[:, : p.shape[1]], onto[:, p.shape[1] :]
    _, found = predictive_directions((p - x @ of_window)[:, -samples:], f - x @ of_future, n_more)
    most = 1.0 / max(_ROUNDING * float(p.std()), np.finfo(float).tiny)
    found = found * np.minimum(1.0, most / np.linalg.norm(found, axis=1))[:, None]
    more = np.zeros((len(found), p.shape[1]))
    more[:, -samples:] = found
    return more - more @ of_window.T @ B
