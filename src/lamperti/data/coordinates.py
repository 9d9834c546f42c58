"""Which window, which functions of it and how many: how well each start predicts what follows, by cross-validation.

Notation   x: d coordinates of a window [n, d]      f: the samples at some horizons after it [n, G]
           features of x: x itself, 1, and random Fourier features of a squared-exponential kernel [n, F]
           folds: stretches of the data, each predicted by a ridge regression on all that shares no sample with it

A model of d coordinates can tell no more of the future than its coordinates hold. How much that is, a regression of the
future on them says within seconds, without any training: it ranks the starts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lamperti._typing import Float, Int
from lamperti.data.delay import hankel
from lamperti.data.predictive import horizons, predictive_directions, principal_directions

Coordinates = Literal["components", "predictive"]
KINDS: tuple[Coordinates, ...] = ("predictive", "components")
NEGLIGIBLE = 0.04  # of the error: a difference that nobody would notice
_A_LOT = 0.1  # of the error at one horizon
_NOTHING = 0.02  # of the data's sd: an error that is as good as none
_SURELY = 0.8  # of the noise that the observations may have at most
_LEAST_ROWS, _MAX_ROWS = 40, 3_000
_N_FOLDS, _N_BLOCKS, _N_FEATURES = 4, 12, 120
_LENGTHSCALE = 1.5  # for two coordinates, growing as the root of their number: as the distance of two states does
_RIDGES = 10.0 ** np.arange(-7, 2)
_MOST = 4.0  # squared error, in units of the variance: one is what knowing nothing costs


@dataclass(frozen=True, eq=False)
class Candidate:
    """A start that training could have, and what it leaves unpredicted of data that it was not fitted to."""

    dimension: int
    window: int
    coordinates: Coordinates
    linear: bool
    """Whether the future was regressed on the coordinates alone, or on functions of them, too."""
    squares: Float[np.ndarray, "B G"]
    """Mean squared errors, in units of the variance, by stretch of the data and horizon; less what may be noise of the
    observations, which nothing predicts."""

    @property
    def error(self) -> float:
        """Root mean square error: 0 is perfect, 1 what the mean of the data leaves. Averaged over horizons by its
        logarithm, so that a tenth more counts the same at each."""
        return float(np.exp(_log_rms(self.squares).mean()))

    @property
    def se(self) -> float:
        """Standard error of ``error``, by leaving out one stretch after the other."""
        return self.error * float(jackknife(_left_out(self.squares).mean(axis=1)))

    def behind(self, other: "Candidate") -> tuple[float, float]:
        """By what share it is worse than another, with the standard error of that."""
        gap = _log_rms(self.squares) - _log_rms(other.squares)
        each = _left_out(self.squares) - _left_out(other.squares)
        return float(gap.mean()), float(jackknife(each.mean(axis=1)))

    def clearly_behind(self, other: "Candidate") -> bool:
        """Worse by more than a standard error, and by more than anyone would notice; or, at one of the horizons, which
        the average over all may hide, by a tenth and two standard errors."""
        gap, se = self.behind(other)
        gaps = _log_rms(self.squares) - _log_rms(other.squares)
        ses = jackknife(_left_out(self.squares) - _left_out(other.squares))
        return gap > max(se, NEGLIGIBLE) or bool(np.any(gaps > np.maximum(2.0 * ses, _A_LOT)))


def _log_rms(squares: Float[np.ndarray, "B G"]) -> Float[np.ndarray, " G"]:
    """By horizon."""
    return 0.5 * np.log(np.maximum(squares.mean(axis=0), 0.0) + _NOTHING**2)


def _left_out(squares: Float[np.ndarray, "B G"]) -> Float[np.ndarray, "B G"]:
    """The same without one stretch after the other."""
    return np.stack([_log_rms(np.delete(squares, i, axis=0)) for i in range(len(squares))])


def jackknife(values: Float[np.ndarray, "B *G"]) -> Float[np.ndarray, "*G"]:
    return np.sqrt((len(values) - 1) * values.var(axis=0))


def candidates(
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    windows: Sequence[int],
    dimensions: Sequence[int],
    kinds: Sequence[Coordinates] = KINDS,
) -> list[Candidate]:
    """All starts, each scored on the same samples; none where there is too little data to tell."""
    ahead = horizons(max(windows))
    rows = _Rows.of(arrays, max(windows), ahead)
    if len(rows.future) < _LEAST_ROWS:
        return []
    found = []
    for window in windows:
        past = rows.past[:, -window * arrays[0].shape[1] :]
        for kind in kinds:
            found += _scored(past, rows, window, [d for d in dimensions if d <= past.shape[1]], kind)
    return _without_noise(found, arrays)


def _without_noise(found: list[Candidate], arrays: Sequence[Float[np.ndarray, "_ P"]]) -> list[Candidate]:
    """Noise of the observations is in all errors alike, and would make them look alike. It is at most what the data's
    third differences have, if those were of white noise, and what the best leaves of the next sample."""
    thirds = np.concatenate([np.diff(y, 3, axis=0) for y in arrays if len(y) > 3])
    rough = np.nanmean(thirds**2, axis=0) / (20.0 * np.nanvar(np.concatenate(arrays), axis=0))
    n_channels = len(rough)
    next_sample = np.min([one.squares[:, :n_channels].mean(axis=0) for one in found], axis=0, initial=np.inf)
    noise = np.resize(_SURELY * np.minimum(rough, next_sample), found[0].squares.shape[1]) if found else 0.0
    return [replace(one, squares=one.squares - noise) for one in found]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Windows and what follows them, with the fold of each and the sample at which it begins."""

    past: Float[np.ndarray, "n V"]
    future: Float[np.ndarray, "n G"]
    begins: Int[np.ndarray, " n"]
    span: int

    @classmethod
    def of(cls, arrays: Sequence[np.ndarray], window: int, ahead: Int[np.ndarray, " F"]) -> "_Rows":
        n_channels, span = arrays[0].shape[1], window + int(ahead[-1])
        parts, begins, offset = [np.empty((0, span * n_channels))], [np.empty(0, dtype=int)], 0
        for y in arrays:
            if len(y) >= span:
                h = hankel(y, span)
                whole = np.flatnonzero(np.isfinite(h).all(axis=1))
                parts.append(h[whole])
                begins.append(offset + whole)
            offset += len(y) + span  # windows of two series share nothing
        h, begin = np.concatenate(parts), np.concatenate(begins)
        keep = np.unique(np.linspace(0, len(h) - 1, min(len(h), _MAX_ROWS)).round().astype(int)) if len(h) else []
        h, begin = h[keep], begin[keep]
        later = ((window - 1 + ahead)[:, None] * n_channels + np.arange(n_channels)).ravel()
        future = h[:, later]
        if not len(future):
            return cls(h[:, : window * n_channels], future, begin, span)
        scale = future.std(axis=0) + np.finfo(float).tiny
        return cls(h[:, : window * n_channels], (future - future.mean(axis=0)) / scale, begin, span)

    def folds(self) -> list[tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]]:
        """Rows to predict, and rows that share no sample with them."""
        found = []
        for asked in np.array_split(np.arange(len(self.begins)), _N_FOLDS):
            first, last = self.begins[asked[0]] - self.span, self.begins[asked[-1]] + self.span
            apart = np.flatnonzero((self.begins <= first) | (self.begins >= last))
            if len(apart) >= _LEAST_ROWS // 2:
                found.append((asked, apart))
        return found


