"""Parquet files."""

from pathlib import Path

from lamperti._errors import SeriesError
from lamperti.data.formats.decoding import decode
from lamperti.data.index import without_index
from lamperti.data.local import open_local
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table
from lamperti.data.time_names import COUNTING_COLUMNS, TIME_COLUMNS


def read_parquet(path: Path, options: ReadOptions) -> Table:
    """The table in a Parquet file; columns that are not needed are not decoded."""
    wanted = None
    if options.columns is not None and options.channel is None:
        named = (options.time, options.id, *TIME_COLUMNS, *COUNTING_COLUMNS, *options.codes)
        wanted = [*options.columns, *(name for name in named if name is not None)]
    with open_local(path) as file:
        if file.read(4) != b"PAR1":
            raise SeriesError("not a Parquet file: it does not begin as one. Copy or write it again.")
        variables = decode("parquet", path, options.max_bytes, wanted)
    if not variables:
        raise SeriesError("the file has no columns, or none of those asked for.")
    index = next((variable for variable in variables if variable.index), None)
    columns, times, repairs = without_index(
        {variable.name: variable.values for variable in variables},
        None if index is None else index.name,
        "" if index is None else f"column {index.name!r} was the index of a table",
        options,
    )
    if not columns:
        raise SeriesError("the file has no columns, or none of those asked for.")
    utc = {variable.name for variable in variables if variable.utc}
    return Table(
        columns,
        categories=frozenset(variable.name for variable in variables if variable.category),
        times=times,
        utc=frozenset(utc | {"index"} if index is not None and index.utc else utc),
        repairs=repairs,
    )
