"""What was understood of a data set, and what may be wrong with it."""

import dataclasses
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError
from lamperti._shown import Shown, figures
from lamperti._text import counted
from lamperti.data.checking.problems import (
    Problem,
    channel_problems,
    channel_values,
    dynamics_problems,
    law_problems,
    missing_problems,
    quantum,
    set_problems,
    spread,
)
from lamperti.data.checking.sampling import Sampling, describe_sampling
from lamperti.data.checking.suggestion import LOOKED_AT, Suggestion, suggest, varying
from lamperti.data.reading import read
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series, as_series_list, check_for_training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEVERITIES = ("error", "warning", "note")
_CLOSELY = 100  # channels whose course is looked at


@dataclass(frozen=True)
class SeriesSummary:
    """One series: its label, samples, times from and to, and how many of its values are missing."""

    label: str
    length: int
    start: float
    end: float
    missing: int


@dataclass(frozen=True)
class ChannelSummary:
    """One channel over all series. ``quantum``: what its values are rounded to, where that can be seen."""

    name: str
    unit: str
    observed: int
    missing: int
    mean: float
    sd: float
    low: float
    high: float
    quantum: float | None


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """What `lamperti.check` found. ``ok`` is False when `lamperti.fit` would refuse the data."""

    series: tuple[SeriesSummary, ...]
    channels: tuple[ChannelSummary, ...]
    sampling: Sampling
    time_unit: str
    problems: tuple[Problem, ...]
    repairs: tuple[str, ...]
    suggestion: Suggestion | None
    recordings: tuple[Series, ...] = ()
    """The series themselves."""

    @property
    def ok(self) -> bool:
        return all(problem.severity != "error" for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, fit for JSON: what is not finite becomes None."""
        content = dataclasses.asdict(dataclasses.replace(self, recordings=()))
        del content["recordings"]
        return {"ok": self.ok, **_plain(content)}

    def plot(self) -> "Figure":
        """The channels in time, how their values are distributed, and the error by number of latent coordinates."""
        return figures().overview(self.recordings, self)

    def _facts(self) -> dict[str, str]:
        kinds = [problem.severity for problem in self.problems]
        found = ", ".join(counted(kinds.count(kind), kind) for kind in _SEVERITIES if kind in kinds)
        return {
            "channels": ", ".join(c.name for c in self.channels),
            "series": f"{len(self.series)}, {sum(s.length for s in self.series)} samples",
            "sampling": str(self.sampling),
            "found": found or "no problem",
            "fit": "would take the data" if self.ok else "would refuse the data; print(check) says why",
        }

    def __str__(self) -> str:
        lengths = [s.length for s in self.series]
        span = f"{lengths[0]}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
        lines = [f"{len(lengths)} series of {span} samples; {self.sampling}"]
        lines += [f"{c.name}: mean {c.mean:.4g}, sd {c.sd:.4g}, {c.low:.4g} to {c.high:.4g}" for c in self.channels]
        lines += [f"{p.severity}: {f'{p.where}: ' * bool(p.where)}{p.message}" for p in self.problems]
        lines += [f"repaired: {text}" for text in self.repairs]
        if self.suggestion:
            s = self.suggestion
            lines.append(f"suggested: {s}")
        return "\n".join(lines)


def check(data: Any, **options: Any) -> Check:
    """Say what was understood of data and what may be wrong with it, before anything is fitted.

    **Arguments** as of `lamperti.read`; or series that were read before.

    **Returns** a `Check`: series, channels, sampling, suspected problems with their severity, and a suggested lag and
    embedding dimension. `print` it, or see `to_dict`.

    **Raises** `SeriesError` when the data cannot be read at all.

    ```python
    print(lp.check("lynx.csv", time="year"))
    ```
    """
    return examine(data, options)[1]


def examine(data: Any, options: dict[str, Any]) -> tuple[list[Series], Check]:
    """The series of some data, and the report on them; what reading warns of is in the report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LampertiWarning)
        series = _read(data, options)
        refused = _refusals(series)
    sampling = describe_sampling(series)
    problems = [*refused, *(Problem("warning", "precision", "", text) for text in _said(caught))]
    names, total = series[0].names, sum(s.length for s in series)
    moving, observed = varying(series), np.sum([s.mask.sum(axis=0) for s in series], axis=0)
    problems += [
        Problem("error", "constant", name, "it does not vary. Leave it out, or pass drop_constant=True.")
        for name, varies in zip(names, moving, strict=True)
        if not varies
    ]
    closely = _spread_out(np.flatnonzero(moving))
    for p in np.flatnonzero(moving):
        problems += missing_problems(names[p], 1 - float(observed[p]) / total)
    for p in closely:
        problems += channel_problems(names[p], channel_values(series, p))
    scaled = _standardised(series, closely) if not any(p.code == "units" for p in refused) else []
    for k, p in enumerate(closely if scaled else []):
        problems += dynamics_problems(names[p], [one[:, k : k + 1] for one in scaled])
    if scaled:
        problems += law_problems([s.select([names[p] for p in closely]) for s in series], _CLOSELY)
    if len(closely) < moving.sum():
        text = f"of {moving.sum()} channels, {len(closely)} were looked at closely; lag and dimension are theirs."
        problems.append(Problem("note", "many channels", "", text))
    suggestion = suggest(series, closely) if scaled else None
    problems += set_problems(series, sampling, suggestion.window if suggestion else None)
    clocks = [problem.where for problem in problems if problem.code == "time column"]
    problems = [problem for problem in problems if not (problem.code == "trend" and problem.where in clocks)]
    return series, Check(
        series=tuple(_summary(s, i) for i, s in enumerate(series)),
        channels=tuple(_channel(series, p) for p in range(series[0].n_channels)),
        sampling=sampling,
        time_unit=series[0].time_unit,
        problems=tuple(sorted(problems, key=lambda problem: _SEVERITIES.index(problem.severity))),
        repairs=tuple(dict.fromkeys(text for s in series for text in s.repairs)),
        suggestion=suggestion,
        recordings=tuple(series),
    )


