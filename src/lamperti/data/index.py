"""The index of a table: times, or a count of the rows. In pandas objects, and in the files that pandas writes.

Who has an object of pandas has it loaded; importing lamperti does not.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lamperti._errors import SeriesError
from lamperti.data.options import ReadOptions
from lamperti.data.time_names import is_time_name

_MADE_UP = ("index", "Unnamed: 0")  # names of an index that had none
_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([T ].*)?$")


def times_of(values: Any) -> np.ndarray | None:
    """The times in the index of a pandas object; None for any other object, and where the index holds none."""
    of_pandas = type(values).__module__.split(".")[0] == "pandas" and type(values).__name__ in ("Series", "DataFrame")
    return index_times(values.index, given=True) if of_pandas else None


def index_times(index: Any, *, given: bool) -> np.ndarray | None:
    """The times that an index holds; None where it only counts the rows."""
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        raise SeriesError(
            f"the index has {index.nlevels} levels, and one series has one. Read the table with lamperti.read."
        )
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1:
        return None
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return (index if index.tz is None else index.tz_convert("UTC").tz_localize(None)).to_numpy()
    if isinstance(index, pd.TimedeltaIndex) or (
        pd.api.types.is_numeric_dtype(index.dtype) and not pd.api.types.is_bool_dtype(index.dtype)
    ):
        return index.to_numpy()
    if given:
        return None
    raise SeriesError(
        f"the rows of a table are times, but its index is {index.dtype}. Set a numeric or date index, name a column "
        "with time=, or call reset_index(drop=True) for samples 1 apart."
    )


def without_index(
    columns: Mapping[str, np.ndarray], name: str | None, what: str, options: ReadOptions
) -> tuple[dict[str, np.ndarray], np.ndarray | None, tuple[str, ...]]:
    """A file's columns without the one that was the index of the table it was written from; the times that this one
    holds; and what was left out. ``what`` says in words which column that is.

    A column that an option names is one like others.
    """
    asked = (options.time, options.id, options.channel, options.value, *(options.columns or ()), *options.codes)
    if name is None or name not in columns or name in asked:
        return dict(columns), None, ()
    rest = {other: cells for other, cells in columns.items() if other != name}
    cells = columns[name]
    if counts_rows(cells):
        return rest, None, (f"{what} and counts the rows; it was left out",)
    if options.time is not None or options.channel is not None:
        return rest, None, (f"{what}; it was left out",)
    unnamed = name in _MADE_UP or name.startswith("__index_level_")
    note = gives_way(cells, list(rest), options) if unnamed else None
    if note is not None:
        return rest, None, (note,)
    if cells.dtype.kind in "iufMm" or options.time_format is not None:
        return rest, cells, ()
    words = [cell for cell in cells if not isinstance(cell, (int, float)) and not _ISO_DATE.match(str(cell))]
    if 2 * len(words) < len(cells):
        return rest, cells, ()
    if options.columns is not None:
        return rest, None, (f"{what}; it was left out",)
    raise SeriesError(
        f"{what} and holds {words[0]!r}, neither a number nor an ISO date. If it tells series apart, pass id={name!r}; "
        f"if it is the time, pass time={name!r} and time_format=; if it is neither, name the channels by columns=."
    )


def counts_rows(cells: np.ndarray) -> bool:
    """Whether whole numbers count rows from 0 or 1."""
    return cells.dtype.kind in "iu" and cells[0] in (0, 1) and bool((np.diff(cells.astype(np.int64)) == 1).all())


def gives_way(cells: np.ndarray, names: Sequence[str], options: ReadOptions) -> str | None:
    """What to tell of an index of whole numbers without a name beside a column of times: what is left of a count when
    rows were taken out. None where it stays."""
    clock = next((name for name in names if is_time_name(name) and name not in (options.columns or ())), None)
    if clock is None or cells.dtype.kind not in "iu":
        return None
    return f"the index was left out: it holds whole numbers, and the column {clock!r} holds the times"
