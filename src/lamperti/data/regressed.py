"""Delay coordinates in which a regressed drift, left to run, forecasts best: the newest sample and what adds to it.

Notation   w: a window of samples, the newest last [W*P]      x = B (w - mean): its d coordinates
           x' - x = f(x) + e: increments, regressed on functions of x      B is turned so that Cov(e) is diagonal

Where recordings have little noise, the state is a function of the last few samples, and the drift a regression away.
Which window and how many coordinates, forecasts of parts that the regression has not seen tell (`free_running`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float
from lamperti.data.delay import LONGEST_WINDOW, hankel, window_length
from lamperti.data.free_running import FREE_DRIFT, free_runs, regress
from lamperti.data.predictive import horizons, newest_directions, windows_and_futures

MOST_DIMENSIONS = 6
_LEAST_DIMENSIONS = 2
_SHORTEST = 3
_WINDOWS = 12  # that the data must hold
_LOOKED_AT = 5  # of all that are compared by one part of the data, so many are by all of it
_CLEAN = 0.4
"""Share of what one-step predictions leave that may be noise of the observations, below which there is no sign of it.
White increments of the motion have .3 by themselves; with noise of a third of their variance it is .4."""
_NOISE_DIMENSIONS, _NOISE_ROWS = 5, 8_000
_ALIKE = 0.01  # of the error, up to which fewer coordinates are taken


@dataclass(frozen=True, eq=False)
class DelayCoordinates:
    """Functions of a window that make a state, and the error by dimension of those that were compared."""

    window: int
    mean: Float[np.ndarray, " V"]
    B: Float[np.ndarray, "d V"]
    curve: tuple[tuple[int, float, float], ...]
    """Dimension, CRPS of free-running forecasts in sds of the data, and its standard error."""

    @property
    def dimension(self) -> int:
        return len(self.B)


def delay_coordinates(
    arrays: Sequence[Float[np.ndarray, "_ P"]], *, dimension: int | None = None, window: int | None = None
) -> DelayCoordinates | None:
    """The smallest number of coordinates, and the window, whose forecasts are about as good as the best; None where the
    data is too short to tell. What is given is kept."""
    n_channels = arrays[0].shape[1]
    windows = _windows(arrays, window)
    offered = [(d, w) for w in windows for d in _dimensions(n_channels, dimension, w)]
    first = free_runs(arrays, offered, n_folds=1)
    if not first:
        return None
    leading = sorted(range(len(first)), key=lambda i: first[i].error)[:_LOOKED_AT]
    runs = free_runs(arrays, [offered[i] for i in leading])
    best = min(runs, key=lambda run: run.error)
    alike = [run for run in runs if run.error <= (1 + _ALIKE) * best.error]
    taken = min(alike, key=lambda run: (run.dimension, run.error))
    mean, B = _directions(arrays, taken.window, taken.dimension)
    by_dimension = {run.dimension: run for run in sorted([*first, *runs], key=lambda run: -run.error)}
    by_dimension[taken.dimension] = taken
    curve = tuple((d, by_dimension[d].error, by_dimension[d].se) for d in sorted(by_dimension))
    return DelayCoordinates(taken.window, mean, B, curve)


def is_clean(arrays: Sequence[Float[np.ndarray, "_ P"]]) -> bool:
    """Whether nothing speaks for noise of the observations, so that a window of samples tells the state.

    Third differences of white noise have twenty times its variance. Where those of the data are small beside what a
    regression on delay coordinates leaves of the next sample, that is motion. Medians, because spikes have large third
    differences and are no noise."""
    n_channels = arrays[0].shape[1]
    window = max(min(window_length(arrays), LONGEST_WINDOW), _SHORTEST, -(-_NOISE_DIMENSIONS // n_channels))
    long = [y for y in arrays if len(y) > 2 * window]
    if not long:
        return False
    rng = np.random.default_rng(0)
    past, future = windows_and_futures(long, window, horizons(window), rng)
    if len(past) < _NOISE_ROWS // 80:
        return False
    dimension = max(min(_NOISE_DIMENSIONS, past.shape[1]), n_channels)
    mean, B = newest_directions(past, future, dimension, n_channels)
    keep = np.sort(rng.permutation(len(past))[:_NOISE_ROWS])
    stepped = np.concatenate([past[keep][:, n_channels:], future[keep][:, :n_channels]], axis=1)
    left = regress((past[keep] - mean) @ B.T, (stepped - mean) @ B.T, past[keep][:, -n_channels:], FREE_DRIFT).left
    unpredicted = left[:, :n_channels] @ np.linalg.inv(B[:n_channels, -n_channels:]).T
    thirds = np.concatenate([np.diff(y, 3, axis=0) for y in long])
    share = np.nanmedian(thirds**2, axis=0) / 20.0 / np.maximum(np.median(unpredicted**2, axis=0), np.finfo(float).tiny)
    return bool(np.mean(share) < _CLEAN)


def _windows(arrays: Sequence[Float[np.ndarray, "_ P"]], window: int | None) -> list[int]:
    if window:
        return [window]
    usual = window_length(arrays)
    longest, total = max(map(len, arrays)), sum(map(len, arrays))
    offered = sorted({min(max(w, _SHORTEST), LONGEST_WINDOW) for w in (usual // 2, usual, 2 * usual, 4 * usual)})
    return [w for w in offered if 4 * w <= longest and _WINDOWS * w <= total] or [_SHORTEST]


def _dimensions(n_channels: int, dimension: int | None, window: int) -> list[int]:
    most = window * n_channels
    if dimension:
        return [dimension] if dimension <= most else []
    return [d for d in range(max(_LEAST_DIMENSIONS, n_channels), max(MOST_DIMENSIONS, n_channels) + 1) if d <= most]


def _directions(
    arrays: Sequence[Float[np.ndarray, "_ P"]], window: int, dimension: int
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, "d V"]]:
    """Of all the data, turned to where the noise of the motion is diagonal."""
    n_channels = arrays[0].shape[1]
    long = [y for y in arrays if len(y) > window + 1]
    shortest = min(window, max(map(len, long)) - window)
    past, future = windows_and_futures(long, window, horizons(shortest), np.random.default_rng(0))
    mean, B = newest_directions(past, future, dimension, n_channels)
    parts = [(hankel(y, window) - mean) @ B.T for y in long]
    x, after = (np.concatenate([part[rows] for part in parts]) for rows in (slice(None, -1), slice(1, None)))
    known = np.flatnonzero(np.isfinite(x).all(axis=1) & np.isfinite(after).all(axis=1))
    known = known[np.unique(np.linspace(0, len(known) - 1, _NOISE_ROWS).round().astype(int))]
    left = regress(x[known], after[known], x[known], FREE_DRIFT).left
    _, axes = np.linalg.eigh(np.cov(left.T).reshape(dimension, dimension))
    return mean, axes.T[::-1] @ B
