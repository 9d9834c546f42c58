"""The gate: from a table of any origin to series that can be learned from, or to the sentence that says why not.

Nothing is altered unless an option asks for it, and what is done is told by `Series.repairs`.
"""

from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Bool, Float
from lamperti.data._checks import as_finite, as_names, as_units, check_increase
from lamperti.data.cells import coded, numbers
from lamperti.data.mending import Samples, drop_constant, in_order, split_at_gaps
from lamperti.data.options import ReadOptions
from lamperti.data.rows import Clock, read_clock, read_groups
from lamperti.data.series import Series
from lamperti.data.table import Table


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


def _read_channels(table: Table, options: ReadOptions, clock: Clock) -> _Channels:
    chosen = options.columns
    for name in chosen or ():
        check_column(table, name)
    taken = (*clock.columns, options.id)
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
