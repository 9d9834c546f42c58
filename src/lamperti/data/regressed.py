"""Delay coordinates in which a drift, regressed and left to run, forecasts best: the newest sample and what adds to it.

Notation   w: a window of samples, the newest last [W*P]      x = B (w - mean): its d coordinates
           x' - x = f(x) + e: increments, regressed on functions of x      B is turned so that Cov(e) is diagonal

Where recordings have little noise, the state is a function of the last few samples, and the drift a regression away.
Which window and how many coordinates, forecasts of parts that the regression has not seen tell (`free_running`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float
from lamperti.data.coordinates import NEGLIGIBLE
from lamperti.data.delay import LONGEST_WINDOW, hankel, window_length
from lamperti.data.free_running import FREE_DRIFT, FreeRun, free_runs, regress
from lamperti.data.predictive import horizons, newest_directions, windows_and_futures

MOST_DIMENSIONS = 6
_LEAST_DIMENSIONS = 2
_SHORTEST = 3
_WINDOWS = 12  # that the data must hold


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
    runs = free_runs(arrays, [("newest", d, w) for w in windows for d in _dimensions(n_channels, dimension, w)])
    if not runs:
        return None
    best = min(runs, key=lambda run: run.error)
    alike = [run for run in runs if _about_as_good(run, best)]
    taken = min(alike, key=lambda run: (run.dimension, run.error))
    mean, B = _directions(arrays, taken.window, taken.dimension)
    by_dimension = {run.dimension: run for run in sorted(runs, key=lambda run: -run.error)}
    curve = tuple((d, by_dimension[d].error, by_dimension[d].se) for d in sorted(by_dimension))
    return DelayCoordinates(taken.window, mean, B, curve)


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


def _about_as_good(run: FreeRun, best: FreeRun) -> bool:
    gap, se = run.behind(best)
    return gap <= min(se, NEGLIGIBLE)


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
    known = np.isfinite(x).all(axis=1) & np.isfinite(after).all(axis=1)
    left = regress(x[known], after[known], x[known], FREE_DRIFT).left
    _, axes = np.linalg.eigh(np.cov(left.T).reshape(dimension, dimension))
    return mean, axes.T[::-1] @ B
