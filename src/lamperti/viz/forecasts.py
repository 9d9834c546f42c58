"""Forecast fans, and free-running paths beside real data."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lamperti._errors import ConfigError
from lamperti._text import literal
from lamperti._typing import Float
from lamperti.data.correlation import e_folding_time
from lamperti.data.dates import as_dates
from lamperti.data.durations import in_words
from lamperti.data.scaling import step_told
from lamperti.data.series import Series
from lamperti.results import Forecast, Simulation
from lamperti.viz._style import ACCENT, FAINT, LEARNED, REAL, label_of, legend, new_figure, tidy, time_axis

_LEVELS = (0.95, 0.8, 0.5)
_PATHS_SHOWN = 3


def forecast_fan(forecast: Forecast, context: Series | None = None, truth: Series | None = None) -> Figure:
    """Median, nested intervals and a few paths of a forecast, after the data it starts from where that is given.

    ``truth``: what came after the context, if it is known; a channel a panel.
    """
    n_channels = len(forecast.names)
    figure = new_figure(10.0, 1.2 + 2.8 * n_channels)
    shown = None if context is None else context[-min(len(context), len(forecast.times)) :]
    unit = forecast.time_unit if context is None else context.time_unit
    units = forecast.units if any(forecast.units) or context is None else context.units
    for p, axes in enumerate(figure.subplots(n_channels, 1, squeeze=False, sharex=True)[:, 0]):
        seen = [forecast.quantile([0.005, 0.995])[..., p].ravel()]
        if shown is not None:
            axes.plot(as_dates(shown.times, unit), shown.values[:, p], ".-", color=REAL, ms=3, lw=0.6, label="data")
            axes.axvline(as_dates(shown.times[-1:], unit)[0], color=FAINT, lw=0.8, ls=":")
            seen.append(shown.values[:, p])
        _draw_fan(axes, forecast, as_dates(forecast.times, unit), p)
        if truth is not None:
            followed = as_dates(truth.times, unit), truth.values[:, p]
            axes.plot(*followed, ".", color=REAL, ms=3, mfc="white", mew=0.6, label="what followed")
            seen.append(truth.values[:, p])
        tidy(axes, y=label_of(forecast.names[p], units[p] if units else ""))
        axes.set_ylim(*_limits(np.concatenate(seen)))
        axes.margins(x=0.01)
    time_axis(figure.axes[-1], unit)
    title = f"Forecast of {len(forecast.times)} steps"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    first = figure.axes[0]
    # A row of its own between title and panel: beside the title it would run over it in a narrow panel.
    legend(first, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=7, columnspacing=1.0, handlelength=1.4)
    return figure


def _draw_fan(axes: Axes, forecast: Forecast, times: np.ndarray, p: int) -> None:
    for level, alpha in zip(_LEVELS, (0.14, 0.2, 0.3), strict=True):
        lower, upper = forecast.interval(level)
        label = f"{level:.0%} interval"
        axes.fill_between(times, lower[:, p], upper[:, p], color=LEARNED, alpha=alpha, lw=0, label=label)
    for i, path in enumerate(forecast.samples[:_PATHS_SHOWN, :, p]):
        label = "sampled futures" if i == 0 else None
        axes.plot(times, path, color=ACCENT, lw=0.6, alpha=0.75, label=label)
    axes.plot(times, forecast.quantile(0.5)[:, p], color=LEARNED, lw=1.6, label="median")


def free_run(simulation: Simulation, series: Series | Sequence[Series], *, channel: int = 0) -> Figure:
    """Free-running paths beside real data, in one channel: traces, delay portraits and distributions of values."""
    real = [series] if isinstance(series, Series) else list(series)
    if not 0 <= channel < len(simulation.names):
        raise ConfigError(f"channel must be 0 to {len(simulation.names) - 1}; got {channel}.")
    traces = [s.values[:, channel] for s in real]
    paths = list(simulation.samples[:, :, channel])
    # Half an e-folding opens the portrait of a smooth signal without folding it over.
    lag = max(1, round(0.5 * e_folding_time([s.values[:, channel : channel + 1] for s in real])))
    limits = _limits(np.concatenate([t[np.isfinite(t)] for t in traces]))
    name = literal(simulation.names[channel])

    figure = new_figure(12.0, 5.2)
    grid = figure.add_gridspec(2, 3, width_ratios=(2.3, 1.0, 0.55))
    dt, unit = step_told(real)
    longest = max(traces, key=len)
    rows = [("Real data", longest, traces, REAL), ("Model, running freely", paths[0], paths, LEARNED)]
    for row, (title, trace, many, colour) in enumerate(rows):
        axes = figure.add_subplot(grid[row, 0])
        shown = trace[: len(longest)]
        axes.plot(dt * np.arange(len(shown)), shown, color=colour, lw=0.9)
        tidy(axes, title=title, x=label_of("time", unit) if row else "", y=name)
        axes.set_ylim(*limits)
        axes.set_xlim(0.0, dt * len(longest))
        portrait = figure.add_subplot(grid[row, 1])
        _portrait(portrait, many, lag, colour)
        tidy(
            portrait,
            title="Delay portrait" if row == 0 else "",
            x=f"{name}(t)",
            y=f"{name}(t + {in_words(lag * dt, literal(unit), 3)})",
        )
        portrait.set(xlim=limits, ylim=limits, box_aspect=1)
    _densities(figure.add_subplot(grid[:, 2]), traces, paths, limits, name)
    return figure


def _portrait(axes: Axes, traces: Sequence[Float[np.ndarray, " T"]], lag: int, colour: str) -> None:
    for trace in traces:
        axes.plot(trace[:-lag], trace[lag:], color=colour, lw=0.45, alpha=0.7)


def _densities(axes: Axes, traces: list, paths: list, limits: tuple[float, float], name: str) -> None:
    for values, colour, label in ((traces, REAL, "real"), (paths, LEARNED, "model")):
        pooled = np.concatenate(values)
        axes.hist(
            pooled[np.isfinite(pooled)],
            bins=np.linspace(*limits, 41).tolist(),
            density=True,
            histtype="step",
            orientation="horizontal",
            color=colour,
            lw=1.3,
            label=label,
        )
    tidy(axes, title="Values", x="density", y=name)
    axes.set_ylim(*limits)
    legend(axes, loc="upper right")


def _limits(values: Float[np.ndarray, " K"], margin: float = 0.08) -> tuple[float, float]:
    """Axis ends with a margin; values that are missing or escaped do not count."""
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    extra = margin * (high - low) or 1.0
    return low - extra, high + extra
