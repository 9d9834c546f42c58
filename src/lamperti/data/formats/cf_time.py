"""Times of climate and forecast files: counts since a moment, in one of several calendars.

The old calendar of Europe (Julian) and the one that changes over in 1582 ("standard") count real days, and are
converted. Others have days that never were, or lack some that were.
"""

import re
import warnings
from typing import Any

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError

_SINCE = re.compile(r"^\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)
_EPOCH = re.compile(
    r"(?P<year>\d{1,4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ]\s*(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|(?P<sign>[+-])(?P<zone_hour>\d{1,2})(?::?(?P<zone_minute>\d{2}))?)?",
    re.IGNORECASE | re.ASCII,
)
_DAY = 86_400_000_000  # all in microseconds
_UNITS = {
    "microseconds": 1, "microsecond": 1, "microsec": 1, "us": 1,
    "milliseconds": 1000, "millisecond": 1000, "millisec": 1000, "ms": 1000, "msec": 1000,
    "seconds": 10**6, "second": 10**6, "sec": 10**6, "secs": 10**6, "s": 10**6,
    "minutes": 60 * 10**6, "minute": 60 * 10**6, "min": 60 * 10**6, "mins": 60 * 10**6,
    "hours": 3600 * 10**6, "hour": 3600 * 10**6, "hr": 3600 * 10**6, "hrs": 3600 * 10**6, "h": 3600 * 10**6,
    "days": _DAY, "day": _DAY, "d": _DAY, "weeks": 7 * _DAY, "week": 7 * _DAY,
}  # fmt: skip
_NANOSECONDS = ("nanoseconds", "nanosecond", "ns")  # as microseconds, a float holds no more of a date
_UNITS |= dict.fromkeys(_NANOSECONDS, 1)
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian", "julian")
_GREGORIAN, _LAST_JULIAN = (1582, 10, 15), (1582, 10, 4)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def counts_since(unit: str) -> bool:
    """Whether a unit is one of time counted from a moment, as "days since 2000-01-01"."""
    return _SINCE.match(unit) is not None


def why_no_dates(calendar: str) -> str:
    """What to say of times in a calendar whose days are not real ones; "" for others."""
    return "" if calendar.lower() in _CALENDARS else f"it uses the calendar {calendar!r}, which has no real dates"


def dates_since(name: str, values: np.ndarray, lost: np.ndarray, unit: str, calendar: str) -> np.ndarray:
    """Counted times as datetime64, NaT where ``lost``."""
    found = _SINCE.match(unit)
    assert found is not None
    length, epoch = _UNITS.get(found[1].lower()), found[2]
    if length is None:
        raise SeriesError(f"variable {name!r} counts time in {found[1]!r}, whose length varies. Use days or seconds.")
    start = _epoch(name, found[1], epoch, calendar.lower())
    counted = np.where(lost, 0.0, values.astype(np.float64)) / (1000 if found[1].lower() in _NANOSECONDS else 1)
    if not np.isfinite(counted).all() or (np.abs(counted) > 2**62 / length).any():
        raise SeriesError(f"variable {name!r} holds times that are no dates since {epoch}.")
    # Whole days and hours exactly: as floats, microseconds since the year 1 would lose their last digits.
    whole = np.floor(counted)
    micro = whole.astype(np.int64) * length + np.round((counted - whole) * length).astype(np.int64)
    stamps = np.datetime64(start, "us") + micro.astype("timedelta64[us]")
    return np.where(lost, np.datetime64("NaT"), stamps)


def dates_of_cftime(cells: np.ndarray) -> np.ndarray:
    """Dates of the library cftime, which xarray uses for old and foreign calendars, as datetime64."""
    micro = [
        _days(cell.year, cell.month, cell.day, cell.calendar.lower()) * _DAY
        + (cell.hour * 3600 + cell.minute * 60 + cell.second) * 10**6
        + cell.microsecond
        for cell in cells
    ]
    return np.array(micro, dtype="datetime64[us]")


def _epoch(name: str, unit: str, text: str, calendar: str) -> int:
    """A moment in microseconds since 1970."""
    found = _EPOCH.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        micro = _days(int(found["year"]), int(found["month"]), int(found["day"]), calendar) * _DAY
        clock = [float(found[part] or 0) for part in ("hour", "minute", "second")]
        zone = [float(found[part] or 0) for part in ("zone_hour", "zone_minute")]
        if clock[0] > 24 or max(clock[1:]) >= 60 or zone[0] > 14 or zone[1] >= 60:
            raise ValueError(text)
    except ValueError:
        raise SeriesError(
            f"variable {name!r} counts time since {text!r}, which is not a date. Write its units as "
            "'days since 2000-01-31 00:00:00'."
        ) from None
    if len(found["year"]) < 4:
        warnings.warn(
            f"variable {name!r} counts {unit} since {text}, which is taken as the year {int(found['year'])}. If "
            "another is meant, write it with four digits.",
            LampertiWarning,
            stacklevel=2,
        )
    shift = (zone[0] * 3600 + zone[1] * 60) * (-1 if found["sign"] == "-" else 1)
    return micro + round((clock[0] * 3600 + clock[1] * 60 + clock[2] - shift) * 1e6)


def _days(year: int, month: int, day: int, calendar: str) -> int:
    """Days from 1970-01-01 to a date of a calendar. Raises `ValueError` for one that it does not have."""
    date = (year, month, day)
    julian = calendar == "julian" or (calendar != "proleptic_gregorian" and date < _GREGORIAN)
    if calendar in ("standard", "gregorian") and _LAST_JULIAN < date < _GREGORIAN:
        raise ValueError(date)
    leap = year % 4 == 0 and (julian or year % 100 != 0 or year % 400 == 0)
    if (year < 1 and calendar != "proleptic_gregorian") or not 1 <= month <= 12:
        raise ValueError(date)
    if not 1 <= day <= _LENGTHS[month - 1] + (leap and month == 2):
        raise ValueError(date)
    # Days are counted from the first of March of the year -4800, so that a leap day ends a year.
    months = (month + 9) % 12
    years = year + 4800 - (month < 3)
    count = day + (153 * months + 2) // 5 + 365 * years + years // 4
    return count - 32083 - 2440588 if julian else count - years // 100 + years // 400 - 32045 - 2440588


def is_cftime(values: Any) -> bool:
    """Whether an array holds dates of cftime."""
    return values.dtype.kind == "O" and values.size > 0 and hasattr(values.flat[0], "calendar")
