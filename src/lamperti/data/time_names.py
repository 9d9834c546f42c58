"""Which names of columns are those of times, and the unit that such a name gives: "time", "Time (s)", "t_ms"."""

import re

_TIME_NAMES = ("time", "date", "datetime", "timestamp", "ds")
TIME_COLUMNS = ("t", "DateTime", "TimeStamp", *(f(name) for name in _TIME_NAMES for f in (str, str.title, str.upper)))
"""Taken for times without being asked for. T is a temperature, and so is not among them."""
_WORDS = frozenset({*_TIME_NAMES, "time stamp", "date time", "date/time", "elapsed", "elapsed time", "time elapsed"})
"""The same, whatever the case, of names of columns that have a unit or several words."""
_COUNTS = (
    "year", "years", "month", "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "sec", "ms",
    "index", "sample", "frame",
)  # fmt: skip
COUNTING_COLUMNS = tuple(f(name) for name in _COUNTS for f in (str, str.title, str.upper))
"""Taken for times where they increase in equal steps, which is told as a repair."""
_UNITS = {
    "ns": ("ns",),
    "µs": ("us", "µs", "μs", "usec"),
    "ms": ("ms", "msec", "msecs", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "years": ("y", "yr", "yrs", "year", "years", "a"),
    "ka": ("ka", "kyr", "kyrs"),
    "Ma": ("ma", "myr", "myrs"),
}
_SPELT = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
_IN_BRACKETS = re.compile(r"(.+?)[\s_]*[(\[](.*)[)\]]")
_AT_THE_END = re.compile(r"(.+?)(?:[\s_,/]+|\s+in\s+)(\w+)")


def is_time_name(name: str) -> bool:
    """Whether a column of this name is taken for the times.

    >>> [is_time_name(name) for name in ("Time (s)", "time_ms", "t [ms]", "Elapsed time", "T (K)", "time constant (s)")]
    [True, True, True, True, False, False]
    """
    words, unit = _split(name)
    if words == "t" and unit in _SPELT:
        return True
    return name in TIME_COLUMNS or words.lower() in _WORDS


def unit_in_name(name: str) -> str:
    """The unit that the name of a column of times gives; empty where it gives none that is known.

    >>> unit_in_name("Time (sec)"), unit_in_name("time_ms"), unit_in_name("Time (UTC)"), unit_in_name("Age [ka BP]")
    ('s', 'ms', '', 'ka')
    """
    return _SPELT.get(_split(name)[1].removesuffix(" bp"), "")


def _split(name: str) -> tuple[str, str]:
    """The words of a name, and what stands in brackets after them, or a unit at the end."""
    name = name.strip()
    found = _IN_BRACKETS.fullmatch(name) or _AT_THE_END.fullmatch(name)
    if found is None or not (name[-1] in ")]" or found[2].lower() in _SPELT):
        return _plain(name), ""
    return _plain(found[1]), found[2].strip().lower()


def _plain(words: str) -> str:
    return " ".join(words.replace("_", " ").split())
