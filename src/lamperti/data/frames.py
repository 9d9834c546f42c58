"""Tables in memory: pandas, polars and xarray objects as tables of columns. None but pandas is imported for it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data._checks import as_array, as_names
from lamperti.data.applies import check_applies
from lamperti.data.cubes import Variable, cube_table
from lamperti.data.index import index_times
from lamperti.data.options import TIME_COLUMNS, ReadOptions
from lamperti.data.table import Table, array_table, with_holes


def memory_table(data: Any, options: ReadOptions) -> Table:
    """The table of an object in memory."""
    library = type(data).__module__.split(".")[0]
    if library == "pandas" and isinstance(data, (pd.Series, pd.DataFrame)):
        check_applies(options, "table")
        return pandas_table(data, options)
    if library == "polars" and hasattr(data, "to_frame" if data.__class__.__name__ == "Series" else "get_columns"):
        check_applies(options, "table")
        return polars_table(data)
    if library == "xarray" and hasattr(data, "dims"):
        check_applies(options, "cube")
        return xarray_table(data, options)
    if library in ("pandas", "polars", "xarray"):
        raise SeriesError(f"a {library} {type(data).__name__} is not a table of data. Collect it into a frame first.")
    check_applies(options, "array")
    return array_table(as_array(data, "data"), options.axes)


def item_table(data: Any, options: ReadOptions) -> Table:
    """The table of one recording of a list: an array is [T] or [T, P]."""
    if isinstance(data, np.ndarray) or type(data).__module__.split(".")[0] not in ("pandas", "polars", "xarray"):
        array = as_array(data, "data")
        if array.ndim not in (1, 2):
            raise SeriesError(f"a recording of a list must be [T] or [T, P]; got shape {array.shape}.")
        return memory_table(array, replace(options, axes="T" if array.ndim == 1 else "TP"))
    return memory_table(data, options)


def pandas_table(data: pd.Series | pd.DataFrame, options: ReadOptions) -> Table:
    """Rows are times, read from the index unless it only counts rows; columns are channels."""
    frame = data.to_frame("y" if data.name is None else data.name) if isinstance(data, pd.Series) else data
    if frame.empty:
        raise SeriesError(f"the table is empty: {len(frame)} rows of {frame.shape[1]} columns.")
    names = as_names([str(name) for name in frame.columns], frame.shape[1])
    columns, categories, utc = {}, set(), set()
    for i, name in enumerate(names):
        column = frame.iloc[:, i]
        if isinstance(column.dtype, pd.CategoricalDtype):
            categories.add(name)
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            utc.add(name)
        columns[name] = _pandas_cells(column)
    stamps = None
    if options.time is None:
        stamps = index_times(frame.index, given=options.dt is not None)
        if isinstance(frame.index, pd.DatetimeIndex) and frame.index.tz is not None:
            utc.add("index")
    return Table(columns, categories=frozenset(categories), times=stamps, utc=frozenset(utc))


def _pandas_cells(column: pd.Series) -> np.ndarray:
    kind = column.dtype
    if isinstance(kind, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if isinstance(kind, np.dtype) and kind.kind in "iufbcMm":
        return column.to_numpy()
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):  # nullable: pd.NA is their NaN
        if not pd.api.types.is_integer_dtype(kind):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        lost = np.asarray(column.isna())
        whole = column.dropna().to_numpy(dtype=np.uint64 if pd.api.types.is_unsigned_integer_dtype(kind) else np.int64)
        return with_holes(whole, lost) if lost.any() else whole
    cells = column.astype(object)
    return cells.where(cells.notna(), None).to_numpy()


def polars_table(data: Any) -> Table:
    """Columns are channels; polars has no index."""
    frame = data.to_frame() if not hasattr(data, "get_columns") else data
    if frame.height == 0 or frame.width == 0:
        raise SeriesError(f"the table is empty: {frame.height} rows of {frame.width} columns.")
    names = as_names([name or "y" for name in frame.columns], frame.width)
    columns, categories, utc = {}, set(), set()
    for name, column in zip(names, frame.get_columns(), strict=True):
        kind = str(column.dtype)
        if kind.startswith(("Categorical", "Enum")):
            categories.add(name)
        if kind.startswith("Datetime"):
            if getattr(column.dtype, "time_zone", None):
                utc.add(name)
                column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            columns[name] = column.to_numpy()
        elif column.dtype.is_integer() and column.null_count():
            columns[name] = with_holes(column.drop_nulls().to_numpy(), column.is_null().to_numpy())
        elif (
            kind.startswith(("Date", "Duration"))
            or (column.dtype.is_numeric() and not kind.startswith("Decimal"))
            or (kind == "Boolean" and column.null_count() == 0)
        ):
            columns[name] = column.to_numpy()
        elif kind.startswith("Decimal"):
            columns[name] = np.array([np.nan if c is None else float(c) for c in column.to_list()])
        else:
            columns[name] = np.array([*column.to_list(), None], dtype=object)[:-1]  # a list of lists stays a list
    return Table(columns, categories=frozenset(categories), utc=frozenset(utc))


def xarray_table(data: Any, options: ReadOptions) -> Table:
    """A DataArray or Dataset: time is a dimension, and so is id where there is one."""
    if hasattr(data, "data_vars"):
        variables = [_variable(str(name), item) for name, item in data.data_vars.items()]
    else:
        variables = [_variable(str(data.name or "y"), data)]
    coordinates = [
        _variable(str(name), item)
        for name, item in data.coords.items()
        # Times may stand beside a dimension that only counts.
        if item.dims == (name,) or (name in TIME_COLUMNS and len(item.dims) == 1 and item.dims[0] not in data.coords)
    ]
    return cube_table([*coordinates, *variables], options)


def _variable(name: str, item: Any) -> Variable:
    unit = item.attrs.get("units", "")
    values = np.asarray(item.values)
    if values.dtype.kind in "US":
        values = values.astype(object)
    return Variable(name, tuple(str(d) for d in item.dims), values, unit if isinstance(unit, str) else "")
