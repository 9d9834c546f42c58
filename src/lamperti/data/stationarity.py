"""Has a record a law that stays? If not, a model that is confined to the range of the data is wrong about the future.

Notation   x: normal scores of the values of one channel   q1..q4: their means over the quarters of the record
A channel is called not stationary when two things agree: its slow amplitudes are at least three times as likely
under a trend or a random walk as under the best stationary law (`low_frequency`), and the effect is large and goes
on at the end. A jump, a transient that is over, or few visits to each of two wells stay within their range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from lamperti._typing import Float
from lamperti.data.correlation import channel_arrays
from lamperti.data.low_frequency import log_ratios, normal_scores, part_means, slow_amplitudes
from lamperti.data.series import Series

_LEAST = 30  # samples
_EVIDENCE = np.log(3.0)  # of the likelihood ratio; what that means for false alarms: benchmarks/stationarity.py
_SHARE = 0.25  # of the variance that must be slow before it matters
_GOES_ON = 1 / 3  # of its mean speed that a trend, or a walk, must have at the end
_SAME_RANGE = 0.7  # of the range of the record that its halves share; those of 92 of 100 walks share less
_FEW_JUMPS = 0.83  # share of the three largest of 15 squared steps; 99 of 100 walks stay below
_TAIL = 0.005  # of the values, on either side, that may be outliers
_ENSEMBLE = 8  # series from which on they are judged together
_SURE = 3.1  # standard errors: once in a thousand


@dataclass(frozen=True)
class ChannelStationarity:
    """One channel. ``kind``: "stationary", "trend", "growth", "random walk" or "too short to tell".

    ``trend_share`` is the share of the variance, after the values became normal scores, that a straight line in time
    explains; ``evidence`` the logarithm of the likelihood ratio of the best other kind to a stationary law (NaN
    where several series are judged together); ``sentence`` says it in words.
    """

    name: str
    kind: str
    trend_share: float
    evidence: float
    sentence: str

    @property
    def stationary(self) -> bool:
        return self.kind in ("stationary", "too short to tell")


@dataclass(frozen=True)
class Stationarity:
    """What `assess` found; ``stationary`` is False if any channel has no law that stays, on the scale of the record."""

    channels: tuple[ChannelStationarity, ...]

    @property
    def stationary(self) -> bool:
        return all(channel.stationary for channel in self.channels)


@dataclass(frozen=True)
class _Record:
    """The observed values of one channel of one series, their normal scores, and times."""

    y: Float[np.ndarray, " N"]
    x: Float[np.ndarray, " N"]
    times: Float[np.ndarray, " N"]


@dataclass(frozen=True)
class _Finding:
    kind: str
    trend_share: float
    evidence: float
    falls: bool


def assess(series: Sequence[Series | np.ndarray]) -> Stationarity:
    """Whether each channel has a stationary law on the scale of the recording.

    Takes series, or arrays [T] or [T, P] with NaN where missing. One record is judged by itself; pieces that follow
    each other in time are one record. Of eight series or more a trend must be common over their own time, or they
    must drift apart; of fewer, each must be found not stationary by itself. Fewer than 30 samples cannot tell.
    """
    arrays = channel_arrays(series)
    clocks = [s.times if isinstance(s, Series) else np.arange(len(s), dtype=float) for s in series]
    names = next((s.names for s in series if isinstance(s, Series)), None)
    if names is None:
        p = arrays[0].shape[1]
        names = ("y",) if p == 1 else tuple(f"y{i}" for i in range(p))
    if _follow_each_other(series):
        order = np.argsort([clock[0] for clock in clocks])
        arrays, clocks = [np.concatenate([arrays[i] for i in order])], [np.concatenate([clocks[i] for i in order])]
    return Stationarity(tuple(_judge(name, p, arrays, clocks) for p, name in enumerate(names)))


def _follow_each_other(series: Sequence[Series | np.ndarray]) -> bool:
    """Whether these are pieces of one recording: they do not overlap, and cover at least half of the time."""
    if len(series) < 2 or not all(isinstance(s, Series) for s in series):
        return False
    spans = sorted((float(s.times[0]), float(s.times[-1])) for s in series if isinstance(s, Series))
    apart = all(before[1] < after[0] for before, after in pairwise(spans))
    return apart and sum(end - start for start, end in spans) >= 0.5 * (spans[-1][1] - spans[0][0])


def _judge(name: str, p: int, arrays: list[np.ndarray], clocks: list[np.ndarray]) -> ChannelStationarity:
    seen = [np.isfinite(a[:, p]) for a in arrays]
    values = [a[s, p] for a, s in zip(arrays, seen, strict=True) if s.sum() >= _LEAST]
    times = [t[s] for t, s in zip(clocks, seen, strict=True) if s.sum() >= _LEAST]
    if not values or np.concatenate(values).min() == np.concatenate(values).max():
        text = f"{name} has too few different samples to tell whether its law stays the same."
        return ChannelStationarity(name, "too short to tell", 0.0, np.nan, text)
    together = np.split(normal_scores(np.concatenate(values)), np.cumsum([len(y) for y in values])[:-1])
    records = [_Record(y, x, t) for y, x, t in zip(values, together, times, strict=True)]
    found = _ensemble(records) if len(records) >= _ENSEMBLE else _few(records)
    return ChannelStationarity(name, found.kind, found.trend_share, found.evidence, _sentence(name, found))


def _few(records: list[_Record]) -> _Finding:
    """Each by itself; one that is stationary speaks for all."""
    varying = [r for r in records if r.y.min() < r.y.max()]
    found = [_single(_Record(r.y, normal_scores(r.y), r.times)) for r in varying]
    return min(found, key=lambda f: (f.kind != "stationary", f.evidence))


def _single(record: _Record) -> _Finding:
    share = _line_share([record])
    trend, walk = log_ratios(slow_amplitudes(_without_outliers(record.y), record.times))
    means = part_means(record.x, record.times, 16)
    quarters = means.reshape(4, 4).mean(axis=1)
    enough = 0.0 if _leaves(record) else _EVIDENCE
    kind = "stationary"
    likely = max(trend, walk) > enough and _slow_share(record) > _SHARE
    if likely and not _few_jumps(record) and not _comes_back(record) and _goes_on(record):
        if share > _SHARE and _still_climbs(quarters):
            kind = "growth" if _accelerates(record) else "trend"
        elif walk > enough and _walks_on(means):
            kind = "random walk"
    return _Finding(kind, share, max(trend, walk), bool(quarters[-1] < quarters[0]))


def _goes_on(record: _Record) -> bool:
    """Whether the last two thirds, by themselves, do not speak against it: a transient may be over."""
    late = record.times >= record.times[0] + (record.times[-1] - record.times[0]) / 3
    if late.sum() < _LEAST or np.ptp(record.x[late]) == 0:
        return bool(late.sum() < _LEAST)
    return max(log_ratios(slow_amplitudes(_without_outliers(record.y[late]), record.times[late]))) > -_EVIDENCE


def _comes_back(record: _Record) -> bool:
    """Whether both halves of the record go through nearly the same range, as two slow cycles do."""
    halves = part_means(_without_outliers(record.y), record.times, 16).reshape(2, 8)
    low, high = halves.min(axis=1), halves.max(axis=1)
    return bool(high.min() - low.max() > _SAME_RANGE * (high.max() - low.min()))


def _leaves(record: _Record) -> bool:
    """Whether the last tenth lies, but for outliers, outside of the range of all that went before."""
    late = record.times > record.times[-1] - 0.1 * (record.times[-1] - record.times[0])
    low, high = np.quantile(record.x[late], [0.1, 0.9])
    before = np.quantile(record.x[~late], [_TAIL, 1 - _TAIL])
    return bool(low > before[1] or high < before[0])


def _slow_share(record: _Record) -> float:
    """Share of the variance of the values themselves that is slow: between spikes a small drift moves all ranks."""
    y = _without_outliers(record.y)
    return float(np.sum(slow_amplitudes(y, record.times) ** 2) / max(np.var(y), np.finfo(float).tiny))


def _without_outliers(y: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Values of at most 1, and none beyond nearly all others."""
    y = np.clip(y, *np.quantile(y, [_TAIL, 1 - _TAIL]))
    return y / (np.abs(y).max() or 1.0)


