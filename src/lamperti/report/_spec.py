"""Figures as plain data: what plotly.js is given, and the look that all of them share."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamperti._text import visible
from lamperti.data.series import DATES

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
REAL, LEARNED, ACCENT, THIRD, FAINT = "#222222", "#0072b2", "#d55e00", "#009e73", "#9a9a9a"
COLOURS = (LEARNED, ACCENT, THIRD, REAL)
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_DIGITS = 5

Trace = dict[str, Any]
Layout = dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """One figure: its name in the page, what it shows in a sentence, its traces, layout and height (pixels)."""

    name: str
    caption: str
    traces: list[Trace]
    layout: Layout
    height: int = 340


def numbers(values: Any) -> list[float | None]:
    """Five significant digits, which no screen exceeds; what is not finite becomes a gap."""
    return [float(f"{v:.{_DIGITS}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float).ravel()]


def moments(times: np.ndarray, unit: str) -> list:
    """Times for an axis: dates as text, others as numbers in full, since a year needs more than five digits."""
    if unit != DATES:
        return [float(f"{t:.10g}") for t in times]
    return np.datetime_as_string((times * 1e3).round().astype("datetime64[ms]")).tolist()


def text(name: str) -> str:
    """A foreign name for a figure: plotly.js reads tags in text, so that they must be escaped there, too."""
    return html.escape(visible(name), quote=True)


def with_unit(title: str, unit: str) -> str:
    """The title of an axis with its unit, which may be foreign."""
    return f"{title} ({text(unit)})" if unit else title


def line(x: list, y: list, name: str = "", colour: str = LEARNED, **more: Any) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "showlegend": bool(name),
        "line": {"color": colour, "width": 1.5} | more.pop("line", {}),
        **more,
    }


def dots(x: list, y: list, name: str = "", colour: str = LEARNED, size: float = 4, **more: Any) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "name": name,
        "showlegend": bool(name),
        "marker": {"color": colour, "size": size} | more.pop("marker", {}),
        **more,
    }


def band(x: list, low: list, high: list, name: str = "", colour: str = LEARNED, opacity: float = 0.2, **more) -> Trace:
    """The area between two curves."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x + x[::-1],
        "y": high + low[::-1],
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},{opacity})",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": name,
        "showlegend": bool(name),
        **more,
    }


def broken(segments: Sequence[np.ndarray]) -> tuple[list, list]:
    """Many polygons as one curve with gaps."""
    x: list = []
    y: list = []
    for segment in segments:
        x += [*numbers(segment[:, 0]), None]
        y += [*numbers(segment[:, 1]), None]
    return x, y


def shaded(start: float | str, end: float | str, xaxis: str, yaxis: str) -> dict[str, Any]:
    """A grey stretch of time, behind all curves."""
    return {
        "type": "rect",
        "x0": start,
        "x1": end,
        "y0": 0,
        "y1": 1,
        "xref": xaxis,
        "yref": f"{yaxis} domain",
        "fillcolor": "#eef0f3",
        "line": {"width": 0},
        "layer": "below",
    }


def layout(**more: Any) -> Layout:
    """Light, quiet, with the legend above."""
    base = {
        "font": {"family": _FONT, "size": 12, "color": "#333333"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 60, "r": 16, "t": 34, "b": 46},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "hovermode": "closest",
    }
    return base | more


def axis(title: str = "", **more: Any) -> Layout:
    base = {
        "title": {"text": title, "font": {"size": 12}, "standoff": 6},
        "gridcolor": "#ececec",
        "zeroline": False,
        "linecolor": "#bbbbbb",
        "ticks": "outside",
        "tickcolor": "#bbbbbb",
        "automargin": True,
    }
    return base | more


def panels(n: int, gap: float = 0.07) -> list[list[float]]:
    """Domains of n panels side by side."""
    width = (1 - gap * (n - 1)) / n
    return [[round(i * (width + gap), 4), round(min(i * (width + gap) + width, 1.0), 4)] for i in range(n)]


def heading(title: str, x: float, y: float = 1.0) -> dict[str, Any]:
    """The title of a panel, at its top left; in the coordinates of the paper."""
    return {
        "text": f"<b>{title}</b>",
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }
