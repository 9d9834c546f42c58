"""Delay coordinates in which a regressed drift, left to run, forecasts best: the newest samples and what adds to them.

Notation   w: a window of samples, the newest last [W*P]      x = B (w - mean): its d coordinates
           x' - x = f(x) + e: increments, regressed on functions of x      B is turned so that Cov(e) is diagonal

Where recordings have little noise, the state is a function of the last few samples, and the drift a regression away.
Two scales of time are in most of them: the newest three or five samples, each for itself, say where a fast wave is, and
a few functions of a long window where in a slow cycle. Which of them, of which window and how many coordinates,
forecasts of parts that the regression has not seen tell (`free_running`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float
from lamperti.data.delay import LONGEST_WINDOW, hankel, window_length
from lamperti.data.free_running import FURTHEST, SHAKE, Delays, Drift, free_drift, free_runs, regress
from lamperti.data.predictive import horizons, newest_directions, windows_and_futures

_LEAST_DIMENSIONS, _MOST_MORE = 2, 3  # of one scale of time: at least, and at most beside the newest sample
# Of two scales: newest samples, of which one channel has three at least, and functions of the window beside them.
_NEWEST, _LEAST_NEWEST, _BESIDE = (2, 3, 5), 3, (2, 3, 5)
MOST_DIMENSIONS = 10
_SHORTEST = 3
_LONG_WINDOWS = (64, 128, 256)
_WINDOWS = 12  # that the data must hold
_WORTH = 1.2  # times the least error of one part of the data, beyond which a dimension is not tried on the others
_CLEAN = 0.4
"""Share of what one-step predictions leave that may be noise of the observations, below which there is no sign of it.
White increments of the motion have .3 by themselves; with noise of a third of their variance it is .4."""
_NOISE_DIMENSIONS, _NOISE_ROWS = 5, 8_000
_NOISE_DRIFT = Drift(128, 1.0, SHAKE)
_ALIKE = 0.01  # of the error, up to which fewer coordinates are taken


@dataclass(frozen=True, eq=False)
class DelayCoordinates:
    """Functions of a window that make a state, and the error by dimension of those that were compared."""

    delays: Delays
    mean: Float[np.ndarray, " V"]
    B: Float[np.ndarray, "d V"]
    curve: tuple[tuple[int, float, float], ...]
    """Dimension, CRPS of free-running forecasts in sds of the data, and its standard error."""

    @property
    def window(self) -> int:
        return self.delays.window

    @property
    def dimension(self) -> int:
        return self.delays.dimension


def delay_coordinates(
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    *,
    dimension: int | None = None,
    window: int | None = None,
    newest: int | None = None,
) -> DelayCoordinates | None:
    """The smallest number of coordinates, and the window, whose forecasts are about as good as the best; None where the
    data is too short to tell. What is given is kept."""
    first = free_runs(arrays, _offered(arrays, dimension, window, newest), n_folds=1)
    if not first:
        return None
    leading = {run.delays.dimension: run for run in sorted(first, key=lambda run: -run.error)}
    least = min(run.error for run in first)
    runs = free_runs(arrays, [run.delays for run in leading.values() if run.error <= _WORTH * least])
    least = min(run.error for run in runs)
    alike = [run.delays for run in runs if run.error <= (1 + _ALIKE) * least]
    curve = tuple(sorted((run.delays.dimension, run.error, run.se) for run in runs))
    return coordinates_of(arrays, min(alike), curve)


def coordinates_of(
    arrays: Sequence[Float[np.ndarray, "_ P"]], delays: Delays, curve: tuple[tuple[int, float, float], ...] = ()
) -> DelayCoordinates:
    """Coordinates that were chosen before, of these data: turned to where the noise of the motion is diagonal, those of
    which the most can be predicted first. A picture of the first three is then one of the motion, not of its noise."""
    n_channels = arrays[0].shape[1]
    dimension, window, newest = delays
    long = [y for y in arrays if len(y) > window + 1]
    furthest = min(window, FURTHEST, max(map(len, long)) - window)
    past, future = windows_and_futures(long, window, horizons(furthest), np.random.default_rng(0))
    mean, B = newest_directions(past, future, dimension, n_channels, newest=newest)
    parts = [(hankel(y, window) - mean) @ B.T for y in long]
    x, after = (np.concatenate([part[rows] for part in parts]) for rows in (slice(None, -1), slice(1, None)))
    known = np.flatnonzero(np.isfinite(x).all(axis=1) & np.isfinite(after).all(axis=1))
    known = known[np.unique(np.linspace(0, len(known) - 1, _NOISE_ROWS).round().astype(int))]
    left = regress(x[known], after[known], x[known], free_drift(len(known))).left
    noise, axes = np.linalg.eigh(np.cov(left.T).reshape(dimension, dimension))
    order = np.argsort(noise / np.maximum(np.var(x[known] @ axes, axis=0), np.finfo(float).tiny), kind="stable")
    return DelayCoordinates(delays, mean, axes.T[order] @ B, curve)


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
    left = regress((past[keep] - mean) @ B.T, (stepped - mean) @ B.T, past[keep][:, -n_channels:], _NOISE_DRIFT).left
    unpredicted = left[:, :n_channels] @ np.linalg.inv(B[:n_channels, -n_channels:]).T
    thirds = np.concatenate([np.diff(y, 3, axis=0) for y in long])
    share = np.nanmedian(thirds**2, axis=0) / 20.0 / np.maximum(np.median(unpredicted**2, axis=0), np.finfo(float).tiny)
    return bool(np.mean(share) < _CLEAN)


def _offered(
    arrays: Sequence[Float[np.ndarray, "_ P"]], dimension: int | None, window: int | None, newest: int | None
) -> list[Delays]:
    """Coordinates of one scale of time and of two that such data can tell apart, with what is given."""
    n_channels = arrays[0].shape[1]
    longest, total = max(map(len, arrays)), sum(map(len, arrays))
    usual = min(window_length(arrays), LONGEST_WINDOW)
    short = sorted({min(max(w, _SHORTEST), LONGEST_WINDOW) for w in (usual // 2, usual, 2 * usual)})
    held = lambda windows: [w for w in windows if 4 * w <= longest and _WINDOWS * w <= total]  # noqa: E731
    ends = held(_LONG_WINDOWS)
    one = [
        Delays(d, w)
        for w in ([window] if window else held(short) or [_SHORTEST])
        for d in ([dimension] if dimension else range(max(_LEAST_DIMENSIONS, n_channels), n_channels + _MOST_MORE + 1))
    ]
    two = [
        Delays(d, w, s)
        for w in ([window] if window else sorted({*ends[:1], *ends[-1:]}))
        for s in ([newest] if newest else _NEWEST)
        for d in ([dimension] if dimension else [s * n_channels + more for more in _BESIDE])
        if _LEAST_NEWEST <= s * n_channels < d <= max(MOST_DIMENSIONS, dimension or 0) and 1 < s < w
    ]
    offered = [*(one if newest in (None, 1) else []), *two]
    return [delays for delays in offered if delays.dimension <= delays.window * n_channels]
