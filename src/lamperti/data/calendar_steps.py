"""Steps of the calendar: months, quarters, years and business days, which are equal steps though not equal in seconds.

Notation   k: whole steps from 1970 on, whose dates are the grid      t: times, seconds since 1970
A time between two dates of the grid has the fraction of the way between them, so that position and time are functions
of each other, and rows that are missing leave a step of two or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lamperti._typing import Float, Int

Rule = Literal["day", "first business day", "last business day", "middle", "business days"]
RULES: tuple[Rule, ...] = ("day", "first business day", "last business day", "middle")

_DAY = 86400.0
_LEAST = 6  # dates, without which no calendar is seen in them
_LEAST_BUSINESS = 10
_SHARE = 0.95  # of the dates must be on the grid; the others lie between
_CLOCK_CHANGE = 7200.0  # local midnights in UTC move by an hour in summer
_NOON = 11 * 3600.0  # what is later than 13:00 is counted from the next midnight, as local times of the east are
LONGEST_STRIDE = 1200  # months
_FAR = 1e12  # seconds: thirty thousand years, beyond which dates are none


@dataclass(frozen=True)
class CalendarSteps:
    """The grid of dates of a regular calendar."""

    rule: Rule
    """Where in its month each date is; or business days, of which each week has five."""
    months: int = 0
    """From one date to the next; 0 for business days."""
    phase: int = 0
    """Of the months since 1970 that have a date, the rest of their division by ``months``."""
    day: int = 1
    """Of rule "day"; in months that are shorter, their last: 31 is the end of every month."""
    offset: float = 0.0
    """Seconds after midnight, UTC."""

    @property
    def unit(self) -> str:
        if not self.months:
            return "business days"
        return "years" if self.months % 12 == 0 else "quarters" if self.months == 3 else "months"

    @property
    def step(self) -> float:
        """The length of a step in ``unit``."""
        return {"years": self.months / 12, "months": float(self.months)}.get(self.unit, 1.0)

    def positions(self, times: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """Where times are on the grid, in steps since 1970; whole numbers at its dates."""
        days = np.floor((times - self.offset) / _DAY).astype(np.int64)
        if self.months:
            month = _month_of(days)
            k = (month - self.phase) // self.months
        else:
            week, weekday = np.divmod(days + 3, 7)
            k = 5 * week + np.minimum(weekday, 4)
        k = k - (self._moments(k) > times)
        k = k + (self._moments(k + 1) <= times)
        begin = self._moments(k)
        return k + (times - begin) / (self._moments(k + 1) - begin)

    def times(self, positions: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """The times of positions: what `positions` undoes. Those of whole steps are dates of the grid."""
        near = np.round(positions)
        positions = np.where(np.abs(positions - near) < 1e-9, near, positions)
        k = np.floor(positions).astype(np.int64)
        begin = self._moments(k)
        return begin + (positions - k) * (self._moments(k + 1) - begin)

    def _moments(self, k: Int[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        if not self.months:
            week, weekday = np.divmod(k, 5)
            return (7 * week + weekday - 3) * _DAY + self.offset
        first, following = (_first_day(self.phase + (k + more) * self.months) for more in (0, 1))
        next_month = _first_day(self.phase + k * self.months + 1)
        if self.rule == "middle":
            return 0.5 * (first + following) * _DAY + self.offset
        if self.rule == "day":
            return (first + np.minimum(self.day, next_month - first) - 1) * _DAY + self.offset
        begin = first if self.rule == "first business day" else next_month - 1
        roll = "forward" if self.rule == "first business day" else "backward"
        return np.busday_offset(begin.astype("datetime64[D]"), 0, roll=roll).astype(np.int64) * _DAY + self.offset


def find_calendar(times: Sequence[Float[np.ndarray, " T"]]) -> CalendarSteps | None:
    """The calendar that nearly all dates of all series keep to, rows that are missing aside; None where there is none.

    Days, weeks and shorter steps need none: they are equal in seconds.
    """
    steps = np.concatenate([np.diff(t) for t in times])
    if len(steps) < _LEAST - 1 or max(float(np.abs(t).max()) for t in times) > _FAR:
        return None
    step = float(np.median(steps)) / _DAY
    if 0.9 < step < 1.1:
        return _business_days(times)
    return _months(times) if step > 27.5 else None


def _months(times: Sequence[np.ndarray]) -> CalendarSteps | None:
    together = np.concatenate(times)
    offset = _time_of_day(together)
    found = []
    for rule in RULES:
        if rule != "middle" and offset is None:
            continue
        begin = 0.0 if rule == "middle" else offset or 0.0
        days = np.floor(together / _DAY) if rule == "middle" else np.round((together - begin) / _DAY)
        days = days.astype(np.int64)
        month = _month_of(days)
        apart = np.concatenate([np.diff(one) for one in np.split(month, np.cumsum([len(t) for t in times])[:-1])])
        stride = int(np.median(apart))
        if not 1 <= stride <= LONGEST_STRIDE or (apart < 1).any():
            continue
        phase = 0 if rule == "middle" else int(np.median(month % stride))
        day = int((days - _first_day(month)).max()) + 1 if rule == "day" else 1
        grid = CalendarSteps(rule, stride, phase, day, begin)
        found.append((_share_on(grid, together), grid))
    share, best = max(found, key=lambda pair: pair[0], default=(0.0, None))
    return best if share >= _SHARE else None


def _business_days(times: Sequence[np.ndarray]) -> CalendarSteps | None:
    together = np.concatenate(times)
    offset = _time_of_day(together)
    if offset is None or len(together) < _LEAST_BUSINESS:
        return None
    weekday = (np.round((together - offset) / _DAY).astype(np.int64) + 3) % 7
    grid = CalendarSteps("business days", offset=offset)
    weekends = sum(int(np.sum(np.diff(t) > 2.5 * _DAY)) for t in times)
    # Two weekends at least must have been left out, and none worked: a daily record has Saturdays.
    return grid if weekends > 1 and (weekday < 5).all() and _share_on(grid, together) >= _SHARE else None


def _share_on(grid: CalendarSteps, times: np.ndarray) -> float:
    """The share of times at dates of the grid, up to a change of the clock; of middles, up to half a day."""
    near = 0.51 * _DAY if grid.rule == "middle" else _CLOCK_CHANGE
    nearest = grid.times(np.round(grid.positions(times)))
    return float(np.mean(np.abs(nearest - times) <= near))


def _time_of_day(times: np.ndarray) -> float | None:
    """When in the day all times are, in seconds from its midnight; None where that differs."""
    seconds = (times + _NOON) % _DAY - _NOON
    usual = float(np.median(seconds))
    return usual if np.mean(np.abs(seconds - usual) <= _CLOCK_CHANGE) >= _SHARE else None


def _month_of(days: Int[np.ndarray, " T"]) -> Int[np.ndarray, " T"]:
    """Months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_day(months: Int[np.ndarray, " T"]) -> Int[np.ndarray, " T"]:
    """Days since 1970 of the first of a month."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
