"""What may be wrong with data although it can be read: one function a suspicion.

Notation   y: observed values of one channel, one array a series, in order   x: all of them together
A suspicion is a reason to look, not a proof. "error" means that `fit` refuses the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._text import counted
from lamperti._typing import Bool, Float
from lamperti.data.calendar import calendar_format
from lamperti.data.checking.sampling import Sampling
from lamperti.data.checking.thinning import most_thinning
from lamperti.data.correlation import autocorrelation, e_folding_time
from lamperti.data.series import DATES, Series
from lamperti.data.stationarity import assess

_FEW_TRANSITIONS = 200
_OUTLIER, _OUTLIER_SHARE = 10.0, 0.01
_UNEQUAL = 100.0  # ratio of long to short steps
_COARSE, _VISIBLE = 0.2, 0.02  # size of the quantum in units of the sd
_TIME_NAMES = (
    "time",
    "t",
    "date",
    "datetime",
    "timestamp",
    "age",
    "year",
    "month",
    "day",
    "hour",
    "seconds",
    "sec",
    "ms",
)
_ID_NAMES = ("id", "subject", "patient", "animal", "series", "run", "trial", "session", "station", "unit")


@dataclass(frozen=True)
class Problem:
    """One suspicion. ``severity``: "error" (fit refuses), "warning" (results will suffer) or "note"."""

    severity: str
    code: str
    where: str  # a channel, a series, or "" for all of the data
    message: str


def channel_values(series: Sequence[Series], p: int) -> list[Float[np.ndarray, " _"]]:
    """The observed values of a channel, one array a series."""
    return [s.values[s.mask[:, p], p] for s in series]


def quantum(x: Float[np.ndarray, " N"]) -> float | None:
    """The smallest difference of two values, if values repeat so much that they must have been rounded."""
    levels = np.unique(x)
    if not 1 < len(levels) < len(x) / 2:
        return None
    step = 2 * float(np.diff(levels / 2).min())  # halves: a difference of two large values overflows
    return step if np.isfinite(step) else None


def missing_problems(name: str, share_missing: float) -> Iterator[Problem]:
    """A channel that lacks much."""
    if share_missing > 0.2:
        yield Problem("warning", "missing", name, f"{share_missing:.0%} of the values are missing.")


def channel_problems(name: str, y: list[np.ndarray]) -> Iterator[Problem]:
    """Suspicions about the values of one channel that varies."""
    x = np.concatenate(y)
    sd = spread(x)
    yield from _rounded(name, x, sd)
    yield from _outliers(name, y, x)
    yield from _clipped(name, y, x)
    yield from _held(name, y, sd)


def spread(x: Float[np.ndarray, " N"]) -> float:
    """The sd, without leaving the range of a float on the way."""
    largest = float(np.abs(x).max()) or 1.0
    return float(np.std(x / largest)) * largest


def _rounded(name: str, x: np.ndarray, sd: float) -> Iterator[Problem]:
    q = quantum(x)
    if q is None or q < _VISIBLE * sd:
        return
    severity = "warning" if q > _COARSE * sd else "note"
    levels = len(np.unique(x))
    text = f"values are rounded to {q:.3g} ({q / sd:.1%} of the sd, {levels} levels). Keep more digits if you can."
    yield Problem(severity, "quantised", name, text)


def far_values(x: Float[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    """Which few values lie far from all others; none where they are many, as the spikes of a signal are."""
    eighths = x / 8  # neither a difference nor a sum of two of them overflows
    middle = np.median(eighths)
    scale = 1.4826 * np.median(np.abs(eighths - middle))
    far = np.abs(eighths - middle) > _OUTLIER * scale if scale > 0 else np.zeros(len(x), bool)
    return far if far.sum() <= max(_OUTLIER_SHARE * len(x), 1) else np.zeros(len(x), bool)


def _outliers(name: str, y: list[np.ndarray], x: np.ndarray) -> Iterator[Problem]:
    far = np.split(far_values(x), np.cumsum([len(one) for one in y])[:-1])
    count = sum(int(f.sum()) for f in far)
    if count:
        i = next(i for i, f in enumerate(far) if f.any())
        row = int(np.argmax(far[i]))
        text = f"{count} values lie more than {_OUTLIER:g} robust sds from the median; the first is {y[i][row]:.6g}"
        where = f" (observed sample {row}{f' of series {i}' if len(y) > 1 else ''})"
        yield Problem("warning", "outliers", name, f"{text}{where}. Declare them missing if they are faults.")


def _clipped(name: str, y: list[np.ndarray], x: np.ndarray) -> Iterator[Problem]:
    levels, counts = np.unique(x, return_counts=True)
    if len(levels) < 20:
        return
    for end, next_one, word in ((0, 1, "smallest"), (-1, -2, "largest")):
        share = counts[end] / len(x)
        run = max(_longest_run(one == levels[end]) for one in y)
        if counts[end] >= 5 and share > 0.005 and counts[end] > 4 * counts[next_one] and run >= 3:
            text = f"{counts[end]} values ({share:.1%}) equal the {word}, {levels[end]:.6g}, up to {run} in a row"
            advice = "If the instrument clips there, declare them missing; if nothing was there (no rain), leave them."
            yield Problem("warning", "clipped", name, f"{text}. {advice}")


def _held(name: str, y: list[np.ndarray], sd: float) -> Iterator[Problem]:
    x = np.concatenate(y)
    if (quantum(x) or 0.0) > _VISIBLE * sd:
        return  # rounded values repeat for that reason
    low, high = x.min(), x.max()  # what is clipped there is told elsewhere
    same = [(one[1:] == one[:-1]) & (one[1:] != low) & (one[1:] != high) for one in y if len(one) > 1]
    share = float(np.mean(np.concatenate(same))) if same else 0.0
    run = max((_longest_run(s) + 1 for s in same if s.any()), default=1)
    if share > 0.2 or run >= 10:
        text = f"{share:.0%} of the samples repeat the one before, up to {run} in a row"
        yield Problem(
            "warning", "held", name, f"{text}: a sensor that hung, or data sampled more slowly and filled in?"
        )


def _longest_run(flags: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def dynamics_problems(name: str, y: list[Float[np.ndarray, "_ 1"]]) -> Iterator[Problem]:
    """Suspicions about the course of one standardised channel (NaN where missing)."""
    first = float(autocorrelation(y, 1)[1, 0]) if max(map(len, y)) > 3 else np.nan
    if first < 0.3:
        text = f"neighbouring samples are hardly related (correlation {first:.2f}): noise, or sampled too slowly?"
        yield Problem("warning", "undersampled", name, text)
    yield from oversampling_problems(name, y, least=2)


def oversampling_problems(name: str, y: list[Float[np.ndarray, "_ 1"]], *, least: int) -> Iterator[Problem]:
    """Whether one of ``least`` samples or more would do: for slow motion, and for the sharpest part of it, too."""
    memory = e_folding_time(y)
    thin = min(int(memory // 16), most_thinning(y)) if memory > 64 else 1
    if thin >= least:
        text = f"it takes {memory:.0f} samples to change; every {thin}th sample would tell as much, and fit faster."
        yield Problem("note", "oversampled", name, text)


def law_problems(series: Sequence[Series], closely: int) -> Iterator[Problem]:
    """Channels without a law that stays; of many channels the first are looked at."""
    names = series[0].names[:closely]
    few = [s.select(names) for s in series] if len(names) < len(series[0].names) else series
    for channel in assess(few).channels:
        if not channel.stationary:
            said = channel.sentence.removeprefix(f"{channel.name} ")
            text = f"it {said} Forecasts go on as the data did so far; what has not been seen yet, they cannot know."
            yield Problem("warning", "trend", channel.name, text)


def step_problems(series: Sequence[Series]) -> Iterator[Problem]:
    """Steps so unequal that times may be wrong; those of random times differ less, and a few gaps do not count."""
    steps = np.concatenate([s.steps for s in series])
    tiny, low, middle, high = np.quantile(steps, [0.01, 0.1, 0.5, 0.9])
    if high > _UNEQUAL * low or tiny < middle / _UNEQUAL**2:
        text = f"steps between samples go from {steps.min():.3g} to {steps.max():.3g}: are the times right? "
        yield Problem("warning", "steps", "", f"{text}Cut at long steps with split_gaps=, or average to equal ones.")


def set_problems(series: Sequence[Series], sampling: Sampling, window: int | None) -> Iterator[Problem]:
    """Suspicions about all channels and series together."""
    transitions = sum(s.length - 1 for s in series)
    if transitions < _FEW_TRANSITIONS:
        text = f"{transitions} transitions in all: little to learn from. Expect wide uncertainty, and few dimensions."
        yield Problem("warning", "short", "", text)
    short = sum(s.length < window for s in series) if window else 0
    if short:
        yield Problem("warning", "short series", "", f"{short} series are shorter than a window of {window} samples.")
    contents = [s.values.tobytes() for s in series]
    if len(set(contents)) < len(contents):
        yield Problem("warning", "duplicate", "", f"{len(contents) - len(set(contents))} series are copies of others.")
    if len(series) > 20 and max(s.length for s in series) <= 5:
        text = f"{len(series)} series of a few samples: are rows and columns exchanged? Arrays have axes=."
        yield Problem("warning", "layout", "", text)
    yield from _suspicious_times(series, sampling)
    yield from step_problems(series)
    yield from column_problems(series)
    yield from _collinear(series)


def _suspicious_times(series: Sequence[Series], sampling: Sampling) -> Iterator[Problem]:
    first, unit = series[0], series[0].time_unit
    if sampling.kind == "gaps":
        lacking = sum(gap.lacking for gap in sampling.gaps)
        text = f"{counted(len(sampling.gaps), 'gap')}, about {counted(lacking, 'sample')} in all. "
        text += "They are crossed as if samples were missing; split_gaps= cuts."
        yield Problem("note", "gaps", "", text)
    if sampling.kind == "irregular":
        text = "steps differ much. Their true lengths are used; lag and window count samples of the median step."
        yield Problem("note", "irregular", "", text)
    if unit != DATES and first.times[0] > 1e11:
        text = f"times begin at {first.times[0]:.13g}: milliseconds (or less) since 1970? The step is {sampling.dt:g}."
        yield Problem("note", "time unit", "", text)
    if unit == "" and sampling.kind == "regular" and sampling.dt == 1.0 and first.times[0] == 0.0:
        yield Problem("note", "no times", "", "samples are taken to be 1 apart. Give time= or dt= if they are not.")
    if unit == DATES and sampling.dt < 1e-5:
        text = f"dates {sampling.step} apart: seconds since 1970 keep 7 decimals. Give times from the start instead."
        yield Problem("warning", "time digits", "", text)


def column_problems(series: Sequence[Series]) -> Iterator[Problem]:
    """Channels that look like times, or like the numbers of series."""
    several = len(series[0].names) > 1
    for p, name in enumerate(series[0].names):
        y = channel_values(series, p)
        plain = name.strip().lower()
        steps = np.concatenate([np.diff(one / 2) for one in y])  # halves, because a difference may overflow
        rising = len(steps) > 0 and bool((steps > 0).all())
        written = calendar_format(np.concatenate(y)) if rising else None
        if written is not None:
            text = f'it looks like dates written as numbers. Then pass time={name!r} and time_format="{written}".'
            yield Problem("warning", "time column", name, text)
        elif rising and (plain in _TIME_NAMES or (p == 0 and several) or np.ptp(steps) <= 1e-6 * np.abs(steps).max()):
            yield Problem(
                "warning", "time column", name, f"it only increases: is it the time? Then pass time={name!r}."
            )
        elif plain in _ID_NAMES and all((one == np.round(one)).all() for one in y):
            yield Problem("warning", "id column", name, f"is it the number of a series? Then pass id={name!r}.")


def _collinear(series: Sequence[Series]) -> Iterator[Problem]:
    names = series[0].names
    values = np.concatenate([s.values for s in series])
    values = values[np.isfinite(values).all(axis=1)]
    varying = [p for p in range(len(names)) if len(values) > 10 and np.ptp(values[:, p] / 2) > 0]
    if len(varying) < 2 or len(varying) > 200:
        return
    scaled = values[:, varying] / np.abs(values[:, varying]).max(axis=0)
    r = np.corrcoef(scaled, rowvar=False)
    for i, j in zip(*np.triu_indices(len(varying), 1), strict=True):
        if abs(r[i, j]) > 0.9999:
            a, b = names[varying[i]], names[varying[j]]
            yield Problem("warning", "collinear", f"{a}, {b}", "the two say the same (correlation 1). Leave one out.")
