"""Long tables, a row for each value of each channel, made wide: a row for each time, a column for each channel."""

from dataclasses import replace

import numpy as np

from lamperti._errors import SeriesError
from lamperti.data._checks import as_finite, as_names, check_increase
from lamperti.data.cells import labels, numbers
from lamperti.data.gate import check_column
from lamperti.data.mending import Samples, in_order
from lamperti.data.options import ReadOptions
from lamperti.data.rows import read_clock, read_groups
from lamperti.data.table import Table


def widen(table: Table, options: ReadOptions) -> tuple[Table, ReadOptions]:
    """The wide table that says the same, and the options that are left to apply to it.

    A channel without a row at some time of its series was not observed then.
    """
    channel, value = options.channel, options.value
    if channel is None or value is None:
        return table, options
    for name in (channel, value, options.time, options.id):
        check_column(table, name)
    clock = read_clock(table, options)
    if clock.times is None:
        raise SeriesError("a long table needs a column of times, to tell which values belong together. Give time=.")
    cells, observed = numbers(value, table.columns[value], options.declared, options.marks)
    kinds = labels(channel, table.columns[channel])
    names = tuple(options.columns or dict.fromkeys(kinds))
    as_names(names, len(names))
    for name in names:
        if name not in kinds:
            raise SeriesError(f"column {channel!r} names no channel {name!r}; it has: {', '.join(sorted(set(kinds)))}.")

    stacks = {name: ([], []) for name in names}
    stamps, groups, repairs = [], [], []
    for label, rows in read_groups(table, options):
        parts = {}
        for name in names:
            mine = rows[kinds[rows] == name]
            samples, notes = in_order(
                Samples(cells[mine, None], observed[mine, None], clock.times[mine]),
                sort=options.sort,
                duplicates=options.duplicates,
            )
            place = f"{options.id} {label}, {name}" if label else name
            if len(samples.values):
                try:
                    check_increase(as_finite(samples.times), clock.unit)
                except SeriesError as error:
                    raise SeriesError(f"{place}: {error} (rows are counted within the channel)") from None
            repairs += [f"{place}: {note}" for note in notes]
            parts[name] = samples
        union = np.unique(np.concatenate([part.times for part in parts.values()]))
        for name, part in parts.items():
            column, absent = np.full(len(union), np.nan), np.ones(len(union), dtype=bool)
            at = np.searchsorted(union, part.times)
            column[at], absent[at] = part.values[:, 0], ~part.observed[:, 0]
            stacks[name][0].append(column)
            stacks[name][1].append(absent)
        stamps.append(union)
        groups.append(np.full(len(union), label, dtype=object))
    wide = Table(
        {name: np.concatenate(columns) for name, (columns, _) in stacks.items()},
        units=dict(table.units),
        times=np.concatenate(stamps),
        groups=np.concatenate(groups) if options.id or table.groups is not None else None,
        absent={name: np.concatenate(masks) for name, (_, masks) in stacks.items()},
        repairs=tuple(repairs),
    )
    done = {"channel": None, "value": None, "time": None, "id": None, "timezone": None, "time_format": None}
    return wide, replace(options, **done, columns=names, time_unit=clock.unit)
