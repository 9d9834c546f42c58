"""Data as it was read: the courses of the channels, the values they take, and how many coordinates they suggest."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure, SubFigure

from lamperti.data.checking import Check
from lamperti.data.dates import as_dates
from lamperti.data.series import Series
from lamperti.viz._style import FAINT, LEARNED, REAL, label_of, new_figure, tidy, time_axis
from lamperti.viz.dimensions import caption, draw_curve, wrapped

_SERIES, _CHANNELS = 5, 6
_WIDTH, _CURVE_HEIGHT = 11.0, 3.2  # inches


def overview(series: Sequence[Series], check: Check) -> Figure:
    """The first channels of the first series in time, and how their values are distributed over all series; below, the
    error by number of latent coordinates, where several could be compared, and the one that `fit` would take."""
    height = 0.8 + 1.8 * min(len(series[0].names), _CHANNELS)
    chosen = check.suggestion and check.suggestion.dimensions
    if not chosen or not chosen.compared:
        figure = new_figure(_WIDTH, height)
        _draw_channels(figure, series, check)
        if chosen:
            caption(figure, chosen.reason, _WIDTH)
        return figure
    figure = new_figure(_WIDTH, height + _CURVE_HEIGHT)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, _CURVE_HEIGHT))[:, 0]
    _draw_channels(above, series, check)
    curve, words = below.subplots(1, 2)
    draw_curve(curve, chosen)
    words.set_axis_off()
    words.text(0.0, 1.0, wrapped(chosen.reason, 0.47 * _WIDTH), va="top", fontsize=9, transform=words.transAxes)
    return figure


def _draw_channels(figure: Figure | SubFigure, series: Sequence[Series], check: Check) -> None:
    names = series[0].names[:_CHANNELS]
    panels = figure.subplots(len(names), 2, squeeze=False, width_ratios=(4.0, 1.0), sharex="col", sharey="row")
    unit = series[0].time_unit
    for p, name in enumerate(names):
        course, values = panels[p]
        for i, one in enumerate(series[:_SERIES]):
            colour = REAL if i == 0 else FAINT
            course.plot(
                as_dates(one.times, unit), one.values[:, p], ".-", color=colour, lw=0.6, ms=2, zorder=2 - (i > 0)
            )
        pooled = np.concatenate([s.values[s.mask[:, p], p] for s in series])
        if pooled.min() < pooled.max():
            values.hist(pooled, bins=40, orientation="horizontal", color=LEARNED, alpha=0.7)
        tidy(course, y=label_of(name, series[0].units[p]))
        tidy(values, x="samples" if p == len(names) - 1 else "")
    time_axis(panels[-1][0], unit)
    shown = f"{len(series)} series" if len(series) <= _SERIES else f"{_SERIES} of {len(series)} series"
    panels[0][0].set_title(f"{shown}; {check.sampling}", loc="left", fontsize=10.5, fontweight="bold")
