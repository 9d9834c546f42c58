"""Tables of any library but pandas: Arrow, polars, DuckDB, Modin, Dask and others, through narwhals.

Lazy ones are computed here, as far as they are needed.
"""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from lamperti._errors import DependencyError, SeriesError
from lamperti.data._checks import as_names
from lamperti.data.from_pandas import pandas_table
from lamperti.data.index import without_index
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table, with_holes
from lamperti.data.time_names import COUNTING_COLUMNS, is_time_name


def narwhals_table(data: Any, options: ReadOptions) -> Table:
    """Columns are channels. Where pandas wrote its index into the table, that is time."""
    native = data.to_native() if type(data).__module__.startswith("narwhals.") and hasattr(data, "to_native") else data
    of_arrow = type(native).__module__.startswith("pyarrow.") and hasattr(native, "schema")
    index = _index_of_pandas(native.schema) if of_arrow else None
    frame = _computed(_wrapped(native), index, options)
    if frame.implementation.is_pandas_like():  # Modin and the like: with an index
        return pandas_table(frame.to_pandas(), options)
    if 0 in frame.shape:
        raise SeriesError(f"the table is empty: {frame.shape[0]} rows of {frame.shape[1]} columns.")
    names = as_names(frame.columns, frame.shape[1])
    columns, categories, utc = {}, set(), set()
    for name in names:
        column = frame[name]
        kind = column.dtype
        if isinstance(kind, (nw.Categorical, nw.Enum)):
            categories.add(name)
        if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
            utc.add(name)
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        columns[name] = _cells(column)
    what = f"column {index!r} was the index of a table"
    columns, times, repairs = without_index(columns, index, what, options)
    if index in utc and times is not None:
        utc.add("index")
    return Table(columns, categories=frozenset(categories), times=times, utc=frozenset(utc), repairs=repairs)


def _index_of_pandas(schema: Any) -> str | None:
    """The column that holds the index of the pandas table that an Arrow table was made of, if there is one."""
    try:
        columns = schema.pandas_metadata["index_columns"]
    except (ValueError, TypeError, KeyError):  # none, or none that pandas wrote
        return None
    stored = [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    return stored[0] if len(stored) == 1 else None


def _wrapped(native: Any) -> nw.DataFrame | nw.LazyFrame:
    """The object as narwhals has it: a column by itself as a table of one."""
    if hasattr(native, "__arrow_c_array__") and not hasattr(native, "__arrow_c_stream__"):
        import pyarrow as pa

        native = pa.chunked_array([native])
    try:
        found: Any = nw.from_native(native, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise SeriesError(f"channel names must differ; {_first_mark(error)} comes twice. Rename one.") from None
    if found is native and hasattr(native, "__arrow_c_stream__"):
        found = nw.from_arrow(native, backend="pyarrow")
    if isinstance(found, nw.Series):
        return found.alias(found.name or "y").to_frame()
    if isinstance(found, (nw.DataFrame, nw.LazyFrame)):
        return found
    raise SeriesError(
        f"a {type(native).__module__.split('.')[0]} {type(native).__name__} is not a table of data. Make a table of it."
    )


def _first_mark(error: Exception) -> str:
    quoted = str(error).split("'")
    return repr(quoted[1]) if len(quoted) > 2 else "one"


def _computed(frame: nw.DataFrame | nw.LazyFrame, index: str | None, options: ReadOptions) -> nw.DataFrame:
    """The table in memory, without columns that are not asked for."""
    try:
        names = frame.collect_schema().names()
        asked = (*(options.columns or ()), options.time, options.id, *options.codes)
        if options.columns is not None and options.channel is None and {*asked, None} <= {*names, None}:
            known = (*asked, *COUNTING_COLUMNS, index)
            frame = frame.select([name for name in names if name in known or is_time_name(name)])
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except ImportError as error:
        raise DependencyError(f"this table needs another library to be computed ({error}). Install it.") from None
    except Exception as error:  # every engine has errors of its own
        reason = str(error).strip().split("\n")[0]
        raise SeriesError(f"the table could not be computed ({reason}). Compute it, then pass the result.") from None


def _cells(column: nw.Series) -> np.ndarray:
    kind = column.dtype
    if isinstance(kind, (nw.Int128, nw.UInt128)):  # NumPy has none
        return np.array([*column.to_list(), None], dtype=object)[:-1]
    if kind.is_integer() and column.null_count():
        return with_holes(column.drop_nulls().to_numpy(), column.is_null().to_numpy())
    if kind.is_decimal():
        return np.array([np.nan if cell is None else float(cell) for cell in column.to_list()])
    plain = kind.is_integer() or kind.is_float() or isinstance(kind, (nw.Datetime, nw.Date, nw.Duration))
    if plain or (isinstance(kind, nw.Boolean) and not column.null_count()):
        return column.to_numpy()
    return np.array([*column.to_list(), None], dtype=object)[:-1]  # a list of lists stays a list
