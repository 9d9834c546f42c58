"""Records in time, a panel for each channel or coordinate: a series, states, free-running paths."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lamperti.data.dates import as_dates
from lamperti.data.series import Series
from lamperti.results import Embedding, Simulation
from lamperti.viz._style import LEARNED, REAL, TIME_MAP, label_of, new_figure, tidy, time_axis

_PANELS = 8
_PATHS = 5


def courses(series: Series) -> Figure:
    """A series as it was recorded; gaps stay open."""
    title = f"{series.length} samples" + (f" of {series.label}" if series.label else "")
    figure, panels = _panels(min(series.n_channels, _PANELS), title, series.n_channels)
    for p, axes in enumerate(panels):
        axes.plot(as_dates(series.times, series.time_unit), series.values[:, p], ".-", color=REAL, ms=2, lw=0.7)
        tidy(axes, y=label_of(series.names[p], series.units[p]))
    time_axis(panels[-1], series.time_unit)
    return figure


def states(embedding: Embedding) -> Figure:
    """The latent coordinates, each with two standard deviations."""
    dim = embedding.mean.shape[1]
    figure, panels = _panels(min(dim, _PANELS), "Latent states ± 2 sd", dim)
    times = as_dates(embedding.times, embedding.time_unit)
    for d, axes in enumerate(panels):
        mean, sd = embedding.mean[:, d], np.sqrt(embedding.cov[:, d, d])
        axes.fill_between(times, mean - 2 * sd, mean + 2 * sd, color=LEARNED, alpha=0.2, lw=0)
        axes.plot(times, mean, color=LEARNED, lw=0.9)
        tidy(axes, y=f"$x_{d + 1}$")
    time_axis(panels[-1], embedding.time_unit)
    return figure


def paths(simulation: Simulation) -> Figure:
    """The first free-running paths of a simulation."""
    shown, n_channels = min(len(simulation.samples), _PATHS), len(simulation.names)
    title = f"{shown} of {len(simulation.samples)} free-running paths"
    figure, panels = _panels(min(n_channels, _PANELS), title, n_channels)
    times = as_dates(simulation.times, simulation.time_unit)
    colours = _colours(shown)
    for p, axes in enumerate(panels):
        for path, colour in zip(simulation.samples[:shown, :, p], colours, strict=True):
            axes.plot(times, path, color=colour, lw=0.8)
        tidy(axes, y=label_of(simulation.names[p], simulation.units[p] if simulation.units else ""))
    time_axis(panels[-1], simulation.time_unit)
    return figure


def _panels(shown: int, title: str, there_are: int) -> tuple[Figure, list[Axes]]:
    figure = new_figure(10.0, 0.9 + 1.8 * shown)
    left = f" (the first {shown} of {there_are})" if there_are > shown else ""
    figure.suptitle(title + left, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return figure, list(figure.subplots(shown, 1, squeeze=False, sharex=True)[:, 0])


def _colours(n: int) -> list:
    return [colormaps[TIME_MAP](share) for share in np.linspace(0.0, 0.85, n)]
