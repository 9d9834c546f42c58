"""What pandas tables say about a series: their numbers as floats and their index as times."""

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.data._checks import as_float_array, seconds


def frame_values(frame: pd.DataFrame) -> Float[np.ndarray, "T P"]:
    """The columns as floats; the first cell that is not a number is refused by row and column."""
    columns = [column_values(frame.iloc[:, i], str(name)) for i, name in enumerate(frame.columns)]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def column_values(column: pd.Series, name: str) -> Float[np.ndarray, " T"]:
    """One column as floats; missing cells become NaN."""
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) or isinstance(kind, pd.CategoricalDtype):
        raise SeriesError(f"column {name!r} holds {kind} values, not numbers. Convert it to float or leave it out.")
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind):
        if pd.api.types.is_extension_array_dtype(kind):  # nullable numbers: pd.NA is their NaN
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return as_float_array(column.to_numpy(), f"column {name!r}")
    for row, cell in enumerate(column):
        if not pd.isna(cell) and not _is_number(cell):
            raise SeriesError(
                f"column {name!r}, row {row} holds {cell!r}, which is not a number. Mend that cell or leave "
                "the column out."
            )
    return np.array([np.nan if pd.isna(cell) else float(cell) for cell in column])


def _is_number(cell: object) -> bool:
    return isinstance(cell, (int, float, np.integer, np.floating)) and not isinstance(cell, bool)


def index_times(index: pd.Index) -> Float[np.ndarray, " T"]:
    """The index as times: numbers as they are, dates as seconds since 1970 in UTC."""
    if isinstance(index, pd.DatetimeIndex):
        return stamp_seconds(index)
    if pd.api.types.is_numeric_dtype(index.dtype) and not pd.api.types.is_bool_dtype(index.dtype):
        return as_float_array(index.to_numpy(), "index")
    raise SeriesError(
        f"the rows of a table are times, but its index is {index.dtype}. Set a numeric or date index, "
        "or call reset_index(drop=True) for samples 1 apart."
    )


def stamp_seconds(stamps: pd.DatetimeIndex) -> Float[np.ndarray, " T"]:
    """Dates as seconds since 1970; stamps with a time zone go to UTC, those without are taken to be UTC."""
    if stamps.tz is not None:
        stamps = stamps.tz_convert("UTC").tz_localize(None)
    return seconds(stamps.to_numpy())
