"""A series: values, the times they were taken at, and which of them were observed."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError
from lamperti._shown import Shown, figures
from lamperti._typing import Bool, Float
from lamperti.data import _checks
from lamperti.data._checks import as_float_array, as_mask, as_matrix, as_names, as_times, as_units, check_finite
from lamperti.data.calendar_steps import CalendarSteps, find_calendar
from lamperti.data.dates import DATES, span_text
from lamperti.data.durations import in_words, told
from lamperti.data.index import times_of
from lamperti.data.kinds import library_of
from lamperti.data.variation import check_varies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIN_TRANSITIONS = 10
_CLOCK_CHANGE = 0.05  # of a step: an hour of a business day, when summer time begins


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Series(Shown):
    """One recording of one or several channels.

    **Arguments**

    - `values`: [T] or [T, P] real numbers.
    - `times`: [T] increasing numbers (or datetime64, read as UTC and kept as seconds since 1970).
      They need not be regular.
    - `dt`: the sampling step instead of `times`. With neither, the index of a pandas object, or 1.
    - `mask`: [T, P] or [T] booleans, True where observed.
    - `names`: one a channel; "y", or "y0", "y1", ... by default.
    - `missing`: "refuse" (default) or "nan", which declares NaN as missing.
    - `units`: one a channel, or a mapping from names; only carried along and shown.

    **Holds** `values` [T, P] (NaN where not observed), `mask` [T, P], `times` [T], `names` and `units`; the
    arrays are read-only copies. A series that `lamperti.read` made also has a `label` (its id), a `time_unit`,
    and `repairs`: what was done to the data on request, a sentence each.

    **Raises** `SeriesError` when the data cannot be used as given.

    ```python
    series = Series([0.1, 0.4, float("nan"), 0.3], dt=0.5, missing="nan")
    past, future = series.split(2)
    ```
    """

    values: Float[np.ndarray, "T P"]
    mask: Bool[np.ndarray, "T P"]
    times: Float[np.ndarray, " T"]
    names: tuple[str, ...]
    units: tuple[str, ...]
    label: str
    time_unit: str
    repairs: tuple[str, ...]

    def __init__(
        self,
        values: Any,
        times: Any = None,
        dt: Any = None,
        mask: Any = None,
        names: Sequence[str] | str | None = None,
        missing: str = "refuse",
        units: Mapping[str, str] | Sequence[str] | str | None = None,
    ):
        array = as_matrix(values)
        if times is None and dt is None:
            times = times_of(values)
        names = as_names(names, array.shape[1])
        observed = check_finite(array, as_mask(mask, array.shape), names, missing)
        dated = np.asarray(times).dtype.kind == "M"
        self._store(
            values=array,
            mask=observed,
            times=as_times(times, dt, len(array)),
            names=names,
            units=as_units(units, names),
            label="",
            time_unit=DATES if dated else "",
            repairs=(),
        )

    def _replace(self, **parts: Any) -> "Series":
        """The series with some parts exchanged for others that were checked before; a part of a series may lack
        what a whole must have."""
        series = Series.__new__(Series)
        series._store(**{name: getattr(self, name) for name in self.__dataclass_fields__} | parts)
        return series

    def _store(self, values: np.ndarray, mask: np.ndarray, times: np.ndarray, **labels: Any) -> None:
        values = np.where(mask, values, np.nan)
        for array in (values, mask, times):
            array.setflags(write=False)
        for name, value in {"values": values, "mask": mask, "times": times, **labels}.items():
            object.__setattr__(self, name, value)

    @property
    def length(self) -> int:
        return len(self.times)

    @property
    def n_channels(self) -> int:
        return len(self.names)

    @property
    def steps(self) -> Float[np.ndarray, " K"]:
        """Time from each sample to the next, one fewer than samples."""
        return np.diff(self.times)

    @property
    def dt(self) -> float:
        """The median step."""
        if self.length < 2:
            raise SeriesError("one sample has no step. Take a longer part of the series.")
        return float(np.median(self.steps))

    @property
    def calendar(self) -> CalendarSteps | None:
        """The calendar that the dates keep to (months, quarters, years, business days); None where there is none."""
        return find_calendar([self.times]) if self.time_unit == DATES else None

    @property
    def is_regular(self) -> bool:
        """Whether all steps are equal, up to the rounding of the times themselves; those of a calendar are."""
        if self.length < 3:
            return True
        if (grid := self.calendar) is not None:
            return bool(np.abs(np.diff(grid.positions(self.times)) - 1.0).max() <= _CLOCK_CHANGE)
        rounding = 4 * np.finfo(float).eps * np.abs(self.times).max()
        return bool(np.abs(self.steps - self.dt).max() <= 1e-6 * self.dt + rounding)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> "Series":
        """The samples of a slice; one sample is enough."""
        if not isinstance(part, slice) or (part.step or 1) < 1:
            raise SeriesError(f"a series is cut by a forward slice such as series[10:50]; got {part!r}.")
        times = self.times[part]
        if not len(times):
            raise SeriesError(f"series[{part.start}:{part.stop}] is empty; the series has {self.length} samples.")
        return self._replace(values=self.values[part], mask=self.mask[part], times=times)

    def select(self, names: Sequence[str] | str) -> "Series":
        """The channels of these names, in this order."""
        wanted = _checks.chosen(names, self.names)
        places = {name: i for i, name in enumerate(self.names)}
        index = [places[name] for name in wanted]
        units = tuple(self.units[i] for i in index)
        return self._replace(values=self.values[:, index], mask=self.mask[:, index], names=wanted, units=units)

    def split(self, at: int) -> tuple["Series", "Series"]:
        """The first ``at`` samples and the rest; negative ``at`` counts from the end."""
        _checks.check_place(at)
        return self[:at], self[at:]

    def plot(self) -> "Figure":
        """The channels in time, a panel each."""
        return figures().courses(self)

    def _facts(self) -> dict[str, str]:
        lost = int(self.mask.size - self.mask.sum())
        label = {"label": self.label} if self.label else {}
        return label | {
            "channels": ", ".join(f"{n} [{u}]" if u else n for n, u in zip(self.names, self.units, strict=True)),
            "samples": str(self.length),
            "times": span_text(self.times, self.time_unit),
            **({"sampling": self._sampling()} if self.length > 1 else {}),
            "missing": f"{lost} of {self.mask.size} values" if lost else "none",
        }

    def __repr__(self) -> str:
        lost = int(self.mask.size - self.mask.sum())
        missing = f", {lost} of {self.mask.size} values missing" if lost else ""
        dated = self.time_unit == DATES
        span = span_text(self.times, DATES) if dated else f"t={self.times[0]:g}..{self.times[-1]:g}"
        sampling = f", {self._sampling()}" if self.length > 1 else ""
        return f"Series({self.length} samples of {', '.join(self.names)}; {span}{sampling}{missing})"

    def _sampling(self) -> str:
        """The step; "dt=" of numbers, in words of dates."""
        grid = self.calendar
        step = in_words(grid.step, grid.unit) if grid else told(self.dt, self.time_unit)
        if self.time_unit == DATES:
            odd = f"step {step}, rows missing" if grid else f"irregular, median step {step}"
            return f"step {step}" if self.is_regular else odd
        return f"dt={self.dt:g}" if self.is_regular else f"irregular, median dt={self.dt:g}"


def as_series_list(data: Any) -> list[Series]:
    """Series from whatever holds them.

    Takes a `Series`; a list of `Series`, arrays or frames (lengths may differ); an array [T], [R, T] or
    [R, T, P] of R series; or a table of any library or an xarray object, as `lamperti.read` takes them without
    options. All series must have the same channels.
    """
    first = data[0] if isinstance(data, (list, tuple)) and data else data
    if isinstance(first, (str, os.PathLike)):
        raise SeriesError(f"{first!r} is text or a path, not data. Read a file first: lamperti.read(path).")
    if holds_items(data):
        return gathered(data, _as_series)
    if isinstance(data, Series) or library_of(data) is not None:
        return _alike(_as_series(data))
    array = as_float_array(data, "data")
    if array.ndim not in (1, 2, 3):
        raise SeriesError(f"data must be [T], [R, T] or [R, T, P]; got shape {array.shape}.")
    if array.ndim == 2:
        _check_orientation(*array.shape)
    return _as_series(array) if array.ndim == 1 else gathered(list(array), _as_series)


def holds_items(data: Any) -> bool:
    """Whether data is a list of recordings, not of the numbers of one."""
    return isinstance(data, (list, tuple)) and not (data and (data[0] is None or np.isscalar(data[0])))


def gathered(items: Sequence[Any], make: Callable[[Any], list[Series]]) -> list[Series]:
    """The series that ``make`` makes of each item, which must go together; errors tell the place of the item."""
    series: list[Series] = []
    for i, item in enumerate(items):
        try:
            series += make(item)
        except SeriesError as error:
            raise SeriesError(f"series {i}: {error}") from None
    return _alike(series)


def _alike(series: list[Series]) -> list[Series]:
    if not series:
        raise SeriesError("data holds no series. Pass at least one.")
    for i, one in enumerate(series):
        if one.names != series[0].names:
            raise SeriesError(
                "all series must have the same channels in the same order; "
                f"series 0 has ({', '.join(series[0].names)}), series {i} has ({', '.join(one.names)})."
            )
        if one.units != series[0].units:
            raise SeriesError(
                f"all series must be in the same units; series 0 has {series[0].units}, series {i} has {one.units}."
            )
        if (one.time_unit == DATES) != (series[0].time_unit == DATES):
            raise SeriesError(f"of series 0 and series {i}, one has dates and the other has not. Give both the same.")
    return series


def _check_orientation(n_series: int, length: int) -> None:
    """An array [T, P] of one recording is easily taken for [R, T]: many series of as few samples as it has channels."""
    if not length < min(n_series, _MIN_TRANSITIONS):
        return
    text = f"an array of shape ({n_series}, {length}) is [R, T]: {n_series} series of {length} samples each. "
    text += f"One recording of {n_series} samples and {length} channels goes in as lamperti.Series(array)."
    if length == 1:
        raise SeriesError(text)
    warnings.warn(text, LampertiWarning, stacklevel=4)


def _as_series(item: Any) -> list[Series]:
    if isinstance(item, Series):
        return [item]
    if library_of(item) is None:
        return [Series(item)]
    from lamperti.data.reading import read  # which imports this module

    return read(item)


def check_for_training(series: Sequence[Series], *, window: int | None = None) -> None:
    """Refuse a data set that no model can be learned from.

    These checks are over all series together: one constant series among others is fine, and so is a constant
    context to forecast from. ``window`` is the length of the delay window, if it is known.

    Raises `SeriesError` for a constant channel or too little data; warns (`LampertiWarning`) when a channel
    hardly varies about its mean.
    """
    if not series:
        raise SeriesError("there is no series to learn from. Pass at least one.")
    transitions = sum(s.length - 1 for s in series)
    if transitions < _MIN_TRANSITIONS:
        raise SeriesError(
            f"the data has {transitions} transitions between samples; learning needs at least {_MIN_TRANSITIONS}."
        )
    longest = max(s.length for s in series)
    if window is not None and longest < window:
        raise SeriesError(
            f"the delay window spans {window} samples but the longest series has {longest}. "
            f"Pass a series of at least {window} samples, or a shorter window."
        )
    for p, name in enumerate(series[0].names):
        check_varies(np.concatenate([s.values[s.mask[:, p], p] for s in series]), name)
