"""A linear law of few coordinates that stands for an autoregression.

Notation   w: a window of W samples, oldest first, channels fastest [W P]      S: covariance of windows
           Phi: companion matrix of the autoregression      E: covariance of what it leaves of the next sample
           a_h: the rows of Phi^h that give the newest sample, so that a_h w predicts h samples ahead
           x = B (w - mean) [D]: few functions of the window that lose next to nothing of any a_h w
           x' = F x + b + noise of variances Q      y = C x + c
Equations  docs/theory.md (31)

The newest sample is one of the functions of the window, so that (x, y) is a Markov chain whatever the noise of the
observations was. Slow modes of the motion are kept as they are: a season a little too fast is wrong before long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float, Int
from lamperti.data.autoregressive import LEAST_VARIANCE, MOST, Autoregression, log_rms, skill
from lamperti.data.delay import hankel

MOST_COORDINATES = 32
_LOST = 0.01  # of the variance of a prediction's error, that few coordinates may add at any horizon
_NEWEST = 0.01  # of the variance of a one-step error: how exactly coordinates hold the newest sample
_LEAST_SHARE = 1e-9  # of the mean variance of a sample, in every direction of the windows
_SLOW, _REAL = 0.9, 1e-9  # size of an eigenvalue from which on a mode is slow; an imaginary part that is none


@dataclass(frozen=True, eq=False)
class LinearLaw:
    """x' = F x + b + noise, of variances Q; x = B (w - mean) has unit covariance, y = C x + c but for R."""

    window: int
    level_free: bool
    mean: Float[np.ndarray, " V"]
    B: Float[np.ndarray, "D V"]
    F: Float[np.ndarray, "D D"]
    b: Float[np.ndarray, " D"]
    Q: Float[np.ndarray, " D"]
    """Coordinates are those in which the noise is diagonal."""
    C: Float[np.ndarray, "P D"]
    c: Float[np.ndarray, " P"]
    R: Float[np.ndarray, " P"]
    curve: tuple[tuple[int, float, float], ...]
    """Of each number of coordinates that was tried, the error of predictions in sds of the data and its se."""

    @property
    def dimension(self) -> int:
        return len(self.B)


def reduce(
    fitted: Autoregression, arrays: Sequence[Float[np.ndarray, "_ P"]], dimension: int | None = None
) -> LinearLaw:
    """Few coordinates in place of the window: the fewest that lose next to nothing, 32 at most; or as many
    as asked for."""
    P, W = len(fitted.weights), fitted.window
    windows = np.concatenate([hankel(y, W) for y in arrays if len(y) >= W])
    mean = windows.mean(axis=0)
    S = (windows - mean).T @ (windows - mean) / len(windows)
    S += _LEAST_SHARE * max(np.trace(S) / len(S), LEAST_VARIANCE) * np.eye(len(S))
    values, vectors = np.linalg.eigh(S)
    half, back = vectors * np.sqrt(values) @ vectors.T, vectors / np.sqrt(values) @ vectors.T
    # all in coordinates in which windows are white
    Phi = back @ fitted.companion @ half
    newest = half[-P:]
    rows, errors = _predictors(fitted.companion, fitted.cov, fitted.ahead)
    cov = _unseen_over_seen(fitted, errors[P:]) * fitted.cov
    weighed = rows @ half / np.sqrt(errors)[:, None]
    most = min(MOST_COORDINATES, W * P)
    sizes = [max(min(dimension, most), min(P, most))] if dimension else range(min(P, most), most + 1)
    curve: list[tuple[int, float, float]] = []
    best = np.zeros((0, len(S)))
    for d in sizes:
        tried = [(_lost(U, Phi, newest, weighed, errors, fitted.ahead), U) for U in _subspaces(Phi, weighed, d)]
        lost, best = min(tried, key=lambda one: float(one[0].max()))
        curve.append((d, *_error(fitted, (lost * errors)[P:])))
        if lost.max() <= _LOST:
            break
    B = best @ back
    F = best @ Phi @ best.T
    noise = B[:, -P:] @ cov @ B[:, -P:].T
    outside = best @ Phi - F @ best  # what the next coordinates have of the directions that were left out
    Q = noise + outside @ outside.T
    b = B @ (fitted.companion @ mean - mean) + B[:, -P:] @ fitted.intercept
    C = newest @ best.T
    R = np.maximum(np.sum(newest**2, axis=1) - np.sum(C**2, axis=1), 0.0)
    # noise along the coordinates, so that a diffusion of independent ones is the law itself
    size, turn = np.linalg.eigh((Q + Q.T) / 2)
    T, size = turn.T[::-1], np.maximum(size[::-1], LEAST_VARIANCE)
    T = T * np.where(T @ C[0] < 0, -1.0, 1.0)[:, None]
    return LinearLaw(W, fitted.level_free, mean, T @ B, T @ F @ T.T, T @ b, size, C @ T.T, mean[-P:], R, tuple(curve))


