"""Drifts that run freely: how well a drift, regressed in coordinates of a window, forecasts what it has not seen.

Notation   x: d coordinates of a window      phi(x): 1, x and squared exponentials about M centres [F]
           dx = phi(x) w + e: regressed increments      e: what is left, drawn near x      y = C x + c + r: what is seen

`coordinates` regresses the future at each horizon on the coordinates by itself: how much of it they hold. A model has
one drift, which is run from step to step. Where the coordinates of a short window hold the next beat of a heart, but
not where in the beat they are a little later, both differ by a factor of two (docs/adr/0032).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from lamperti._typing import Float, Int
from lamperti.data.coordinates import jackknife
from lamperti.data.delay import hankel
from lamperti.data.predictive import horizons, newest_directions

FURTHEST = 100  # steps that are forecast, of series that are long enough
_SHARE = 4  # series are so many times longer
_N_FOLDS, _N_ORIGINS, _N_PATHS, _N_BLOCKS = 3, 128, 8, 12
_MOST_ROWS, _LEAST_ROWS = 6_000, 200
_ROWS_KEPT = 40_000  # windows with what follows them, of all the data
_RIDGE = 1e-7
_NEAR = 8  # residuals at least from which the noise near a centre is drawn
_ROWS_A_CENTRE, _LEAST_CENTRES, _MOST_CENTRES = 16, 128, 512
_SPARE = 0.25  # of the range of each coordinate, beyond which no path goes


SHAKE = 0.5  # of the noise of a step


class Drift(NamedTuple):
    """What a regressed drift is made of: centres, and their width in sds of the states for two coordinates, growing as
    the root of their number; and how far states are shaken, in units of the noise of a step, for it to be regressed on
    them as well."""

    centres: int
    width: float
    shake: float = 0.0


def free_drift(n_rows: int) -> Drift:
    """Of a drift that stays as it is regressed on so many rows.

    A path that runs freely is off the data by its own noise; regressed on the data alone, nothing says what brings it
    back, so that states are shaken."""
    return Drift(int(np.clip(n_rows // _ROWS_A_CENTRE, _LEAST_CENTRES, _MOST_CENTRES)), 1.0, SHAKE)


class Delays(NamedTuple):
    """Which functions of the past make a state: so many in all, of a window of samples, of which the newest count
    each by itself."""

    dimension: int
    window: int
    newest: int = 1


@dataclass(frozen=True, eq=False)
class FreeRun:
    """Coordinates, and the CRPS of their forecasts by stretch of the data and horizon, in sds of the data."""

    delays: Delays
    crps: Float[np.ndarray, "B G"]

    @property
    def error(self) -> float:
        """Averaged over horizons by its logarithm, so that a tenth more counts the same at each."""
        return float(np.exp(_log_mean(self.crps)))

    @property
    def se(self) -> float:
        """Standard error of ``error``, by leaving out one stretch after the other."""
        return self.error * float(jackknife(_left_out(self.crps)))

    def behind(self, other: "FreeRun") -> tuple[float, float]:
        """By what share the CRPS is higher than that of another, and the standard error of that."""
        each = _left_out(self.crps) - _left_out(other.crps)
        return _log_mean(self.crps) - _log_mean(other.crps), float(jackknife(each))


def _log_mean(crps: Float[np.ndarray, "B G"]) -> float:
    return float(np.log(np.maximum(crps.mean(axis=0), np.finfo(float).tiny)).mean())


def _left_out(crps: Float[np.ndarray, "B G"]) -> Float[np.ndarray, " B"]:
    return np.array([_log_mean(np.delete(crps, i, 0)) for i in range(len(crps))])


def free_runs(
    arrays: Sequence[Float[np.ndarray, "_ P"]], offered: Sequence[Delays], *, n_folds: int = _N_FOLDS
) -> list[FreeRun]:
    """How well regressed drifts forecast in each of these coordinates; none where the data is too short. ``n_folds``:
    how many of the three parts are forecast, each from the others."""
    spans = _spans(arrays, max((one.window for one in offered), default=1))
    if spans is None:
        return []
    return [_run_freely(one, arrays, spans, n_folds) for one in offered]


class _Spans(NamedTuple):
    """The longest window and the horizons."""

    window: int
    ahead: Int[np.ndarray, " G"]


def _spans(arrays: Sequence[Float[np.ndarray, "_ P"]], window: int) -> _Spans | None:
    """None where the data is too short to forecast anything."""
    longest = max(map(len, arrays))
    ahead = horizons(min(FURTHEST, longest // _SHARE, longest - window - 1))
    rows = sum(max(len(y) - window - int(ahead[-1]), 0) for y in arrays)
    return _Spans(window, ahead) if rows >= _LEAST_ROWS else None


def _run_freely(
    delays: Delays,
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    spans: _Spans,
    n_folds: int,
) -> FreeRun:
    window, ahead = spans
    rng = np.random.default_rng(0)  # the answer must not depend on a seed
    past, later, begins = _rows(arrays, window, int(ahead[-1]))
    P = arrays[0].shape[1]
    W = delays.window * P
    scores = []
    span = window + int(ahead[-1])
    for asked in np.array_split(np.arange(len(past)), _N_FOLDS)[-n_folds:]:
        apart = np.flatnonzero((begins <= begins[asked[0]] - span) | (begins >= begins[asked[-1]] + span))
        if len(apart) < _LEAST_ROWS // 2:
            continue
        origins = asked[np.unique(np.linspace(0, len(asked) - 1, _N_ORIGINS).round().astype(int))]
        fit_to = apart[np.unique(np.linspace(0, len(apart) - 1, _MOST_ROWS).round().astype(int))]
        known, following = past[fit_to][:, -W:], later[fit_to]
        future = following.reshape(len(fit_to), -1, P)[:, ahead - 1].reshape(len(fit_to), -1)
        mean, B = newest_directions(known, future, delays.dimension, P, newest=delays.newest)
        stepped = np.concatenate([known[:, P:], following[:, :P]], axis=1)
        law = regress((known - mean) @ B.T, (stepped - mean) @ B.T, known[:, -P:], free_drift(len(known)))
        truth = later[origins].reshape(len(origins), -1, P)[:, ahead - 1]
        samples = law.run((past[origins][:, -W:] - mean) @ B.T, ahead, rng)
        scores.append(_crps(samples, truth))
    each = np.concatenate(scores).mean(axis=2)
    blocks = np.array_split(each, min(_N_BLOCKS, len(each)))
    return FreeRun(delays, np.stack([block.mean(axis=0) for block in blocks]))


def _rows(
    arrays: Sequence[Float[np.ndarray, "_ P"]], window: int, furthest: int
) -> tuple[Float[np.ndarray, "n V"], Float[np.ndarray, "n F"], Int[np.ndarray, " n"]]:
    """Windows, what follows them, and the sample at which each begins; windows of two series share nothing."""
    span, parts, begins, offset = window + furthest, [], [], 0
    share = min(1.0, _ROWS_KEPT / max(sum(max(len(y) - span + 1, 0) for y in arrays), 1))
    for y in arrays:
        n = len(y) - span + 1
        if n > 0:
            rows = np.unique(np.linspace(0, n - 1, max(int(share * n), 1)).round().astype(int))
            h = hankel(y, span)[rows]
            whole = np.isfinite(h).all(axis=1)
            parts.append(h[whole])
            begins.append(offset + rows[whole])
        offset += len(y) + span
    h = np.concatenate(parts)
    at = window * arrays[0].shape[1]
    return h[:, :at], h[:, at:], np.concatenate(begins)


@dataclass(frozen=True, eq=False)
class RegressedLaw:
    """A regressed drift with the noise that it leaves near each centre, and what is seen of the coordinates."""

    w: Float[np.ndarray, "F d"]
    centres: Float[np.ndarray, "M d"]
    scale: float
    left: Float[np.ndarray, "n d"]
    """What the drift does not tell of the increments, sorted by the centre that is nearest."""
    first: Int[np.ndarray, " M"]
    """Where the residuals of each centre begin."""
    count: Int[np.ndarray, " M"]
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    seen: Float[np.ndarray, "d+1 P"]
    unseen: Float[np.ndarray, " P"]

    def run(
        self, x: Float[np.ndarray, "n d"], ahead: Int[np.ndarray, " G"], rng: np.random.Generator
    ) -> Float[np.ndarray, "n S G P"]:
        """What is seen so many steps later, on some paths from each state."""
        n = len(x)
        x = np.repeat(x, _N_PATHS, axis=0)
        wanted, found = set(ahead.tolist()), []
        for step in range(1, int(ahead[-1]) + 1):
            phi, nearest = _features(x, self.centres, self.scale)
            x = np.clip(x + phi @ self.w + self._noise(nearest, rng), self.low, self.high)
            if step in wanted:
                y = _affine(x) @ self.seen
                found.append((y + self.unseen * rng.standard_normal(y.shape)).reshape(n, _N_PATHS, -1))
        return np.stack(found, axis=2)

    def _noise(self, nearest: Int[np.ndarray, " n"], rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        picked = (rng.random(len(nearest)) * self.count[nearest]).astype(int)
        return self.left[self.first[nearest] + picked]


def regress(
    x: Float[np.ndarray, "n d"], after: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n P"], drift: Drift
) -> RegressedLaw:
    """A drift from states to what they are a step later, and the newest sample ``y`` from the states."""
    n, d = x.shape
    with warnings.catch_warnings():
        # A centre that attracts no point stays where it was.
        warnings.filterwarnings("ignore", message="One of the clusters is empty", category=UserWarning)
        n_centres = max(min(drift.centres, n // _NEAR), 1)
        centres, _ = kmeans2(x, n_centres, minit="points", rng=np.random.default_rng(0))
    scale = drift.width * np.sqrt(d / 2)
    phi, nearest = _features(x, centres, scale)
    w = _solve(phi, after - x)
    left = after - x - phi @ w
    if drift.shake:
        off = drift.shake * left[np.random.default_rng(0).permutation(n)]
        around = np.concatenate([x, x + off, x - off])
        w = _solve(_features(around, centres, scale)[0], np.concatenate([after] * 3) - around)
        left = after - x - phi @ w
    left = left[np.argsort(nearest, kind="stable")]
    count = np.bincount(nearest, minlength=len(centres))
    few = count < _NEAR  # so few say little; there all residuals are drawn from
    first = np.where(few, 0, np.cumsum(count) - count)
    seen = np.linalg.lstsq(_affine(x), y, rcond=None)[0]
    spare = _SPARE * np.ptp(x, axis=0)
    return RegressedLaw(
        w=w,
        centres=centres,
        scale=scale,
        left=left,
        first=first,
        count=np.where(few, n, count),
        low=x.min(axis=0) - spare,
        high=x.max(axis=0) + spare,
        seen=seen,
        unseen=np.std(y - _affine(x) @ seen, axis=0),
    )


def _solve(phi: Float[np.ndarray, "n F"], dx: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "F d"]:
    gram = phi.T @ phi / len(phi)
    ridge = _RIDGE * np.trace(gram) / len(gram)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), phi.T @ dx / len(phi))


def _affine(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    return np.concatenate([np.ones((len(x), 1)), x], axis=1)


def _features(
    x: Float[np.ndarray, "n d"], centres: Float[np.ndarray, "M d"], scale: float
) -> tuple[Float[np.ndarray, "n F"], Int[np.ndarray, " n"]]:
    """Of the drift at each point, and the centre that is nearest."""
    distance = cdist(x, centres, "sqeuclidean")
    nearest = np.argmin(distance, axis=1)
    return np.concatenate([_affine(x), np.exp(-0.5 * distance / scale**2)], axis=1), nearest


def _crps(samples: Float[np.ndarray, "n S G P"], truth: Float[np.ndarray, "n G P"]) -> Float[np.ndarray, "n G P"]:
    """Of S draws, without the bias that few draws have."""
    n = samples.shape[1]
    rank = (2.0 * np.arange(n) - (n - 1.0))[:, None, None]
    spread = (rank * np.sort(samples, axis=1)).sum(axis=1) / (n * (n - 1))
    return np.abs(samples - truth[:, None]).mean(axis=1) - spread
