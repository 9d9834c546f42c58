"""From the cells of a column to numbers, times and labels; what cannot be one is refused by column and row."""

import math
import re
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Bool, Float
from lamperti.data._checks import as_float_array, seconds, warn_of_large_integers
from lamperti.data.calendar import calendar_format
from lamperti.data.numerals import Marks, misplaced_mark, plain_number
from lamperti.data.options import Missing

_NO_MARKS = Marks()
_HEADER_AGAIN = "which is the header again. Take that row out."
_OFFSET = re.compile(r"(Z|[+-]\d{2}:?\d{2}|[+-]\d{2})$", re.IGNORECASE)
_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:?\d{2}.*)?)?$")
_OTHER_DATE = re.compile(r"^(\d{1,2}([/.-])\d{1,2}\2\d{4}|\d{4}([/.])\d{1,2}\3\d{1,2})([T ,]+\d{1,2}:\d{2}.*)?$")
_TIME_OF_DAY = re.compile(r"\d[T ]\d{2}(:?\d{2})?")


def numbers(
    name: str, cells: np.ndarray, missing: Missing, marks: Marks = _NO_MARKS, *, category: bool = False
) -> tuple[Float[np.ndarray, " T"], Bool[np.ndarray, " T"]]:
    """A column as floats, and True where it was observed: where no declared number or word stands for missing.

    Empty cells become NaN, which is for the caller to allow. ``marks`` are those that text was read with.
    """
    if category or cells.dtype.kind == "b":
        kind = "categories" if category else "booleans (bool)"
        raise SeriesError(
            f"column {name!r} holds {kind}, not numbers. Leave it out, or declare it: codes={name!r} numbers its "
            "values 0, 1, ..."
        )
    if cells.dtype.kind == "M" and len(cells):
        raise SeriesError(f"column {name!r}, row 0 holds {cells[0]}, {_complaint(name, date.min, marks)}")
    declared = _declared(cells, missing)
    if cells.dtype.kind == "O":
        return _objects(name, cells, declared, marks), ~declared
    return as_float_array(cells, f"column {name!r}"), ~declared


def _declared(cells: np.ndarray, missing: Missing) -> Bool[np.ndarray, " T"]:
    """True where cells hold a number or a word that was declared missing."""
    if cells.dtype.kind == "O":
        words, marks = frozenset(missing.tokens), frozenset(missing.numbers)
        return np.array(
            [
                cell.strip() in words if isinstance(cell, str) else _is_number(cell) and _float(cell) in marks
                for cell in cells
            ],
            dtype=bool,
        )
    declared = np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind not in "iuf":
        return declared
    # As floats of the column's precision hold it: -999.9 is another number in 32 bits than in 64.
    precision = cells.dtype if cells.dtype.kind == "f" and cells.dtype.itemsize < 8 else np.dtype(float)
    with np.errstate(over="ignore"):
        values, marks = cells.astype(precision), np.array(missing.numbers, dtype=float).astype(precision)
    for number, mark in zip(missing.numbers, marks, strict=True):
        if np.isfinite(mark) == np.isfinite(number):  # one that is too large is not in the column
            declared |= values == mark
    return declared


def _objects(name: str, cells: np.ndarray, declared: np.ndarray, marks: Marks) -> np.ndarray:
    empty = pd.isna(cells) | declared
    good = np.array([_is_number(cell) for cell in cells]) | empty
    if not good.all():
        row = _first_bad(cells, ~good, marks)
        complaint = _complaint(name, cells[row], marks)
        raise SeriesError(f"column {name!r}, row {row} holds {_shown(cells[row])}, {complaint}")
    integers = [abs(int(cell)) for cell in cells[~empty] if isinstance(cell, (int, np.integer))]
    warn_of_large_integers(f"column {name!r}", max(integers, default=0))
    values = np.full(len(cells), np.nan)
    values[~empty] = [_float(cell) for cell in cells[~empty]]
    return values


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer beyond the largest float; that infinity is no data is said elsewhere
        return math.inf if cell > 0 else -math.inf


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (Real, Decimal)) and not isinstance(cell, (bool, np.bool_, np.timedelta64))


