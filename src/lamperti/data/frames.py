"""Objects in memory as tables of columns, each by the module that knows its library."""

from dataclasses import replace
from typing import Any

import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data._checks import as_array
from lamperti.data.applies import check_applies
from lamperti.data.from_narwhals import narwhals_table
from lamperti.data.from_pandas import pandas_table
from lamperti.data.from_xarray import xarray_table
from lamperti.data.kinds import library_of
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table, array_table


def memory_table(data: Any, options: ReadOptions) -> Table:
    """The table of an object in memory."""
    library = library_of(data)
    if library is None:
        check_applies(options, "array")
        return array_table(as_array(data, "data"), options.axes)
    check_applies(options, "cube" if library == "xarray" else "table")
    if library == "pandas" and isinstance(data, (pd.Series, pd.DataFrame)):
        return pandas_table(data, options)
    if library == "xarray" and hasattr(data, "dims") and hasattr(data, "coords"):
        return xarray_table(data, options)
    if library not in ("pandas", "xarray"):
        return narwhals_table(data, options)
    raise SeriesError(f"a {library} {type(data).__name__} is not a table of data. Make a frame or an array of it.")


def item_table(data: Any, options: ReadOptions) -> Table:
    """The table of one recording of a list: an array is [T] or [T, P]."""
    if library_of(data) is not None:
        return memory_table(data, options)
    array = as_array(data, "data")
    if array.ndim not in (1, 2):
        raise SeriesError(f"a recording of a list must be [T] or [T, P]; got shape {array.shape}.")
    return memory_table(array, replace(options, axes="T" if array.ndim == 1 else "TP"))