def _line_share(records: list[_Record]) -> float:
    """Share of the variance of the scores that one line in time, as a share of each record, explains."""
    x = np.concatenate([r.x for r in records])
    s = np.concatenate([(r.times - r.times[0]) / (r.times[-1] - r.times[0]) for r in records])
    return float(np.corrcoef(s, x)[0, 1] ** 2)


def _still_climbs(quarters: Float[np.ndarray, "4"]) -> bool:
    """Whether the last quarter goes on as the record did: a transient that is over does not."""
    mean_step = (quarters[-1] - quarters[0]) / 3
    return bool((quarters[-1] - quarters[-2]) * np.sign(mean_step) > _GOES_ON * abs(mean_step))


def _walks_on(means: Float[np.ndarray, "16"]) -> bool:
    """Whether the steps of a walk are not over."""
    squares = np.diff(means) ** 2
    return bool(squares[-4:].mean() > _GOES_ON**2 * squares.mean())


def _few_jumps(record: _Record) -> bool:
    """Whether three steps or fewer make up nearly all of the motion, other than the last three of a growth."""
    squares = np.diff(part_means(_without_outliers(record.y), record.times, 16)) ** 2
    largest = np.argsort(squares)[-3:]
    grows = bool((largest == len(squares) - np.array([3, 2, 1])).all())
    return bool(squares[largest].sum() > _FEW_JUMPS * squares.sum()) and not grows


