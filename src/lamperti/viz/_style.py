"""What all figures share: size, colours, and how they are written."""

import io
import os
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

from lamperti._text import literal
from lamperti.data.dates import DATES
from lamperti.data.files import atomic_write

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
REAL, LEARNED, ACCENT, THIRD, FAINT = "#222222", "#0072b2", "#d55e00", "#009e73", "#8a8a8a"
TIME_MAP = "viridis"
_DPI = 130


class Picture(Figure):
    """A figure that notebooks show, whether or not they have loaded pyplot."""

    def _repr_png_(self) -> bytes:
        return as_png(self)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure (inches) that belongs to no window."""
    figure = Picture(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, *, title: str = "", x: str = "", y: str = "") -> None:
    """Titles, labels and quiet frames."""
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def legend(axes: Axes, **options: Any) -> None:
    axes.legend(fontsize=8, frameon=False, **options)


def left_out(shown: int, there_are: int) -> str:
    """The end of a title: which coordinates are shown, where that is not all of them."""
    return f" (the first {shown} of {there_are} coordinates)" if there_are > shown else ""


def write_png(figure: Figure, path: str | os.PathLike, *, dpi: float = _DPI) -> None:
    """Write a figure, whole or not at all; fewer dots an inch make a smaller file."""
    atomic_write(path, as_png(figure, dpi=dpi))


def as_png(figure: Figure, *, dpi: float = _DPI) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    return content.getvalue()


def label_of(name: str, unit: str = "") -> str:
    """A channel with its unit, for an axis."""
    return literal(name) + (f" [{literal(unit)}]" if unit else "")


def time_axis(axes: Axes, unit: str) -> None:
    """A label for times in ``unit``; of dates, the day is told once, at the end of the axis."""
    clock = "time (UTC)" if unit == DATES else f"time [{literal(unit)}]" if unit else "time"
    axes.set_xlabel(clock, fontsize=9)
    if unit == DATES:
        axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))
        axes.xaxis.get_offset_text().set_fontsize(8)
