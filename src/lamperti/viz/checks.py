"""Figures of diagnostics: residuals and calibration."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from lamperti._text import literal
from lamperti.diagnostics.held_out import ForecastCheck
from lamperti.diagnostics.residuals import Residuals
from lamperti.diagnostics.whiteness import Whiteness
from lamperti.viz._style import ACCENT, FAINT, LEARNED, REAL, THIRD, label_of, legend, new_figure, tidy

_COLOURS = (LEARNED, ACCENT, THIRD, REAL)
_PIT_BINS = 10


def diagnostics(residuals: Residuals | None, forecasts: ForecastCheck | None) -> Figure:
    """Autocorrelation and normal quantiles of residuals; coverage by horizon and PIT of forecasts."""
    figure = new_figure(11.0, 7.2)
    panels = figure.subplots(2, 3)
    groups = () if residuals is None else (residuals.increments, residuals.one_step)
    titles = ("Increments of the states", "One-step forecast errors")
    for row, (group, title) in enumerate(zip(groups, titles, strict=False)):
        _autocorrelations(panels[row][0], group, title)
        _quantiles(panels[row][1], group)
    if forecasts is not None:
        _coverage(panels[0][2], forecasts)
        _pit(panels[1][2], forecasts)
    for axes in panels.ravel():
        if not axes.has_data():
            axes.text(0.5, 0.5, "too little data", ha="center", va="center", color=FAINT)
            axes.set_axis_off()
    return figure


def _autocorrelations(axes: Axes, group: tuple[Whiteness, ...], title: str) -> None:
    for k, one in enumerate(group[: len(_COLOURS)]):
        lags = np.arange(1, len(one.autocorrelation) + 1)
        axes.plot(lags, one.autocorrelation, ".-", color=_COLOURS[k], lw=0.9, ms=4, label=literal(one.name))
    axes.axhspan(-group[0].bound, group[0].bound, color=FAINT, alpha=0.25, lw=0)
    tidy(axes, title=title, x="lag (samples)", y="autocorrelation")
    legend(axes)


def _quantiles(axes: Axes, group: tuple[Whiteness, ...]) -> None:
    for k, one in enumerate(group[: len(_COLOURS)]):
        values = np.sort(one.values)
        expected = stats.norm.ppf((np.arange(len(values)) + 0.5) / len(values))
        axes.plot(expected, values, ".", color=_COLOURS[k], ms=2.5, label=literal(one.name))
    axes.axline((0.0, 0.0), slope=1.0, color=FAINT, lw=0.8)
    tidy(axes, title="Normal?", x="normal quantile", y="residual (sd expected: 1)")


def _coverage(axes: Axes, check: ForecastCheck) -> None:
    horizon = check.step * np.arange(1, check.horizons + 1)
    for (level, found), colour in zip(check.coverage.items(), _COLOURS, strict=False):
        axes.plot(horizon, found.mean(axis=1), color=colour, lw=1.3, label=f"{level:.0%} interval")
        axes.axhline(level, color=colour, lw=0.8, ls=":")
    axes.set_ylim(0.0, 1.03)
    tidy(axes, title="Coverage of forecasts", x=label_of("time ahead", check.time_unit), y="share of values inside")
    legend(axes, loc="lower right")


def _pit(axes: Axes, check: ForecastCheck) -> None:
    values = check.pit[np.isfinite(check.pit)]
    axes.hist(values, bins=np.linspace(0, 1, _PIT_BINS + 1).tolist(), density=True, color=LEARNED, alpha=0.7)
    axes.axhline(1.0, color=REAL, lw=0.8, ls=":")
    tidy(axes, title="PIT (flat is calibrated)", x="where in the forecast the truth fell", y="density")
