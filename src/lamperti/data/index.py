"""The index of a pandas object as times."""

from typing import Any

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError


def times_of(values: Any) -> np.ndarray | None:
    """The times in the index of a pandas object; None for any other object, and where the index holds none."""
    return index_times(values.index, given=True) if isinstance(values, (pd.Series, pd.DataFrame)) else None


def index_times(index: pd.Index, *, given: bool) -> np.ndarray | None:
    """The times that an index holds; None where it only counts the rows."""
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