def _scored(
    past: Float[np.ndarray, "n V"], rows: _Rows, window: int, dimensions: Sequence[int], kind: Coordinates
) -> list[Candidate]:
    errors: dict[tuple[int, bool], list[np.ndarray]] = {(d, linear): [] for d in dimensions for linear in (True, False)}
    most = max(dimensions, default=0)
    for asked, apart in rows.folds() if most else []:
        if kind == "predictive":
            mean, B = predictive_directions(past[apart], rows.future[apart], most)
        else:
            mean, B = principal_directions(past[apart], most)
        known, unseen = (past[apart] - mean) @ B.T, (past[asked] - mean) @ B.T
        for d, linear in errors:
            features = _linear if linear else _features(min(d, len(B)))
            errors[d, linear].append(
                _ridge_errors(features(known[:, :d]), rows.future[apart], features(unseen[:, :d]), rows.future[asked])
            )
    found = []
    for (d, linear), parts in errors.items():
        if parts:
            # The ridge that does best over all folds, at each horizon; by row, then by stretch.
            by_row = np.concatenate(parts, axis=1)
            ridge = np.argmin(by_row.mean(axis=1), axis=0)
            best = np.take_along_axis(by_row, ridge[None, None], axis=0)[0]
            blocks = np.array_split(best, min(_N_BLOCKS, len(best)))
            found.append(Candidate(d, window, kind, linear, np.stack([block.mean(axis=0) for block in blocks])))
    return found


