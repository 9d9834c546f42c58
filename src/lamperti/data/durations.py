"""Lengths of time in units that people use. Here, and nowhere else, a unit is chosen and a length becomes text."""

import math

from lamperti.data.dates import DATES

SECONDS = {
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "days": 86400.0,
    "weeks": 7 * 86400.0,
    "years": 365.2425 * 86400.0,
}
"""The units that dates are told in, with their seconds; months, quarters and business days are those of a calendar
(`lamperti.data.calendar_steps`) and have no fixed length."""

_ONE = {"days": "day", "weeks": "week", "months": "month", "quarters": "quarter", "years": "year"}
_ONE |= {"business days": "business day"}


def unit_for(step: float, span: float | None = None) -> str:
    """The unit for data with this median step and span (seconds): the largest that is no longer than what lies in the
    middle between the two, where things happen. Weeks are for steps of whole weeks only.

    >>> unit_for(600.0, 7 * 86400.0), unit_for(86400.0, 3650 * 86400.0), unit_for(0.004), unit_for(604800.0)
    ('h', 'days', 'ms', 'weeks')
    """
    middle = math.sqrt(step) * math.sqrt(max(span or step, step))
    whole_weeks = step >= SECONDS["weeks"] and math.isclose(step / SECONDS["weeks"], round(step / SECONDS["weeks"]))
    fits = [name for name, size in SECONDS.items() if size <= middle * (1 + 1e-9) and (name != "weeks" or whole_weeks)]
    return fits[-1] if fits else "µs"


_LONGEST_WRITTEN = 1e6


def in_words(number: float, unit: str, digits: int = 4) -> str:
    """A length of time as text.

    >>> in_words(1.0, "days"), in_words(2.5, "h"), in_words(3, "business days"), in_words(0.25, "")
    ('1 day', '2.5 h', '3 business days', '0.25')
    >>> in_words(1600.0, "ms", 3), in_words(1600.0, "m", 3)  # a larger unit in place of a power of ten
    ('1.6 s', '1600 m')
    """
    text = f"{number:.{digits}g}"
    if "e+" in text:
        longer = unit_for(number * SECONDS[unit]) if unit in SECONDS else unit
        if longer != unit:
            return in_words(number * SECONDS[unit] / SECONDS[longer], longer, digits)
        text = f"{number:.0f}" if number < _LONGEST_WRITTEN else text
    return f"{text} {one(unit) if text == '1' else unit}".rstrip()


def duration_text(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> duration_text(600.0), duration_text(0.004), duration_text(86400.0), duration_text(5400.0)
    ('10 min', '4 ms', '1 day', '1.5 h')
    """
    unit = unit_for(seconds)
    return in_words(seconds / SECONDS[unit], unit)


def told(length: float, time_unit: str) -> str:
    """A length of time in the unit of the times, or, where these are dates, in one that suits it.

    >>> told(0.5, "ka"), told(60.0, DATES), told(2.0, "")
    ('0.5 ka', '1 min', '2')
    """
    return duration_text(length) if time_unit == DATES else in_words(length, time_unit)


def one(unit: str) -> str:
    """The singular, as after "per"; of a symbol, the symbol.

    >>> one("months"), one("h")
    ('month', 'h')
    """
    return _ONE.get(unit, unit)
