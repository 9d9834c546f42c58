"""Tables on disk: comma-separated files into series and back."""

import csv
import difflib
import io
import os
import re
import stat
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data._checks import as_names
from lamperti.data.files import atomic_write
from lamperti.data.frames import column_values, stamp_seconds
from lamperti.data.series import Series

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([T ].*)?$")
_TIME_COLUMNS = ("time", "t")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def read_csv(
    path: str | os.PathLike,
    columns: Sequence[str] | str | None = None,
    time: str | None = None,
    id: str | None = None,
    dt: float | None = None,
    missing: str = "refuse",
) -> list[Series]:
    """Read series from a comma-separated file (UTF-8, one row a sample).

    **Arguments**

    - `columns`: the channels to read; all but `time` and `id` by default.
    - `time`: the column of sampling times: numbers, or ISO dates, which become seconds since 1970 (UTC).
      When it is not given, nor `dt`, a column named exactly "time", else "t", is taken, unless `columns`
      lists it; the `times` of the series show it.
    - `id`: a column whose distinct values split the rows into series, in order of appearance.
    - `dt`: the sampling step, for files without times.
    - `missing`: "refuse" (default) or "nan": empty cells and NaN are missing values.

    A first row of numbers (or dates) only is data, not a header; the columns are then y, or y0, y1, ...

    **Returns** a list of `Series`, one for each `id`. **Raises** `SeriesError`, which names file, column and
    row; row 0 is the first row of data.
    """
    file = _regular_file(path)
    try:
        table = _read_table(file)
        return _split(table, columns, time, id, dt, missing)
    except SeriesError as error:
        raise SeriesError(f"{file}: {error}") from None


def _regular_file(path: str | os.PathLike) -> Path:
    if _URL.match(os.fspath(path)):
        raise SeriesError(f"{path} is an address; lamperti reads local files only. Download it first.")
    file = Path(path)
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise SeriesError(f"{file} cannot be opened ({error.strerror}). Check the path.") from None
    if not stat.S_ISREG(mode):
        raise SeriesError(f"{file} is not a regular file. Give the path of a .csv file.")
    return file


