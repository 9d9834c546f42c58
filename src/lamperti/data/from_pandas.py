"""Tables of pandas: rows are times, as the index says; columns are channels."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data._checks import as_names
from lamperti.data.cells import labels
from lamperti.data.index import gives_way, index_times
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table, with_holes
from lamperti.data.time_names import TIME_COLUMNS


def pandas_table(data: pd.Series | pd.DataFrame, options: ReadOptions) -> Table:
    """Times come from the index unless it only counts rows. An index of several levels also tells series apart."""
    frame = data.to_frame("y" if data.name is None else data.name) if isinstance(data, pd.Series) else data
    if frame.empty:
        raise SeriesError(f"the table is empty: {len(frame)} rows of {frame.shape[1]} columns.")
    names = as_names([str(name) for name in frame.columns], frame.shape[1])
    columns, categories, utc = {}, set(), set()
    for i, name in enumerate(names):
        column = frame.iloc[:, i]
        if isinstance(column.dtype, pd.CategoricalDtype) or str(column.dtype).startswith("dictionary<"):
            categories.add(name)
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            utc.add(name)
        columns[name] = _cells(column)
    index = _index(frame.index, names, options)
    return Table(
        columns,
        categories=frozenset(categories),
        times=index.times,
        groups=index.groups,
        utc=frozenset({*utc, "index"} if index.utc else utc),
        settled=index.groups is not None,
        repairs=index.repairs,
    )


class _Index(NamedTuple):
    """What the index of a table says of its rows."""

    times: np.ndarray | None = None
    groups: np.ndarray | None = None
    utc: bool = False
    repairs: tuple[str, ...] = ()


def _index(index: pd.Index, names: tuple[str, ...], options: ReadOptions) -> _Index:
    if isinstance(index, pd.MultiIndex):
        return _levels(index, options)
    if options.time is not None:
        return _Index()
    stamps = index_times(index, given=options.dt is not None)
    note = gives_way(stamps, names, options) if stamps is not None and index.name is None else None
    if note is not None:
        return _Index(repairs=(note,))
    return _Index(stamps, utc=isinstance(index.dtype, pd.DatetimeTZDtype))


def _levels(index: pd.MultiIndex, options: ReadOptions) -> _Index:
    """One level holds the times, the others together name the series."""
    levels = {
        str(index.names[i]) if index.names[i] is not None else f"level_{i}": index.get_level_values(i)
        for i in range(index.nlevels)
    }
    listed = ", ".join(levels)
    for name in (options.time, options.id):
        if name is not None and name not in levels:
            raise SeriesError(
                f"{name!r} is no level of the index ({listed}). Name a level, or call reset_index() for columns."
            )
    clock = options.time or _time_level({name: level for name, level in levels.items() if name != options.id})
    if clock is None:
        raise SeriesError(
            f"the index has levels {listed}, and none holds times: numbers or dates. Name one by time=, or call "
            "reset_index() to have columns only."
        )
    whose = [options.id] if options.id else [name for name in levels if name != clock]
    marks = [labels(name, levels[name].to_numpy(dtype=object)) for name in whose]
    stamps = _cells(levels[clock].to_series())
    utc = isinstance(levels[clock].dtype, pd.DatetimeTZDtype)
    return _Index(stamps, np.array([_joined(parts) for parts in zip(*marks, strict=True)], dtype=object), utc)


def _joined(parts: tuple[str, ...]) -> str:
    """The labels of several levels as one, which no other labels share."""
    if len(parts) == 1:
        return parts[0]
    return "/".join(part.replace("\\", "\\\\").replace("/", "\\/") for part in parts)


def _time_level(levels: dict[str, pd.Index]) -> str | None:
    """The level of times: the only one of dates or durations, else the only one of a usual name, else the last of
    numbers; for people write (series, time)."""
    dated = [
        name
        for name, level in levels.items()
        if isinstance(level, (pd.DatetimeIndex, pd.TimedeltaIndex, pd.PeriodIndex))
    ]
    usual = [name for name in levels if name in TIME_COLUMNS]
    for found in (dated, usual):
        if len(found) == 1:
            return found[0]
    numeric = [name for name, level in levels.items() if level.dtype.kind in "iuf"]
    return numeric[-1] if numeric else None


def _cells(column: pd.Series) -> np.ndarray:
    kind = column.dtype
    if isinstance(kind, pd.PeriodDtype):
        return column.dt.to_timestamp().to_numpy()
    if isinstance(kind, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if isinstance(kind, np.dtype) and kind.kind in "iufbcMm":
        return column.to_numpy()
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):  # nullable: pd.NA is their NaN
        if not pd.api.types.is_integer_dtype(kind):
            own = getattr(kind, "numpy_dtype", None)  # a missing value is declared in the precision of its column
            floats = own if own is not None and own.kind == "f" else np.float64
            return column.to_numpy(dtype=floats, na_value=np.nan)
        lost = np.asarray(column.isna())
        whole = column.dropna().to_numpy(dtype=np.uint64 if pd.api.types.is_unsigned_integer_dtype(kind) else np.int64)
        return with_holes(whole, lost) if lost.any() else whole
    cells = column.astype(object)
    return cells.where(cells.notna(), None).to_numpy()