def _read(data: Any, options: dict[str, Any]) -> list[Series]:
    if options or isinstance(data, (str, os.PathLike)):
        return read(data, **options)
    return as_series_list(data)


def _said(caught: list[warnings.WarningMessage]) -> list[str]:
    return list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, LampertiWarning)))


def _refusals(series: list[Series]) -> list[Problem]:
    """Why `fit` would not take the data, if it would not; constant channels are told one by one elsewhere."""
    whole = np.flatnonzero(varying(series))
    if not len(whole):
        return []
    kept = [s.select([s.names[p] for p in whole]) for s in series]
    found = []
    for look, code in ((check_for_training, "refused"), (Scaler.from_series, "units")):
        try:
            look(kept)
        except SeriesError as error:
            found.append(Problem("error", code, "", str(error)))
    return found


def _spread_out(channels: np.ndarray) -> list[int]:
    """All of a few channels, or as many of many, from the first to the last."""
    n = len(channels)
    return [int(channels[i]) for i in np.unique(np.linspace(0, n - 1, min(n, _CLOSELY)).round().astype(int))]


def _standardised(series: list[Series], varying: list[int]) -> list[np.ndarray]:
    """The channels that vary, standardised, with outliers drawn in; of very long data the first part."""
    if not varying:
        return []
    kept = [s.select([s.names[p] for p in varying]) for s in series]
    scaler = Scaler.from_series(kept)
    arrays, left = [], LOOKED_AT
    for one in kept:
        if left < 2:
            break
        arrays.append(scaler.values(one.values[:left]))
        left -= one.length
    pooled = np.concatenate(arrays)
    if not np.isfinite(pooled).any(axis=0).all():
        return []
    middle = np.nanmedian(pooled, axis=0)
    reach = 10 * 1.4826 * np.nanmedian(np.abs(pooled - middle), axis=0)
    reach = np.where(reach > 0, reach, np.inf)
    return [np.clip(one, middle - reach, middle + reach) for one in arrays]


def _summary(series: Series, i: int) -> SeriesSummary:
    missing = int(series.mask.size - series.mask.sum())
    return SeriesSummary(
        series.label or str(i), series.length, float(series.times[0]), float(series.times[-1]), missing
    )


def _channel(series: Sequence[Series], p: int) -> ChannelSummary:
    x = np.concatenate(channel_values(series, p))
    total = sum(s.length for s in series)
    mean = float(np.mean(x / 2**16)) * 2**16  # a sum of values near the largest float would overflow
    first = series[0]
    return ChannelSummary(
        first.names[p],
        first.units[p],
        len(x),
        total - len(x),
        mean,
        spread(x),
        float(x.min()),
        float(x.max()),
        quantum(x),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