def _accelerates(record: _Record) -> bool:
    """Whether the last quarter adds at least twice what the second one did."""
    q = part_means(_without_outliers(record.y), record.times, 16).reshape(4, 4).mean(axis=1)
    return bool(abs(q[3] - q[2]) > 2 * abs(q[1] - q[0]))


def _ensemble(records: list[_Record]) -> _Finding:
    """Many series: each is one independent draw of the law at every time since its start."""
    means = np.stack([part_means(r.x, r.times, 8) for r in records])  # [R, 8]
    slopes = means @ (np.arange(8) - 3.5)
    error = slopes.std(ddof=1) / np.sqrt(len(slopes))
    share = _line_share(records)
    level = means.mean(axis=0).reshape(4, 2).mean(axis=1)
    falls = bool(level[-1] < level[0])
    sure = stats.t.isf(stats.norm.sf(_SURE), len(slopes) - 1)
    if abs(slopes.mean()) > sure * error and share > _SHARE and _still_climbs(level):
        kind = "growth" if all(_accelerates(r) for r in records) else "trend"
        return _Finding(kind, share, np.nan, falls)
    return _Finding("random walk" if _drift_apart(means) else "stationary", share, np.nan, falls)


def _drift_apart(means: Float[np.ndarray, "R 8"]) -> bool:
    """Whether the spread over the series doubles, still grows in the second half, and each stays on its side.

    The last tells a walk from an oscillation that grows: there one part says little about the next, or is a mean over
    whole cycles.
    """
    error = 2 / np.sqrt(len(means) - 1)  # of the logarithm of a ratio of two variances
    tiny = np.finfo(float).tiny
    spread = means.var(axis=0, ddof=1) + tiny
    quarters = np.log(means.reshape(-1, 4, 2).mean(axis=2).var(axis=0, ddof=1) + tiny)
    doubles = np.log(spread[-1] / spread[0]) > max(_SURE * error, np.log(2.0))
    grows_on = quarters[3] - quarters[1] > 2 * error and quarters[3] > quarters[2]
    neighbours = np.corrcoef(means[:, -3:], rowvar=False)[[0, 1], [1, 2]]
    return bool(doubles and grows_on and spread[-1] > 0.5 and neighbours.min() > 0.5)


def _sentence(name: str, found: _Finding) -> str:
    way = "falls" if found.falls else "rises"
    share = f"a line through time explains {found.trend_share:.0%} of its variance"
    return {
        "stationary": f"{name} keeps to one law, as far as the record can tell.",
        "trend": f"{name} {way} over the whole record ({share}), and its values will leave the range of the data.",
        "growth": f"{name} {way} ever faster ({share}), and its values will leave the range of the data.",
        "random walk": f"{name} wanders without coming back, and its values will leave the range of the data.",
    }[found.kind]
