"""``lamperti check``."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamperti._text import visible
from lamperti.cli._output import check_output_file
from lamperti.cli._plot import braille
from lamperti.cli._source import Source, as_flags
from lamperti.data.checking import Check, examine
from lamperti.data.dates import moment
from lamperti.data.series import Series

_DEFAULT_SOURCE = Source()
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_SHOWN = 8  # series, gaps and channels listed
_PLOTTED = 3
_WIDTH, _HEIGHT = 60, 4


def check(
    data: Annotated[Path, Parameter(name="DATA")],
    /,
    *,
    source: Source = _DEFAULT_SOURCE,
    json: bool = False,
    png: Path | None = None,
    plot: bool = True,
) -> int:
    """Say what was understood of a file: series, channels, sampling, scales, suspected problems, suggested lag.

    Exits with 0 when `lamperti fit` would take the data, with 1 when it would refuse it.

    Args:
        data: CSV, TSV, Parquet, NetCDF, HDF5, NPY or NPZ file, or Zarr folder
        json: print one JSON object instead of tables
        png: file to draw the series and the error by dimension to
        plot: draw the first series in the terminal
    """
    if png is not None:
        check_output_file(png, data)
    series, found = examine(data, source.options())
    if png is not None:
        from lamperti import viz  # loads matplotlib

        viz.write_png(viz.overview(series, found), png)
    if json:
        _print_json(found)
    else:
        _print(visible(str(data)), series, found, plot=plot)
    return 0 if found.ok else 1


def _print_json(found: Check) -> None:
    print(json.dumps(found.to_dict(), allow_nan=False))


def _print(name: str, series: list[Series], found: Check, *, plot: bool) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    lengths = [s.length for s in found.series]
    span = str(lengths[0]) if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    missing = sum(s.missing for s in found.series)
    first = found.series[0]
    when = moment(first.start, found.time_unit), moment(first.end, found.time_unit)
    facts = {
        "data": name,
        "series": f"{len(lengths)} of {span} samples",
        "from, to": f"{when[0]}, {when[1]}" + (" (the first series)" if len(lengths) > 1 else ""),
        "sampling": str(found.sampling),
        "missing": f"{missing} values" if missing else "none",
    }
    if found.suggestion is not None:
        facts["suggested"] = str(found.suggestion)
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for key, value in facts.items():
        grid.add_row(Text(key, style="bold"), Text(visible(value)))
    console.print(grid)
    console.print(_channel_table(found))
    if plot:
        _draw(console, series[0])
    for gap in found.sampling.gaps[:_SHOWN]:
        ends = f"{moment(gap.start, found.time_unit)} to {moment(gap.end, found.time_unit)}"
        console.print(f"gap in series {gap.series} after row {gap.row}: {ends}, {gap.lacking} samples", soft_wrap=True)
    if len(found.sampling.gaps) > _SHOWN:
        console.print(f"... and {len(found.sampling.gaps) - _SHOWN} more gaps")
    for text in found.repairs:
        console.print(Text("repaired  ", style="cyan") + Text(visible(text)), soft_wrap=True)
    for problem in found.problems:
        place = f"{problem.where}: " if problem.where else ""
        head = Text(f"{problem.severity:8s}", style=_STYLES[problem.severity])
        console.print(head + Text("  " + visible(place + as_flags(problem.message))), soft_wrap=True)
    if not found.problems:
        console.print("no problem found")


def _channel_table(found: Check) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2))
    table.add_column("channel", overflow="fold")
    table.add_column("unit", overflow="fold")
    for column in ("mean", "sd", "least", "most", "missing"):
        table.add_column(column, justify="right")
    for c in found.channels[:_SHOWN]:
        numbers = [f"{value:.4g}" for value in (c.mean, c.sd, c.low, c.high)]
        table.add_row(Text(visible(c.name)), Text(visible(c.unit)), *numbers, str(c.missing))
    if len(found.channels) > _SHOWN:
        table.add_row(Text(f"... {len(found.channels) - _SHOWN} more"))
    return table


def _draw(console: Console, series: Series) -> None:
    """The first channels in true time: each column of dots is a stretch of time, empty where nothing was observed."""
    width = max(min(_WIDTH, console.width - 2), 10)
    place = (series.times - series.times[0]) / (series.times[-1] - series.times[0])
    slots = np.minimum((place * min(series.length, 40 * width)).astype(int), min(series.length, 40 * width) - 1)
    for p, name in enumerate(series.names[:_PLOTTED]):
        spread = np.full(slots[-1] + 1, np.nan)
        spread[slots] = series.values[:, p]
        console.print(Text(visible(name), style="bold"))
        for line in braille(spread, width, _HEIGHT):
            console.print(f"  {line}")