def predict_futures(
    candidate: Candidate,
    past: Float[np.ndarray, "n V"],
    future: Float[np.ndarray, "n F P"],
    folds: Iterable[tuple[Int[np.ndarray, " a"], Int[np.ndarray, " b"]]],
) -> list[Float[np.ndarray, "n F P"]]:
    """What a start predicts of these futures (NaN where they are not known), each from the other folds: one answer for
    each ridge."""
    shape = future.shape
    past, flat = past[:, -candidate.window * shape[2] :], future.reshape(len(future), -1)
    found = np.full((len(_RIDGES), *flat.shape), np.nan)
    for asked, apart in folds:
        if len(apart) <= candidate.dimension:
            continue
        whole = apart[np.isfinite(flat[apart]).all(axis=1)]
        if candidate.coordinates == "predictive" and len(whole) > candidate.dimension:
            mean, B = predictive_directions(past[whole], flat[whole], candidate.dimension)
        else:
            mean, B = principal_directions(past[apart], candidate.dimension)
        features = _linear if candidate.linear else _features(len(B))
        A, Z = features((past[apart] - mean) @ B.T), features((past[asked] - mean) @ B.T)
        for g in range(flat.shape[1]):
            known = np.isfinite(flat[apart, g])
            target = flat[apart[known], g]
            values, V = np.linalg.eigh(A[known].T @ A[known] / max(known.sum(), 1))
            onto = V.T @ (A[known].T @ (target - target.mean())) / max(known.sum(), 1)
            for k, ridge in enumerate(_RIDGES):
                found[k, asked, g] = target.mean() + Z @ (V @ (onto / (np.maximum(values, 0.0) + ridge)))
    return [one.reshape(shape) for one in found]


def _ridge_errors(
    A: Float[np.ndarray, "n F"],
    b: Float[np.ndarray, "n G"],
    Z: Float[np.ndarray, "m F"],
    truth: Float[np.ndarray, "m G"],
) -> Float[np.ndarray, "L m G"]:
    """Squared error of every row at every horizon, for each ridge."""
    values, V = np.linalg.eigh(A.T @ A / len(A))
    at, onto = Z @ V, V.T @ (A.T @ b) / len(A)
    wrong = [(at @ (onto / (np.maximum(values, 0.0) + ridge)[:, None]) - truth) ** 2 for ridge in _RIDGES]
    return np.minimum(np.stack(wrong), _MOST)  # a few wild extrapolations must not outweigh all else


def _linear(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n F"]:
    return np.concatenate([np.ones((len(x), 1)), x], axis=1)


def _features(d: int) -> Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n F"]]:
    rng = np.random.default_rng(d)  # the answer must not depend on a seed
    frequency = rng.standard_normal((d, _N_FEATURES)) / (_LENGTHSCALE * np.sqrt(d / 2))
    phase = rng.uniform(0, 2 * np.pi, _N_FEATURES)

    def of(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n F"]:
        waves = 2.0 * np.sqrt(2.0 / _N_FEATURES) * np.cos(x @ frequency + phase)
        return np.concatenate([_linear(x), waves], axis=1)

    return of
