"""A regularised autoregression: the next sample by ridge regression on a window of the last ones.

Notation   w: a window of W samples, oldest first, channels fastest [W P]      y': the sample after it [P]
           y' = a w + c + e, Cov(e) = E: ridge regression on the window; "level-free": y' - y on the differences in it
           Phi: companion matrix, the window one step later given this one [WP, WP]

Ridge and windows are chosen by cross-validated predictions at many horizons, made by going on step by step. With many
lags and a ridge this predicts better than an autoregression of chosen order wherever there is a season or a trend.
Level-free, the level of the data drops out of the law: a trend goes on wherever it has come to.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float, Int
from lamperti.data.delay import hankel
from lamperti.data.predictive import horizons

# Up to a week of hours, and what is left of it: a daily course that differs by the day of the week is common.
_WINDOWS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 53, 64, 80, 100, 128, 160, 192)
_USUAL_WINDOW, _LONG = 64, 8  # samples; a longer window is tried where the data is as many times as long
_USUAL_RIDGE = 1.0
_RIDGES = 10.0 ** np.arange(-5, 3)  # of the mean square of a regressor, and the samples it weighs as much as
_LEAST_ROWS, _MAX_ROWS = 24, 4_000
_N_FOLDS, _N_BLOCKS = 8, 12
_FURTHEST = 64  # samples ahead that count
_FIRST_PARTS = (0.5, 0.6, 0.7, 0.8)  # of the data, after which levels are looked at
_CLEARLY, _ERRORS = 0.05, 2.0  # of the error, and standard errors, by which level-free must be better
_LEAST_SKILL = 0.02  # share of the variance, that counts for a horizon at which nothing is predicted
MOST = 4.0  # squared error in units of the variance, beyond which nothing counts as worse
LEAST_VARIANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Autoregression:
    """The next sample by a window of the last ones."""

    window: int
    level_free: bool
    weights: Float[np.ndarray, "P V"]
    intercept: Float[np.ndarray, " P"]
    cov: Float[np.ndarray, "P P"]
    """Of what it leaves of the next sample, with a correction for the coefficients it took."""
    squares: Float[np.ndarray, "B G"]
    """Mean squared errors of data that it was not fitted to, in units of the variance, by stretch and horizon."""
    rows: "Rows"
    """What it was fitted to, and judged by."""

    @property
    def ahead(self) -> Int[np.ndarray, " F"]:
        """The horizons, in samples."""
        return self.rows.ahead

    @property
    def companion(self) -> Float[np.ndarray, "V V"]:
        return _companion(self.weights)


def fit_autoregression(
    arrays: Sequence[Float[np.ndarray, "_ P"]], *, window: int | None = None, level_free: bool | None = False
) -> Autoregression | None:
    """The windows (up to that given) and ridges that predict best; level-free where asked for, or (None) where later
    data is clearly better predicted so.

    ``arrays``: standardised series, NaN nowhere. None where the data is too short to fit anything."""
    longest, n_channels = max(map(len, arrays)), arrays[0].shape[1]
    most = min(longest // 3, max(_USUAL_WINDOW, longest // _LONG), max(_WINDOWS[-1] // n_channels, 1))
    windows = [w for w in _WINDOWS if w <= most] if window is None else [*(w for w in _WINDOWS if w < window), window]
    data = Rows.of(arrays, windows[-1], horizons(min(_FURTHEST, longest // 4))) if windows else None
    if data is None or len(data.past) < _LEAST_ROWS:
        return None
    if level_free is None:
        level_free = _level_drops_out(arrays)
    return _best(data, windows, level_free, window)


def _level_drops_out(arrays: Sequence[Float[np.ndarray, "_ P"]]) -> bool:
    """Whether what comes after the end of some first part of the data is clearly better predicted without the level.

    Within the data both predict alike: a trend is followed up and down. What differs is where it goes on to."""
    gaps = []
    for share in _FIRST_PARTS:
        cut = [int(share * len(y)) for y in arrays]
        first = [y[:k] for y, k in zip(arrays, cut, strict=True)]
        with_level, without = (fit_autoregression(first, level_free=free) for free in (False, True))
        if with_level is not None and without is not None:
            later = [(y, range(k, min(len(y), k + max(len(y) // 4, 1)))) for y, k in zip(arrays, cut, strict=True)]
            gaps.append(_log_error(with_level, later) - _log_error(without, later))
    gaps = [gap for gap in gaps if np.isfinite(gap)]
    if len(gaps) < 2:
        return False
    return np.mean(gaps) > max(_ERRORS * np.std(gaps, ddof=1) / np.sqrt(len(gaps)), _CLEARLY)


def _log_error(fitted: Autoregression, later: Sequence[tuple[Float[np.ndarray, "_ P"], range]]) -> float:
    """Log of the root mean square error from these origins, averaged over horizons."""
    found = []
    for y, origins in later:
        origins = [k for k in origins if k >= fitted.window]
        if origins:
            past = np.stack([y[k - fitted.window : k].ravel() for k in origins])
            padded = np.concatenate([y, np.full((int(fitted.ahead[-1]), y.shape[1]), np.nan)])
            future = padded[np.array(origins)[:, None] - 1 + fitted.ahead]
            found.append((_iterate(fitted.weights, fitted.intercept, past, fitted.ahead) - future) ** 2)
    if not found:
        return np.nan
    squares = np.concatenate(found).reshape(sum(map(len, found)), -1)
    known = np.isfinite(squares).any(axis=0)
    return float(np.mean(log_rms(squares[:, known])))


@dataclass(frozen=True, eq=False)
class Rows:
    """Windows with the sample after each, and those at some horizons (NaN beyond the end of a series)."""

    past: Float[np.ndarray, "n V"]
    future: Float[np.ndarray, "n F P"]
    place: Int[np.ndarray, " n"]
    window: int
    ahead: Int[np.ndarray, " F"]

    @classmethod
    def of(cls, arrays: Sequence[Float[np.ndarray, "_ P"]], window: int, ahead: Int[np.ndarray, " F"]) -> "Rows":
        past, future, place, offset = [], [], [], 0
        for y in arrays:
            if len(y) > window:
                padded = np.concatenate([y, np.full((int(ahead[-1]), y.shape[1]), np.nan)])
                ends = np.arange(window - 1, len(y) - 1)
                past.append(hankel(y, window)[:-1])
                future.append(padded[ends[:, None] + ahead])
                place.append(offset + ends)
            offset += len(y) + window + int(ahead[-1])
        past, future, place = (np.concatenate(a) for a in (past, future, place))
        keep = np.unique(np.linspace(0, len(past) - 1, min(len(past), _MAX_ROWS)).round().astype(int))
        return cls(past[keep], future[keep], place[keep], window, ahead)

    def regression(
        self, rows: Int[np.ndarray, " m"] | slice, window: int, level_free: bool
    ) -> tuple[Float[np.ndarray, "m q"], Float[np.ndarray, "m P"]]:
        P = self.future.shape[2]
        past, target = self.past[rows][:, -window * P :], self.future[rows, 0]
        if not level_free:
            return past, target
        by_time = past.reshape(len(past), window, P)
        return np.diff(by_time, axis=1).reshape(len(past), -1), target - by_time[:, -1]

    @property
    def variance(self) -> Float[np.ndarray, " P"]:
        return np.nanvar(self.future.reshape(-1, self.future.shape[2]), axis=0) + np.finfo(float).tiny

    def squares(
        self, predicted: Float[np.ndarray, "m F P"], future: Float[np.ndarray, "m F P"]
    ) -> Float[np.ndarray, "m F P"]:
        """Squared errors in units of the variance of each channel."""
        return np.minimum((predicted - future) ** 2 / self.variance, MOST)

    def folds(self, window: int) -> Iterator[tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]]:
        """Rows to predict, and rows to learn from: those before, and those after whose windows hold nothing of what is
        predicted. With as many coefficients as rows, a regression would know it by heart."""
        for asked in np.array_split(np.arange(len(self.place)), _N_FOLDS):
            first, last = self.place[asked[0]], self.place[asked[-1]]
            yield asked, np.flatnonzero((self.place + 1 <= first) | (self.place - window >= last))


def _best(data: Rows, windows: Sequence[int], level_free: bool, longest: int | None = None) -> Autoregression:
    """Of each window the ridge that predicts best, and of all windows that predict about as well as the best the mean:
    which of them is best by a hair is chance. ``longest``: the window of the answer, where it is not that of these."""
    scored = {window: _scored(data, window, level_free) for window in windows}
    scored = {window: found for window, found in scored.items() if found}
    if not scored:  # too little data to compare anything
        scored = {windows[0]: [(_USUAL_RIDGE, np.ones((1, len(data.ahead) * data.future.shape[2])))]}
    weight = skill([squares for found in scored.values() for _, squares in found])
    best = {w: min(found, key=lambda row: _error(row[1], weight)) for w, found in scored.items()}
    top = min(best.values(), key=lambda row: _error(row[1], weight))[1]
    alike = [w for w, (_, squares) in best.items() if _about_as_good(squares, top)]
    P, longest = data.future.shape[2], longest or alike[-1]
    weights, intercept, taken = np.zeros((P, longest * P)), np.zeros(P), 0.0
    for window in alike:
        k = int(np.argmin(np.abs(np.log(_RIDGES / best[window][0]))))
        regressors, target = data.regression(slice(None), window, level_free)
        w, c, n = list(_ridges(regressors, target, window, level_free))[k]
        weights[:, -window * P :] += w / len(alike)
        intercept += c / len(alike)
        taken += n / len(alike)
    left = data.future[:, 0] - data.past[:, -longest * P :] @ weights.T - intercept
    cov = left.T @ left / max(len(left) - taken - 1.0, 0.5 * len(left)) + LEAST_VARIANCE * np.eye(P)
    return Autoregression(longest, level_free, weights, intercept, cov, top, data)


def _scored(data: Rows, window: int, level_free: bool) -> list[tuple[float, Float[np.ndarray, "B G"]]]:
    """Errors of cross-validated predictions for each ridge; none where the data is too short for such a window."""
    by_ridge: list[list[np.ndarray]] = [[] for _ in _RIDGES]
    for asked, apart in data.folds(window):
        if len(apart) < _LEAST_ROWS // 2:
            return []
        regressors, target = data.regression(apart, window, level_free)
        past, future = data.past[asked][:, -window * target.shape[1] :], data.future[asked]
        for k, (weights, intercept, _) in enumerate(_ridges(regressors, target, window, level_free)):
            by_ridge[k].append(data.squares(_iterate(weights, intercept, past, data.ahead), future))
    return [(float(r), by_stretch(np.concatenate(parts))) for r, parts in zip(_RIDGES, by_ridge, strict=True)]


def _about_as_good(squares: Float[np.ndarray, "B G"], best: Float[np.ndarray, "B G"]) -> bool:
    gap, se = behind(squares, best)
    return gap <= se


def _ridges(
    regressors: Float[np.ndarray, "m q"], target: Float[np.ndarray, "m P"], window: int, level_free: bool
) -> Iterator[tuple[Float[np.ndarray, "P V"], Float[np.ndarray, " P"], float]]:
    """Coefficients on the window, intercept and effective number of coefficients, for each ridge."""
    P = target.shape[1]
    mean_x, mean_t = regressors.mean(axis=0), target.mean(axis=0)
    X, t = regressors - mean_x, target - mean_t
    if X.shape[1]:
        values, V = np.linalg.eigh(X.T @ X)
        values = np.maximum(values, 0.0)
        unit = max(float(np.mean(X**2)), np.finfo(float).tiny)
        onto = V.T @ (X.T @ t)
    for ridge in _RIDGES:
        if X.shape[1]:
            shrunk = values + ridge * unit
            w, taken = (V @ (onto / shrunk[:, None])).T, float(np.sum(values / shrunk))
        else:  # level-free with a window of one: a random walk
            w, taken = np.zeros((P, 0)), 0.0
        intercept = mean_t - w @ mean_x
        yield (_of_levels(w, window, P) if level_free else w), intercept, taken


def _of_levels(w: Float[np.ndarray, "P q"], window: int, P: int) -> Float[np.ndarray, "P V"]:
    """Coefficients on values, given those on their differences."""
    steps = w.reshape(P, window - 1, P)
    levels = np.zeros((P, window, P))
    levels[:, 1:] += steps
    levels[:, :-1] -= steps
    levels[:, -1] += np.eye(P)
    return levels.reshape(P, window * P)


def _iterate(
    weights: Float[np.ndarray, "P V"],
    intercept: Float[np.ndarray, " P"],
    past: Float[np.ndarray, "n V"],
    ahead: Int[np.ndarray, " F"],
) -> Float[np.ndarray, "n F P"]:
    """Predictions made by going on step by step."""
    P, V = weights.shape
    path = np.empty((len(past), V + int(ahead[-1]) * P))
    path[:, :V] = past
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(int(ahead[-1])):
            path[:, V + k * P : V + (k + 1) * P] = path[:, k * P : k * P + V] @ weights.T + intercept
    predicted = path[:, V:].reshape(len(past), -1, P)[:, ahead - 1]
    return np.nan_to_num(predicted, nan=1e6, posinf=1e6, neginf=-1e6)


def _companion(weights: Float[np.ndarray, "P V"]) -> Float[np.ndarray, "V V"]:
    P, V = weights.shape
    return np.concatenate([np.eye(V)[P:], weights])


def log_rms(squares: Float[np.ndarray, "B G"]) -> Float[np.ndarray, " G"]:
    return 0.5 * np.log(np.nanmean(squares, axis=0) + np.finfo(float).tiny)


def by_stretch(squares: Float[np.ndarray, "n F P"]) -> Float[np.ndarray, "B G"]:
    """Mean squared errors by stretch of the data and horizon."""
    stretches = np.array_split(squares.reshape(len(squares), -1), min(_N_BLOCKS, len(squares)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # at the end of the data nothing is known far ahead
        return np.stack([np.nanmean(stretch, axis=0) for stretch in stretches])


def behind(one: Float[np.ndarray, "B G"], other: Float[np.ndarray, "B G"]) -> tuple[float, float]:
    """By what share the first has larger errors than the second, averaged over horizons, with a standard error."""
    weight = skill([one, other])

    def gap(keep: Int[np.ndarray, " K"]) -> float:
        return float(np.average(log_rms(one[keep]) - log_rms(other[keep]), weights=weight))

    all_of_them = np.arange(len(one))
    each = [gap(np.delete(all_of_them, i)) for i in all_of_them]
    return gap(all_of_them), float(np.sqrt((len(each) - 1) * np.var(each)))


def skill(found: Sequence[Float[np.ndarray, "B G"]]) -> Float[np.ndarray, " G"]:
    """Share of the variance that the best predicts at each horizon: where nobody can tell much, errors differ by
    chance."""
    left = np.min([np.nanmean(squares, axis=0) for squares in found], axis=0)
    return np.maximum(1.0 - left, _LEAST_SKILL)


def _error(squares: Float[np.ndarray, "B G"], weight: Float[np.ndarray, " G"]) -> float:
    """Root mean square error, averaged over horizons by its logarithm."""
    return float(np.exp(np.average(log_rms(squares), weights=weight)))
