"""The gate: from a table of any origin to series that can be learned from, or to the sentence that says why not.

Nothing is altered unless an option asks for it, and what is done is told by `Series.repairs`.
"""

from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
import pandas as pd

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Bool, Float
from lamperti.data._checks import as_finite, as_names, as_units, check_increase
from lamperti.data.cells import coded, labels, numbers, times
from lamperti.data.mending import Samples, drop_constant, in_order, split_at_gaps
from lamperti.data.options import ReadOptions
from lamperti.data.series import DATES, Series
from lamperti.data.table import Table
from lamperti.data.time_names import COUNTING_COLUMNS, is_time_name, unit_in_name


class Clock(NamedTuple):
    """The times of all rows (None: samples a step apart), the column they were in, their unit, and what to tell."""

    column: str | None
    times: Float[np.ndarray, " T"] | None
    unit: str
    repairs: tuple[str, ...] = ()


class _Channels(NamedTuple):
    """The values of all rows."""

    names: tuple[str, ...]
    values: Float[np.ndarray, "T P"]
    observed: Bool[np.ndarray, "T P"]
    units: tuple[str, ...]
    repairs: tuple[str, ...]


def series_of(table: Table, options: ReadOptions) -> list[Series]:
    """The series of a wide table. Raises `SeriesError`, which names column and row; row 0 is the first of data."""
    for name in (options.time, options.id, *options.codes):
        check_column(table, name)
    clock = read_clock(table, options)
    channels = _read_channels(table, options, clock)
    parts = []
    for label, rows in read_groups(table, options):
        try:
            parts.append(_one(label, rows, channels, clock, table, options))
        except SeriesError as error:
            raise SeriesError(f"{options.id or 'series'} {label}: {error}" if label else str(error)) from None
    if options.split_gaps is not None:
        parts = [piece for part in parts for piece in split_at_gaps(part, options.split_gaps)]
    return drop_constant(parts) if options.drop_constant else parts


def check_column(table: Table, name: str | None) -> None:
    """Refuse the name of a column that is not there, with the one that was probably meant."""
    if name is None or name in table.columns:
        return
    near = get_close_matches(str(name), table.columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SeriesError(f"there is no column {name!r}.{hint} It has: {', '.join(table.columns)}.")


def read_clock(table: Table, options: ReadOptions) -> Clock:
    """The times of the rows: of the column asked for, else of the index, else of a column with a usual name."""
    name = options.time
    if name is not None and options.dt is not None:
        raise SeriesError("both time and dt were given. Give one of them.")
    if name is None and table.times is not None:
        if options.dt is not None:
            raise SeriesError("dt was given but the data has times of its own. Drop dt.")
        column, cells = "index", table.times
    else:
        column = name = name or _found_time(table, options)
        counting = None if column else _counting_time(table, options)
        if counting is not None:
            note = f"column {counting!r} increases in equal steps and was taken for the times; columns= may list it"
            unit = options.time_unit or table.units.get(counting, "") or unit_in_name(counting)
            return Clock(counting, table.columns[counting].astype(float), unit, (note,))
        if column is None:
            _check_dated(options, "there are no times here")
            return Clock(None, None, options.time_unit)
        cells = table.columns[column]
    zone = None if column in table.utc else options.timezone
    unit = options.time_unit or table.units.get(column, "") or unit_in_name(column)
    stamps, dated = times(column, cells, options.time_format, zone, options.marks, unit=unit)
    if not dated:
        _check_dated(options, f"column {column!r} holds none")
    return Clock(name, stamps, DATES if dated else "s" if cells.dtype.kind == "m" else unit)


def _check_dated(options: ReadOptions, found: str) -> None:
    for name in ("timezone", "time_format"):
        if getattr(options, name) is not None:
            raise ConfigError(f"{name}= is for dates, but {found}. Leave it out, or name the dates with time=.")


def _found_time(table: Table, options: ReadOptions) -> str | None:
    chosen = options.columns or ()
    taken = {*chosen, options.id, options.channel, options.value, *options.codes}
    found = [name for name in table.columns if is_time_name(name) and name not in taken]
    if not found or (options.dt is not None and chosen):
        return None
    if options.dt is not None:
        raise SeriesError(f"dt was given but the file has a column {found[0]!r}. Drop dt, or name the channels.")
    if len(found) > 1:
        raise SeriesError(
            f"columns {found[0]!r} and {found[1]!r} may both be the times. Name the one that is, as time={found[0]!r}, "
            "and the channels by columns=."
        )
    return found[0]


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


def _read_channels(table: Table, options: ReadOptions, clock: Clock) -> _Channels:
    chosen = options.columns
    for name in chosen or ():
        check_column(table, name)
    taken = (clock.column, options.id)
    names = tuple(chosen) if chosen is not None else tuple(name for name in table.columns if name not in taken)
    if not names:
        raise SeriesError("no column is left to read as values. Name some with columns=.")
    as_names(names, len(names))
    for name in taken:
        if name in names:
            raise SeriesError(f"column {name!r} is asked for as a channel and as time or id. Choose one.")
    given = options.units or {}
    as_units(given, names)  # refuses a unit of what is no channel
    units = tuple(given.get(name, table.units.get(name, "")) for name in names)
    values, observed, repairs = [], [], list(table.repairs)
    for name in names:
        cells = table.columns[name]
        if name in options.codes:
            column, seen, note = coded(name, cells, options.declared)
            repairs.append(note)
        else:
            column, seen = numbers(name, cells, options.declared, options.marks, category=name in table.categories)
        if not seen.all():
            repairs.append(f"{int((~seen).sum())} cells of column {name!r} were declared missing")
        values.append(column)
        observed.append(seen & ~table.absent.get(name, np.zeros(len(column), dtype=bool)))
    return _Channels(names, np.stack(values, axis=1), np.stack(observed, axis=1), units, tuple(repairs))


def _one(label: str, rows: np.ndarray, channels: _Channels, clock: Clock, table: Table, options: ReadOptions) -> Series:
    values, observed, stamps, repairs = channels.values[rows], channels.observed[rows], None, ()
    if clock.times is not None:
        samples = Samples(values, observed, clock.times[rows])
        (values, observed, stamps), repairs = in_order(samples, sort=options.sort, duplicates=options.duplicates)
        check_increase(as_finite(stamps), clock.unit)
    step = table.dt if stamps is None and options.dt is None else options.dt
    series = Series(
        values,
        stamps,
        step,
        observed,
        names=channels.names if table.named else None,
        missing="nan" if options.declared.nan else "refuse",
        units=channels.units,
    )
    return series._replace(label=label, time_unit=clock.unit, repairs=(*clock.repairs, *channels.repairs, *repairs))