def _first_bad(cells: np.ndarray, bad: np.ndarray, marks: Marks) -> int:
    """The first cell that is no number even when its text is read; else the first that is text."""
    rows = np.flatnonzero(bad)
    for row in rows:
        if not isinstance(cells[row], str) or not _reads_as_number(cells[row], marks):
            return int(row)
    return int(rows[0])


def _reads_as_number(text: str, marks: Marks) -> bool:
    return plain_number(text, marks) is not None


def _complaint(name: str, cell: Any, marks: Marks) -> str:
    if isinstance(cell, str) and cell.strip() == name:
        return _HEADER_AGAIN
    if isinstance(cell, date) or (isinstance(cell, str) and _ISO_DATE.match(cell.strip())):
        return f"which is a date. If these are the times, pass time={name!r}; if not, leave the column out by columns=."
    if isinstance(cell, str) and _OTHER_DATE.match(cell.strip()):
        return (
            f"which looks like a date. If these are the times, pass time={name!r} and how they are written, as in "
            'time_format="%d/%m/%Y %H:%M"; if not, leave the column out by columns=.'
        )
    if isinstance(cell, complex):
        return "a complex number. Pass its real part, or both parts as two channels."
    if not isinstance(cell, str):
        return "which is not a number. Mend the cell, or leave the column out by columns=."
    if _reads_as_number(cell, marks):
        return "which is text, not a number. Convert the column to float."
    mark = misplaced_mark(cell, marks)
    if mark is not None:
        return mark
    return (
        "which is not a number. Mend the cell, take the row out if it is no data, declare the word as missing by "
        "missing=, or leave the column out by columns=."
    )


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else f"{text[:57]}..."


def coded(
    name: str, cells: np.ndarray, missing: Missing
) -> tuple[Float[np.ndarray, " T"], Bool[np.ndarray, " T"], str]:
    """Booleans, categories or words as 0, 1, ... in sorted order; True where none was declared missing; and a sentence
    that says which is which."""
    declared = _declared(cells, missing)
    empty = pd.isna(cells) | declared
    labels = sorted({str(cell) for cell in cells[~empty]})
    if len(labels) > 1000:
        raise SeriesError(f"column {name!r} has {len(labels)} distinct values; codes= is for a few.")
    places = {label: float(i) for i, label in enumerate(labels)}
    values = np.array([np.nan if lost else places[str(cell)] for cell, lost in zip(cells, empty, strict=True)])
    shown = ", ".join(f"{label}={i}" for i, label in enumerate(labels[:6])) + (", ..." if len(labels) > 6 else "")
    return values, ~declared, f"column {name!r} was numbered: {shown}"


def times(
    name: str,
    cells: np.ndarray,
    time_format: str | None,
    timezone: str | None,
    marks: Marks = _NO_MARKS,
    *,
    unit: str = "",
) -> tuple[Float[np.ndarray, " T"], bool]:
    """A column as times, and whether it held dates: numbers stay as they are, dates become seconds since 1970 in UTC,
    durations become seconds. ``unit`` is that of the numbers, if it is known that they are no dates."""
    lost = pd.isna(cells)
    if lost.any():
        raise SeriesError(
            f"column {name!r}, row {int(np.argmax(lost))} has no time. Drop that row or fill in its time."
        )
    if cells.dtype.kind == "M":
        return _stamp_seconds(pd.DatetimeIndex(cells), name, timezone), True
    if cells.dtype.kind == "m":
        return cells / np.timedelta64(1, "s"), False
    are_numbers = np.array([_is_number(cell) for cell in cells]) if cells.dtype.kind == "O" else np.array([True])
    if not are_numbers.all():
        text = np.array([are_numbers[i] or _reads_as_number(str(cell), marks) for i, cell in enumerate(cells)])
        if time_format is None and 2 * text.sum() > len(cells) and not text.all():
            row = int(np.argmin(text))
            complaint = _no_time(name, cells[row], marks)
            raise SeriesError(f"column {name!r}, row {row} holds {_shown(cells[row])}, {complaint}")
        return _stamp_seconds(_dates(name, cells, time_format), name, timezone), True
    values = numbers(name, cells, Missing(False, (), ()))[0]
    if time_format is not None and np.isfinite(values).all() and (values == np.floor(values)).all():
        digits = np.array([str(int(cell)) for cell in cells], dtype=object)
        return _stamp_seconds(_dates(name, digits, time_format), name, timezone), True
    written = calendar_format(values) if not unit else None
    if written is not None:
        raise SeriesError(
            f"column {name!r} seems to hold dates written as numbers (row 0 holds {int(values[0])}). Say how they are "
            f'written, as in time_format="{written}"; if they are plain numbers, give their unit by time_unit=.'
        )
    return values, False


