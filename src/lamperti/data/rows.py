"""What the rows of a table are: the times of all, and the series that each belongs to."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Float
from lamperti.data.cells import labels, times
from lamperti.data.options import ReadOptions
from lamperti.data.series import DATES
from lamperti.data.table import Table
from lamperti.data.time_names import COUNTING_COLUMNS, is_time_name, unit_in_name
from lamperti.data.written_dates import date_format, holds_clock, holds_dates


class Clock(NamedTuple):
    """The columns that the times of all rows were in, the times (None: samples a step apart), their unit, and what to
    tell."""

    columns: tuple[str, ...]
    times: Float[np.ndarray, " T"] | None
    unit: str
    repairs: tuple[str, ...] = ()


def read_clock(table: Table, options: ReadOptions) -> Clock:
    """The times of the rows: of the column asked for, else of the index, else of a column with a usual name."""
    name = options.time
    if name is not None and options.dt is not None:
        raise SeriesError("both time and dt were given. Give one of them.")
    if name is None and table.times is not None:
        if options.dt is not None:
            raise SeriesError("dt was given but the data has times of its own. Drop dt.")
        columns, column, cells = (), "index", table.times
    else:
        columns = (name,) if name else _found_time(table, options)
        counting = None if columns else _counting_time(table, options)
        if counting is not None:
            note = f"column {counting!r} increases in equal steps and was taken for the times; columns= may list it"
            unit = options.time_unit or table.units.get(counting, "") or unit_in_name(counting)
            return Clock((counting,), table.columns[counting].astype(float), unit, (note,))
        if not columns:
            _check_dated(options, "there are no times here")
            return Clock((), None, options.time_unit)
        column, cells = " ".join(columns), _cells(table, columns)
    repairs = ()
    if len(columns) > 1:
        repairs = (f"columns {columns[0]!r} and {columns[1]!r} were read as one, of dates with a time of day",)
    zone = None if column in table.utc else options.timezone
    unit = options.time_unit or table.units.get(column, "") or unit_in_name(column)
    form = options.time_format
    if form is None and cells.dtype.kind == "O":
        form = date_format(column, cells)
        if form is not None:
            repairs = (*repairs, f"dates in column {column!r} were read as {form!r}")
    stamps, dated = times(column, cells, form, zone, options.marks, unit=unit)
    if not dated:
        _check_dated(options, f"column {column!r} holds none")
    return Clock(columns, stamps, DATES if dated else "s" if cells.dtype.kind == "m" else unit, repairs)


def _check_dated(options: ReadOptions, found: str) -> None:
    for name in ("timezone", "time_format"):
        if getattr(options, name) is not None:
            raise ConfigError(f"{name}= is for dates, but {found}. Leave it out, or name the dates with time=.")


def _found_time(table: Table, options: ReadOptions) -> tuple[str, ...]:
    """The columns with a usual name of times: none, one, or one of dates and one of times of day."""
    chosen = options.columns or ()
    taken = {*chosen, options.id, options.channel, options.value, *options.codes}
    found = [name for name in table.columns if is_time_name(name) and name not in taken]
    if not found or (options.dt is not None and chosen):
        return ()
    if options.dt is not None:
        raise SeriesError(f"dt was given but the file has a column {found[0]!r}. Drop dt, or name the channels.")
    if len(found) == 2 and holds_clock(table.columns[found[1]]) and holds_dates(table.columns[found[0]]):
        return tuple(found)
    if len(found) > 1:
        raise SeriesError(
            f"columns {found[0]!r} and {found[1]!r} may both be the times. Name the one that is, as time={found[0]!r}, "
            "and the channels by columns=."
        )
    return (found[0],)


def _counting_time(table: Table, options: ReadOptions) -> str | None:
    """A column beside others with a name of times whose numbers increase in equal steps within each series."""
    taken = {*(options.columns or ()), options.id, options.channel, options.value, *options.codes}
    asked = options.dt is not None or table.dt is not None or options.time_format is not None
    if asked or len({*table.columns} - {options.id}) < 2:
        return None
    for name in table.columns:
        cells = table.columns[name]
        if name in COUNTING_COLUMNS and name not in taken and cells.dtype.kind in "iuf":
            steps = np.concatenate([np.diff(cells[rows].astype(float)) for _, rows in read_groups(table, options)])
            if len(steps) and steps.min() > 0 and np.ptp(steps) <= 1e-6 * steps.max():
                return name
    return None


def read_groups(table: Table, options: ReadOptions) -> list[tuple[str, np.ndarray]]:
    """Label and rows of each series, in order of appearance."""
    if options.id is not None:
        marks = labels(options.id, table.columns[options.id])
    elif table.groups is not None:
        marks = np.array([str(group) for group in table.groups], dtype=object)
    else:
        return [("", np.arange(table.length))]
    codes, found = pd.factorize(marks)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return list(zip(map(str, found), rows, strict=True))


def _cells(table: Table, columns: tuple[str, ...]) -> np.ndarray:
    if len(columns) == 1:
        return table.columns[columns[0]]
    days, clocks = (table.columns[name] for name in columns)
    pairs = zip(days, clocks, strict=True)
    return np.array([None if None in (day, clock) else f"{day} {clock}" for day, clock in pairs], dtype=object)
