"""The index of a pandas object as times. Who has such an object has pandas loaded; importing lamperti does not."""

from typing import Any

import numpy as np

from lamperti._errors import SeriesError


def times_of(values: Any) -> np.ndarray | None:
    """The times in the index of a pandas object; None for any other object, and where the index holds none."""
    of_pandas = type(values).__module__.split(".")[0] == "pandas" and type(values).__name__ in ("Series", "DataFrame")
    return index_times(values.index, given=True) if of_pandas else None


def index_times(index: Any, *, given: bool) -> np.ndarray | None:
    """The times that an index holds; None where it only counts the rows."""
    import pandas as pd

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