def _read_table(file: Path) -> pd.DataFrame:
    try:
        # An open handle, not a name: pandas would unpack archives and fetch addresses by itself.
        with file.open(encoding="utf-8-sig", newline="") as handle:
            return _parse(handle)
    except UnicodeDecodeError as error:
        raise SeriesError(f"not UTF-8 text (byte {error.start}). Save the file as UTF-8 CSV.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise SeriesError(f"not a table of comma-separated values ({error}). Mend that row.") from None
    except OSError as error:
        raise SeriesError(f"cannot be read ({error.strerror}).") from None


def _parse(handle: TextIO) -> pd.DataFrame:
    first = next(csv.reader(handle), None)
    if not first:
        raise SeriesError("the file is empty or starts with a blank line. Give a header and at least two rows.")
    headless = all(_is_data(cell) for cell in first)
    names = list(as_names(None if headless else [cell.strip() for cell in first], len(first)))
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise SeriesError(f"the header {names[0]!r} is separated by semicolons or tabs. Save the file with commas.")
    handle.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would be cut
        table = pd.read_csv(
            handle,
            names=names,
            header=None,
            skiprows=0 if headless else 1,
            index_col=False,
            skip_blank_lines=False,  # in a file of one column a blank line is a missing value
            skipinitialspace=True,
            low_memory=False,
        )
    filled = np.flatnonzero(table.notna().any(axis=1).to_numpy())
    if not filled.size:
        raise SeriesError("the file has a header but no rows of data.")
    return table.iloc[: filled[-1] + 1]  # blank lines at the end are no samples


def _is_data(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return bool(_ISO_DATE.match(cell.strip()))
    return True


def _split(
    table: pd.DataFrame,
    columns: Sequence[str] | str | None,
    time: str | None,
    id: str | None,
    dt: float | None,
    missing: str,
) -> list[Series]:
    chosen = [columns] if isinstance(columns, str) else None if columns is None else list(columns)
    for name in [*(chosen or []), *(name for name in (time, id) if name is not None)]:
        _check_column(table, name)
    time = _time_column(table, chosen, time, dt)
    channels = chosen if chosen is not None else [name for name in table.columns if name not in (time, id)]
    if not channels:
        raise SeriesError("no column is left to read as values. Name some with columns=.")
    as_names(channels, len(channels))
    for name in (time, id):
        if name in channels:
            raise SeriesError(f"column {name!r} is asked for as a channel and as time or id. Choose one.")
    values = np.stack([_numbers(table[name]) for name in channels], axis=1)
    times = None if time is None else _times(table[time])
    parts = []
    for label, rows in _groups(table, id):
        try:
            part = Series(values[rows], None if times is None else times[rows], dt, names=channels, missing=missing)
        except SeriesError as error:
            raise SeriesError(f"{id} {label}: {error}" if id else str(error)) from None
        parts.append(part)
    return parts


def _check_column(table: pd.DataFrame, name: str) -> None:
    if name in table.columns:
        return
    near = difflib.get_close_matches(str(name), table.columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SeriesError(f"there is no column {name!r}.{hint} The file has: {', '.join(table.columns)}.")


def _time_column(table: pd.DataFrame, chosen: list[str] | None, time: str | None, dt: float | None) -> str | None:
    if time is not None:
        if dt is not None:
            raise SeriesError("both time and dt were given. Give one of them.")
        return time
    found = [name for name in _TIME_COLUMNS if name in table.columns and name not in (chosen or [])]
    if not found or (dt is not None and chosen is not None):
        return None
    if dt is not None:
        raise SeriesError(f"dt was given but the file has a column {found[0]!r}. Drop dt, or name the channels.")
    return found[0]


def _numbers(column: Any) -> np.ndarray:
    if pd.api.types.is_string_dtype(column.dtype) or column.dtype == object:
        # pandas keeps a column with one bad cell as text: find that cell among the numbers.
        numbers: Any = pd.to_numeric(column, errors="coerce")
        bad = (numbers.isna() & column.notna()).to_numpy()
        if bad.any():
            row = int(np.argmax(bad))
            raise SeriesError(
                f"column {column.name!r}, row {row} holds {str(column.iloc[row])!r}, which is not a number. "
                "Mend the cell (decimal point, no thousands separators), or leave the column out by "
                "columns=."
            )
        column = numbers
    return column_values(column, str(column.name))


def _times(column: Any) -> np.ndarray:
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise SeriesError(f"column {column.name!r}, row {row} has no time. Drop that row or fill in its time.")
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column_values(column, str(column.name))
    stamps = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    if stamps.isna().any():
        row = int(np.argmax(stamps.isna().to_numpy()))
        raise SeriesError(
            f"column {column.name!r}, row {row} holds {str(column.iloc[row])!r}, which is neither a number "
            "nor an ISO date such as 2024-03-01T12:30:00."
        )
    return stamp_seconds(pd.DatetimeIndex(stamps))


def _groups(table: pd.DataFrame, id: str | None) -> list[tuple[Any, np.ndarray]]:
    if id is None:
        return [(None, np.arange(len(table)))]
    unknown = table[id].isna().to_numpy()
    if unknown.any():
        row = int(np.argmax(unknown))
        raise SeriesError(f"column {id!r}, row {row} is empty, so its series is unknown. Fill it in or drop the row.")
    codes, labels = pd.factorize(table[id])
    return [(label, np.flatnonzero(codes == i)) for i, label in enumerate(labels)]


def write_csv(path: str | os.PathLike, columns: Mapping[str, Any]) -> None:
    """Write named columns of equal length to a comma-separated file, whole or not at all.

    Numbers are written so that they read back exactly. Text that a spreadsheet would run as a formula (it
    starts with = + - or @) gets a leading apostrophe; numbers, negative ones too, are left alone.
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    lengths = {name: array.shape for name, array in arrays.items()}
    if not arrays or len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise SeriesError(f"columns must be vectors of one length; got {lengths}.")
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_harmless(name) for name in arrays])
    writer.writerows(zip(*([_harmless(cell) for cell in array.tolist()] for array in arrays.values()), strict=True))
    atomic_write(path, text.getvalue().encode())


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell
