"""How dates that are not ISO are written, as all the cells of a column tell: 13/01/2024, 1/13/2024 3:00 PM."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import product

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti._typing import Bool

_DAYS = (
    *(
        mark.join(parts)
        for mark in "/.-"
        for parts in (
            ("%d", "%m", "%Y"),
            ("%m", "%d", "%Y"),
            ("%d", "%m", "%y"),
            ("%m", "%d", "%y"),
            ("%y", "%m", "%d"),
        )
    ),
    "%Y.%m.%d",
    *("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d-%b-%y", "%b %d %Y", "%b %d, %Y", "%b-%d-%Y", "%b %Y", "%b-%Y"),
    *("%d %B %Y", "%d-%B-%Y", "%B %d %Y", "%B %d, %Y", "%B %Y"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_FORMATS = (*_DAYS, *(f"{day}{mark}{clock}" for day, mark, clock in product(_DAYS, (" ", "T", ", "), _CLOCKS)))
_CLOCK = re.compile(r"\s*\d{1,2}:\d{2}(:\d{2}([.]\d+)?)?(\s*[AP]M)?\s*", re.IGNORECASE)


def date_format(name: str, cells: np.ndarray) -> str | None:
    """The only format in which all the cells of a column of text are dates; None where they are ISO dates or in no
    usual form. Where they may be read in several ways, `SeriesError` asks."""
    text = [str(cell).strip() for cell in cells if cell is not None]
    if len(text) < len(cells) or not text or _read(text, "ISO8601").all():
        return None
    begun = {form: _read(text, form) for form in _FORMATS if _fits(text[0], form)}
    found = [form for form, read in begun.items() if read.all()]
    if not found and begun:
        read = max(begun.values(), key=np.count_nonzero)
        if 2 * read.sum() > len(read):
            row = int(np.argmin(read))
            raise SeriesError(
                f"column {name!r}, row {row} holds {text[row]!r}, which is no date as the other rows hold, such "
                f"as {text[0]!r}. Mend it, or take the row out."
            )
    # In May the short name of the month is the long one.
    found = [form for form in found if "%B" not in form or form.replace("%B", "%b") not in found]
    if not found:
        return None
    if len(found) > 1 or "%Y" not in found[0]:  # 1/13/50 may be 1950 or 2050
        choices = " or ".join(f'time_format="{form}"' for form in found)
        raise SeriesError(
            f"column {name!r} holds dates such as {text[0]!r}, which may be read in several ways. Say how they are "
            f"written: {choices}."
            + (" A year of two digits is taken for one from 1969 to 2068." if "%y" in choices else "")
        )
    return found[0]


def holds_clock(cells: np.ndarray) -> bool:
    """Whether every cell is a time of day."""
    return cells.dtype.kind == "O" and all(isinstance(cell, str) and _CLOCK.fullmatch(cell) for cell in cells)


def holds_dates(cells: np.ndarray) -> bool:
    """Whether the first cell is text that is a date without a time of day."""
    first = cells[0] if cells.dtype.kind == "O" and len(cells) else None
    if not isinstance(first, str) or ":" in first:
        return False
    return bool(_read([first], "ISO8601")[0]) or any(_fits(first.strip(), form) for form in _DAYS)


def _fits(cell: str, form: str) -> bool:
    try:
        datetime.strptime(cell, form)
    except ValueError:
        return False
    return True


def _read(text: Sequence[str], form: str) -> Bool[np.ndarray, " T"]:
    # Offsets from UTC may change within a column; whether they may be there is said elsewhere.
    return pd.to_datetime(pd.Series(text, dtype=object), format=form, errors="coerce", utc=True).notna().to_numpy()