def _no_time(name: str, cell: Any, marks: Marks) -> str:
    """What is wrong with a cell among numbers that are times."""
    if isinstance(cell, date) or (isinstance(cell, str) and _ISO_DATE.match(cell.strip())):
        return "but other rows hold numbers: dates and numbers do not mix. Write them all in one way."
    return _complaint(name, cell, marks)


def _dates(name: str, cells: np.ndarray, time_format: str | None) -> pd.DatetimeIndex:
    text = [str(cell).strip() for cell in cells]
    series = pd.Series(text, dtype=object)
    if time_format is None:
        stamps = pd.to_datetime(series, format="ISO8601", utc=_have_offsets(name, text), errors="coerce")
    else:
        stamps = _formatted(series, time_format)
    lost = stamps.isna().to_numpy()
    if lost.any():
        row = int(np.argmax(lost))
        if text[row] == name:
            raise SeriesError(f"column {name!r}, row {row} holds {name!r}, {_HEADER_AGAIN}")
        wanted = f"a date as {time_format!r}" if time_format else "an ISO date such as 2024-03-01T12:30:00"
        raise SeriesError(
            f"column {name!r}, row {row} holds {_shown(text[row])}, which is neither a number nor {wanted}. "
            'Mend it, or say how dates are written, as in time_format="%d/%m/%Y %H:%M". If these are no times, pass '
            "columns= and dt=."
        )
    return pd.DatetimeIndex(stamps)


def _have_offsets(name: str, text: list[str]) -> bool:
    """Whether ISO dates have an offset from UTC; all of them or none."""
    offset = np.array([bool(_OFFSET.search(cell)) and bool(_TIME_OF_DAY.search(cell)) for cell in text])
    if offset.any() and not offset.all():
        row = int(np.argmax(offset != offset[0]))
        raise SeriesError(
            f"column {name!r} mixes dates with and without an offset from UTC (row {row} holds {text[row]!r}). Write "
            "them all in one way."
        )
    return bool(offset.any())


def _formatted(text: pd.Series, time_format: str) -> pd.Series:
    """Dates written in a format, which alone says whether they have an offset; NaT where one is not."""
    parts = re.findall("%(.)", time_format)  # %% is one of them, and the z of %%z is none
    try:
        if not parts:
            raise ValueError("it names no part of a date")
        return pd.to_datetime(text, format=time_format, utc="z" in parts or "Z" in parts, errors="coerce")
    except (ValueError, KeyError, IndexError, NotImplementedError, re.error) as error:  # of the format, not of a cell
        raise ConfigError(
            f'time_format {time_format!r} describes no date ({error}). Write it as in "%d/%m/%Y %H:%M".'
        ) from None


def _stamp_seconds(stamps: pd.DatetimeIndex, name: str, timezone: str | None) -> Float[np.ndarray, " T"]:
    if stamps.tz is None and timezone is not None:
        try:
            stamps = stamps.tz_localize(timezone, ambiguous="raise", nonexistent="raise")
        except (ValueError, KeyError, OSError) as error:  # the clock was put back or forward, or no such zone
            raise SeriesError(
                f"column {name!r} cannot be placed in the time zone {timezone!r} ({error}). Write the dates in UTC or "
                "with their offset."
            ) from None
    if stamps.tz is not None:
        stamps = stamps.tz_convert("UTC").tz_localize(None)
    return seconds(stamps.to_numpy())


def labels(name: str, cells: np.ndarray) -> np.ndarray:
    """A column as the labels of series or channels; each row must have one."""
    lost = pd.isna(cells)
    if lost.any():
        row = int(np.argmax(lost))
        raise SeriesError(f"column {name!r}, row {row} is empty, so its series is unknown. Fill it in or drop the row.")
    return np.array([str(cell) for cell in cells], dtype=object)
