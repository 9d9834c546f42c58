"""Data of any origin into series: the one way in, for the library and the command line.

pandas takes half a second to import, so what needs it is imported where it is used.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lamperti._errors import ConfigError, DependencyError, SeriesError
from lamperti.data.applies import applying
from lamperti.data.local import local_path
from lamperti.data.options import ReadOptions, read_options
from lamperti.data.series import Series, as_series_list, gathered, holds_items
from lamperti.data.table import Table
from lamperti.data.writing import write_csv

__all__ = ["read", "read_csv", "write_csv"]

# Rows of the file as messages name them; after sorting, or within one of several series, only those of cells are.
_CELL = re.compile(r"^column '[^']*', row (\d+)")
_ROW = re.compile(r"(?:^column '[^']*', |must increase; |must be finite; |first in )row (\d+)")


def read(source: Any, **options: Any) -> list[Series]:
    """Read series from a file or an object in memory, and check them.

    **Arguments**

    - `source`: a path: CSV or TSV (also .gz), Parquet, NetCDF or HDF5, Zarr (a folder), NPY or NPZ; or in memory an
      array [T], [R, T] or [R, T, P], a table of pandas, polars, Arrow, DuckDB or any other library that narwhals knows
      (lazy ones are computed), an xarray DataArray or Dataset, or a list of recordings: arrays [T] or [T, P] of any
      lengths, tables, xarray objects.
    - `options`: those of `lamperti.data.options.ReadOptions`, the first of which are `columns`, `time`, `id`, `dt` and
      `missing`.

    **Returns** a list of `Series`, one for each `id`. Nothing is altered unless an option asks for it.

    **Raises** `SeriesError`, which names file, column and row (row 0 is the first row of data); `ConfigError` for an
    option; `DependencyError` if a format needs a library that is not installed.

    ```python
    recordings = lp.read("patients.csv", time="date", id="patient", columns=["flow", "pressure"], missing=["nan", -999])
    ```
    """
    chosen = read_options(options)
    if isinstance(source, (str, os.PathLike)):
        from lamperti.data.formats import read_file

        return _from_file(source, chosen, read_file)
    if isinstance(source, Series) or _holds_series(source):
        if options:
            raise SeriesError("these are series already; options apply to files and tables.")
        return as_series_list(source)
    if holds_items(source) and chosen.axes is None:
        return _from_items(source, chosen)
    from lamperti.data.frames import memory_table

    return _from_table(memory_table(source, chosen), chosen)


def read_csv(
    path: str | os.PathLike,
    columns: Sequence[str] | str | None = None,
    time: str | None = None,
    id: str | None = None,
    dt: float | None = None,
    missing: Any = "refuse",
) -> list[Series]:
    """Read series from comma-separated text, whatever the name of the file; see `read`."""
    from lamperti.data.formats.text import read_text

    chosen = ReadOptions(columns=columns, time=time, id=id, dt=dt, missing=missing)
    return _from_file(path, chosen, read_text)


def _holds_series(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and any(isinstance(item, Series) for item in source)


def options_for(path: str | os.PathLike, options: dict[str, Any]) -> dict[str, Any]:
    """The options that another file was read with, as far as they mean something for this one."""
    from lamperti.data.formats import file_kind

    return applying(options, file_kind(local_path(path)))


def _from_items(items: Sequence[Any], options: ReadOptions) -> list[Series]:
    """Each recording of a list through the gate by itself."""
    from lamperti.data.frames import item_table
    from lamperti.data.mending import drop_constant

    if options.codes:
        raise ConfigError("codes= numbers the words of one table. Put the tables into one, with a column for id=.")
    each = replace(options, drop_constant=False)  # what is constant in one recording may vary in another

    def read_item(place_and_item: tuple[int, Any]) -> list[Series]:
        place, item = place_and_item
        found = _from_table(item_table(item, each), each)
        if len(items) == 1:
            return found
        return [one._replace(label=f"{place}/{one.label}" if one.label else "") for one in found]

    series = gathered(list(enumerate(items)), read_item)
    return drop_constant(series) if options.drop_constant else series


def _from_file(
    path: str | os.PathLike, options: ReadOptions, reader: Callable[[Path, ReadOptions], Table]
) -> list[Series]:
    file = local_path(path)
    try:
        return _from_table(reader(file, options), options)
    except (SeriesError, DependencyError) as error:
        message = str(error)
        raise type(error)(message if message.startswith(str(file)) else f"{file}: {message}") from None


def _from_table(table: Table, options: ReadOptions) -> list[Series]:
    from lamperti.data.gate import series_of
    from lamperti.data.long import widen

    if table.settled:  # an id that is no dimension may still be a column
        options = replace(options, time=None, id=options.id if table.groups is None else None)
    wide, chosen = widen(table, options)
    try:
        return series_of(wide, chosen)
    except SeriesError as error:
        raise SeriesError(f"{error}{_line(str(error), wide, chosen)}") from None


def _line(message: str, table: Table, options: ReadOptions) -> str:
    """Where the row of a message stands in a text file, which editors and spreadsheets count from 1."""
    moved = options.id is not None or options.sort or options.duplicates != "refuse"
    found = (_CELL if moved else _ROW).search(message)
    if table.first_line is None or found is None:
        return ""
    return f" Row {found[1]} is line {int(found[1]) + table.first_line} of the file."