def _unseen_over_seen(fitted: Autoregression, errors: Float[np.ndarray, " G"]) -> float:
    """By what factor squared errors of data that the law was not fitted to are larger than it says itself, averaged
    over horizons; one at least. A short record is fitted too well for its errors to tell."""
    says = np.minimum(errors / np.tile(fitted.rows.variance, len(fitted.ahead)), MOST)
    ratio = np.log(np.nanmean(fitted.squares, axis=0) / says)
    return float(np.exp(max(np.average(ratio, weights=skill([fitted.squares])), 0.0)))


def _subspaces(
    Phi: Float[np.ndarray, "V V"], weighed: Float[np.ndarray, "G V"], d: int
) -> Iterator[Float[np.ndarray, "d V"]]:
    """Orthonormal rows: some slow modes of the motion, which then go on exactly, and of what these leave of the
    predictions the leading directions."""
    speeds, left = np.linalg.eig(Phi.T)
    slow = [k for k in np.argsort(-np.abs(speeds)) if abs(speeds[k]) > _SLOW and np.imag(speeds[k]) >= 0]
    modes = np.zeros((0, len(Phi)))
    while True:
        rest = weighed - weighed @ modes.T @ modes
        _, _, right = np.linalg.svd(rest, full_matrices=False)
        yield np.linalg.qr(np.concatenate([modes, right[: d - len(modes)]]).T)[0].T
        # the next mode is the one that tells most of what is left
        gains = [(float(np.sum((rest @ _plane(left[:, k], modes).T) ** 2)), k) for k in slow]
        fitting = [(gain, k) for gain, k in gains if len(modes) + len(_plane(left[:, k], modes)) <= d]
        if not fitting:
            return
        k = max(fitting)[1]
        slow.remove(k)
        modes = np.concatenate([modes, _plane(left[:, k], modes)])


def _plane(mode: np.ndarray, beside: Float[np.ndarray, "e V"]) -> Float[np.ndarray, "f V"]:
    """What a mode, real or of a complex pair, has beside others: one orthonormal row or two."""
    real, imaginary = np.real(mode), np.imag(mode)
    parts = np.stack([real, imaginary]) if np.abs(imaginary).max() > _REAL else real[None]
    parts = parts - parts @ beside.T @ beside
    return np.linalg.qr(parts.T)[0].T


def _lost(
    U: Float[np.ndarray, "d V"],
    Phi: Float[np.ndarray, "V V"],
    newest: Float[np.ndarray, "P V"],
    weighed: Float[np.ndarray, "G V"],
    errors: Float[np.ndarray, " G"],
    ahead: Int[np.ndarray, " F"],
) -> Float[np.ndarray, " G"]:
    """What the coordinates lose of each prediction, in units of the variance of its error, when they go on by
    themselves."""
    F, state = U @ Phi @ U.T, newest @ U.T
    found = [state @ U]
    for h in range(1, int(ahead[-1]) + 1):
        state = state @ F
        if h in ahead:
            found.append(state @ U)
    predicted = np.concatenate(found) / np.sqrt(errors)[:, None]
    return np.sum((predicted - weighed) ** 2, axis=1)


def _error(fitted: Autoregression, lost: Float[np.ndarray, " G"]) -> tuple[float, float]:
    """Root mean square error of cross-validated predictions with what is lost of them, and its standard error."""
    squares = fitted.squares + lost
    weight = skill([fitted.squares])

    def log_error(keep: Int[np.ndarray, " K"]) -> float:
        return float(np.average(log_rms(squares[keep]), weights=weight))

    stretches = np.arange(len(squares))
    each = [log_error(np.delete(stretches, i)) for i in stretches] if len(squares) > 1 else [0.0]
    error = float(np.exp(log_error(stretches)))
    return error, error * float(np.sqrt((len(each) - 1) * np.var(each)))


def _predictors(
    Phi: Float[np.ndarray, "V V"], cov: Float[np.ndarray, "P P"], ahead: Int[np.ndarray, " F"]
) -> tuple[Float[np.ndarray, "G V"], Float[np.ndarray, " G"]]:
    """Rows that give each channel now and at each horizon, and the variance of what they leave."""
    P = len(cov)
    now = np.eye(len(Phi))[-P:]
    rows, errors = [now], [_NEWEST * np.diagonal(cov)]
    power, variance = now, np.zeros(P)
    for h in range(1, int(ahead[-1]) + 1):
        response = power[:, -P:]  # of the sample so far ahead to what is new in the next one
        variance = variance + np.einsum("pi,ij,pj->p", response, cov, response)
        power = power @ Phi
        if h in ahead:
            rows.append(power)
            errors.append(variance)
    return np.concatenate(rows), np.maximum(np.concatenate(errors), LEAST_VARIANCE)
