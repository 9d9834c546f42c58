"""Standardisation: values, or their logarithms, to zero mean and unit sd, time to unit median step.

Notation   y: values [T, P]   shift, scale: mean and sd a channel [P], of log y where that is modelled
           time_unit: median step over all series

Dates that keep to a calendar (months, quarters, years, business days) are counted in its steps: here, and only here,
times of a series become steps of the model (`steps_of`, `in_steps`) and steps become times again (`times_after`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.data.calendar_steps import CalendarSteps, find_calendar
from lamperti.data.dates import DATES
from lamperti.data.durations import SECONDS, unit_for
from lamperti.data.series import Series

# Beyond these a difference of two values overflows, or the reciprocal of a scale does.
_LARGEST = np.finfo(np.float64).max / 4
_SMALLEST = 4 / np.finfo(np.float64).max


_MOST_TIMES = 1.5  # the largest value, that paths of a channel whose logarithm is modelled are led to
SHORTEST, LONGEST = 1e-100, 1e100  # steps of time: beyond, rates of change overflow


@dataclass(frozen=True, eq=False)
class Scaler:
    """The map between the user's units and the model's."""

    shift: Float[np.ndarray, " P"]
    scale: Float[np.ndarray, " P"]
    time_unit: float
    calendar: CalendarSteps | None = None
    """Of dates that keep to one."""
    duration_unit: str = ""
    """For lengths of time, where times were dates: "h", "months", ..."""
    end: float | None = None
    """The last date of the data."""
    logged: tuple[str, ...] = ()
    """The name of each channel whose logarithm is modelled, empty of the others; nothing where there is none."""
    sds: Float[np.ndarray, " P"] | None = None
    """Of the values themselves, where some logarithm is modelled."""

    @classmethod
    def from_series(cls, series: Sequence[Series], logged: Sequence[str] = ()) -> "Scaler":
        """Mean and sd over the observed values of all series together, and their median step. ``logged``: channels
        whose logarithm is modelled."""
        names = series[0].names
        if unknown := [name for name in logged if name not in names]:
            raise SeriesError(f"log= names {unknown[0]!r}, which is no channel. There are: {', '.join(names)}.")
        values = [np.concatenate([s.values[s.mask[:, p], p] for s in series]) for p in range(len(names))]
        moments = [_moments(y, name) for y, name in zip(values, names, strict=True)]
        found = cls._of_dates(series, *np.array(moments).T)
        if not logged:
            return found
        in_logs = [
            _moments(_logarithm(y, name), name) if name in logged else plain
            for y, name, plain in zip(values, names, moments, strict=True)
        ]
        shift, scale = np.array(in_logs).T
        which = tuple(name if name in logged else "" for name in names)
        return replace(found, shift=shift, scale=scale, logged=which, sds=found.scale)

    @classmethod
    def _of_dates(cls, series: Sequence[Series], shift: np.ndarray, scale: np.ndarray) -> "Scaler":
        step = float(np.median(np.concatenate([s.steps for s in series])))
        if not SHORTEST <= step <= LONGEST:
            raise SeriesError(f"the median step of the times is {step:.3g}, which is beyond all units. Change theirs.")
        if any(s.time_unit != DATES for s in series):
            return cls(shift, scale, step)
        last = max(float(s.times[-1]) for s in series)
        return cls(shift, scale, step, find_calendar([s.times for s in series]), step_told(series)[1], last)

    @property
    def spread(self) -> Float[np.ndarray, " P"]:
        """The sd of each channel, in its own unit."""
        return self.scale if self.sds is None else self.sds

    @property
    def most_room(self) -> Float[np.ndarray, " P"]:
        """How far above its largest value a channel may be led, in the model's units. A quarter of the range of a
        logarithm may be many times the range of the values."""
        logged = np.array([bool(name) for name in self.logged] or [False] * len(self.scale))
        return np.where(logged, np.log(_MOST_TIMES) / self.scale, np.inf)

    @property
    def step(self) -> float:
        """The length of a step as it is told: in ``duration_unit`` of dates, in the unit of the times else."""
        if self.calendar is not None:
            return self.calendar.step
        return self.time_unit / SECONDS.get(self.duration_unit, 1.0)

    def steps_of(self, series: Series) -> Float[np.ndarray, " K"]:
        """The steps between the samples of a series, in the model's units."""
        if self.calendar is None or series.time_unit != DATES:
            return self.steps(series.steps)
        return np.diff(self.calendar.positions(series.times))

    def in_steps(self, series: Series) -> Series:
        """The series with its times counted in steps from its first sample on."""
        times = np.concatenate([[0.0], np.cumsum(self.steps_of(series))])
        return series._replace(times=times, time_unit="")

    def times_after(self, time: float, n_steps: int, time_unit: str) -> Float[np.ndarray, " H"]:
        """The times of the next steps after ``time``; dates of the calendar where there is one."""
        ahead = np.arange(1, n_steps + 1)
        if self.calendar is None or time_unit != DATES:
            return time + self.time_unit * ahead
        return self.calendar.times(self.calendar.positions(np.array([time])) + ahead)

    def values(self, y: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        """Values in the model's units; NaN stays NaN."""
        if any(self.logged):
            y = np.array(y, dtype=float)
            for p, name in enumerate(self.logged):
                if name:
                    y[..., p] = _logarithm(y[..., p], name)
        return (y - self.shift) / self.scale

    def unscale_values(self, y: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        y = y * self.scale + self.shift
        for p, name in enumerate(self.logged):
            if name:
                with np.errstate(over="ignore"):  # what runs away is infinite, and found by those who look
                    y[..., p] = np.exp(y[..., p])
        return y

    def unscale_sd(self, sd: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        """Of a channel whose logarithm is modelled, a share of the value."""
        return sd * self.scale

    def steps(self, dt: Float[np.ndarray, "*K"]) -> Float[np.ndarray, "*K"]:
        """Time steps in the model's units."""
        return dt / self.time_unit


def step_told(series: Sequence[Series]) -> tuple[float, str]:
    """The median step of some series as it is told, and its unit: that of their times; of dates, one that suits step
    and span, or the calendar's."""
    step = float(np.median(np.concatenate([s.steps for s in series])))
    if any(s.time_unit != DATES for s in series):
        return step, series[0].time_unit
    if (calendar := find_calendar([s.times for s in series])) is not None:
        return calendar.step, calendar.unit
    unit = unit_for(step, max(float(s.times[-1] - s.times[0]) for s in series))
    return step / SECONDS[unit], unit


def _logarithm(y: Float[np.ndarray, "*K"], name: str) -> Float[np.ndarray, "*K"]:
    with np.errstate(invalid="ignore"):
        low = y <= 0.0
    if low.any():
        raise SeriesError(
            f"column {name!r} holds {y[low].flat[0]:.6g}, but its logarithm is modelled, of which there is none for 0 "
            "and less. Declare such values missing, or fit the values themselves: log=()."
        )
    return np.log(y)


def _moments(values: Float[np.ndarray, " N"], name: str) -> tuple[float, float]:
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST:
        raise SeriesError(f"column {name!r} holds values as large as {largest:.3g}, which overflow. Change its unit.")
    if not values.size or values.min() == values.max():
        raise SeriesError(f"column {name!r} is constant, so it cannot be standardised. Leave it out.")
    # In units of a power of two near the largest value no square overflows or vanishes and no digit is lost;
    # centred before it is squared, a small signal on a large offset survives. The second mean takes out the
    # rounding of the first.
    unit = float(np.ldexp(1.0, np.frexp(largest)[1]))
    relative = values / unit
    centre = relative.mean()
    centred = relative - centre
    centre += centred.mean()
    scale = float(np.std(centred) * unit)
    if scale < _SMALLEST:
        raise SeriesError(f"column {name!r} varies by only {scale:.3g}, which underflows. Change its unit.")
    return float(centre * unit), scale
