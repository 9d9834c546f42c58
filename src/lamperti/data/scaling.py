"""Standardisation: values to zero mean and unit sd, time to unit median step.

Notation   y: values [T, P]   shift, scale: mean and sd a channel [P]   time_unit: median step over all series

Dates that keep to a calendar (months, quarters, years, business days) are counted in its steps: here, and only here,
times of a series become steps of the model (`steps_of`, `in_steps`) and steps become times again (`times_after`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

    @classmethod
    def from_series(cls, series: Sequence[Series]) -> "Scaler":
        """Mean and sd over the observed values of all series together, and their median step."""
        moments = [
            _moments(np.concatenate([s.values[s.mask[:, p], p] for s in series]), name)
            for p, name in enumerate(series[0].names)
        ]
        shift, scale = np.array(moments).T
        step = float(np.median(np.concatenate([s.steps for s in series])))
        if not SHORTEST <= step <= LONGEST:
            raise SeriesError(f"the median step of the times is {step:.3g}, which is beyond all units. Change theirs.")
        if any(s.time_unit != DATES for s in series):
            return cls(shift, scale, step)
        last = max(float(s.times[-1]) for s in series)
        return cls(shift, scale, step, find_calendar([s.times for s in series]), step_told(series)[1], last)

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
        return (y - self.shift) / self.scale

    def unscale_values(self, y: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        return y * self.scale + self.shift

    def unscale_sd(self, sd: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
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
