"""Figures of the learned phase space and of the equation in it."""

from itertools import combinations

import numpy as np

from lamperti.data.dates import DATES
from lamperti.data.durations import one as singular
from lamperti.diagnostics.slices import Slice
from lamperti.report._spec import (
    ACCENT,
    COLOURS,
    FAINT,
    LEARNED,
    REAL,
    Spec,
    Trace,
    axis,
    band,
    broken,
    dots,
    heading,
    layout,
    line,
    moments,
    numbers,
    panels,
    text,
    with_unit,
)
from lamperti.results import Embedding, FitResult

_ARROWS = 120
_ELLIPSES = 40
_CORNERS = 24
_PATH = 1500
_MIDDLE = "#21918c"


def phase_space(result: FitResult, embedding: Embedding, path: np.ndarray) -> list[Spec]:
    """In space where there are three dimensions, and in every pair of the first three."""
    dim = result.model.latent_dim
    path = _bounded(path, embedding.mean)
    if dim == 1:
        return [_course(embedding)]
    found = [_in_space(result, embedding, path)] if dim >= 3 else []
    return [*found, _in_planes(result, embedding, path)]


def _in_space(result: FitResult, embedding: Embedding, path: np.ndarray) -> Spec:
    x = embedding.mean[:, :3]
    places, drift, doubt = _arrows(result)
    Z = np.asarray(result.model.dynamics.Z)[:, :3]
    common = {"type": "scatter3d", "hoverinfo": "skip"}
    traces: list[Trace] = [
        {
            **common,
            "mode": "lines",
            **_xyz(path[:, :3]),
            "name": "free-running path",
            "line": {"color": FAINT, "width": 1.5},
            "opacity": 0.55,
        },
        {
            **common,
            "mode": "lines+markers",
            **_xyz(x),
            "name": "states of the data",
            "line": {"color": LEARNED, "width": 2},
            "marker": {"size": 2, "color": LEARNED},
        },
        {
            **common,
            "mode": "markers",
            **_xyz(Z),
            "name": "inducing inputs",
            "marker": {"size": 3, "symbol": "cross", "color": ACCENT},
        },
        {
            "type": "cone",
            **_xyz(places[:, :3]),
            **{key: numbers(drift[:, k]) for k, key in enumerate("uvw")},
            "customdata": numbers(doubt),
            "hovertemplate": "drift (%{u:.3g}, %{v:.3g}, %{w:.3g})<br>sd / size %{customdata:.2f}<extra></extra>",
            "name": "mean drift",
            "showlegend": True,
            "showscale": False,
            "colorscale": [[0, "#9ecae1"], [1, REAL]],
            "sizemode": "scaled",
            "sizeref": 1.2,
            "opacity": 0.75,
        },
    ]
    axes = {
        f"{key}axis": {
            "title": {"text": f"x{k + 1}"},
            "backgroundcolor": "#fafafa",
            "gridcolor": "#e4e4e4",
            "showbackground": True,
        }
        for k, key in enumerate("xyz")
    }
    scene = {**axes, "aspectmode": "cube", "camera": {"eye": {"x": 1.25, "y": 1.25, "z": 0.75}}}
    caption = (
        f"The learned phase space{_left_out(result)}; drag to turn. States are the means of their posterior, "
        "cones the mean drift, darker where it is faster."
    )
    return Spec(
        "phase-space", caption, traces, layout(scene=scene, margin={"l": 0, "r": 0, "t": 30, "b": 0}), height=560
    )


def _in_planes(result: FitResult, embedding: Embedding, path: np.ndarray) -> Spec:
    dim = min(result.model.latent_dim, 3)
    pairs = list(combinations(range(dim), 2))
    places, drift, doubt = _arrows(result)
    Z = np.asarray(result.model.dynamics.Z)
    traces, axes = [], {}
    for k, ((i, j), domain) in enumerate(zip(pairs, panels(len(pairs)), strict=True)):
        at = {"xaxis": f"x{k + 1 if k else ''}", "yaxis": f"y{k + 1 if k else ''}"}
        first = k == 0
        ellipses = broken(_ellipses(embedding, (i, j)))
        arrows = broken(_shafts(places[:, [i, j]], drift[:, [i, j]]))
        traces += [
            line(
                numbers(path[:, i]),
                numbers(path[:, j]),
                "free-running path" if first else "",
                FAINT,
                line={"width": 0.7},
                opacity=0.6,
                **at,
            ),
            line(*ellipses, "states, 2-sd ellipses" if first else "", _MIDDLE, line={"width": 1}, **at),
            dots(
                numbers(embedding.mean[:, i]),
                numbers(embedding.mean[:, j]),
                "states of the data" if first else "",
                LEARNED,
                3,
                **at,
            ),
            dots(
                numbers(Z[:, i]),
                numbers(Z[:, j]),
                "inducing inputs" if first else "",
                ACCENT,
                7,
                marker={"symbol": "cross-thin", "line": {"color": ACCENT, "width": 1.5}},
                **at,
            ),
            line(*arrows, "mean drift" if first else "", REAL, line={"width": 1}, hoverinfo="skip", **at),
            dots(
                numbers(places[:, i]),
                numbers(places[:, j]),
                "",
                REAL,
                4,
                marker={"opacity": 0.01},
                text=[f"sd of the drift / its size: {d:.2f}" for d in doubt],
                hoverinfo="text",
                **at,
            ),
        ]
        axes[f"xaxis{k + 1 if k else ''}"] = axis(f"x{i + 1}", domain=domain, anchor=at["yaxis"])
        axes[f"yaxis{k + 1 if k else ''}"] = axis(f"x{j + 1}", anchor=at["xaxis"])
    caption = (
        f"Pairs of latent coordinates{_left_out(result)}: states of the data with their uncertainty, the mean drift at "
        "states that the data went through (length by the root of the speed; point at a foot to see how certain it "
        "is), a free-running path and the inducing inputs of the drift."
    )
    return Spec("phase-planes", caption, traces, layout(**axes), height=460 if dim == 3 else 520)


def _left_out(result: FitResult) -> str:
    dim = result.model.latent_dim
    return f" (the first 3 of {dim} coordinates)" if dim > 3 else ""


def _course(embedding: Embedding) -> Spec:
    mean, sd = embedding.mean[:, 0], np.sqrt(embedding.cov[:, 0, 0])
    t = moments(embedding.times, embedding.time_unit)
    clock = "UTC" if embedding.time_unit == DATES else embedding.time_unit
    traces = [
        band(t, numbers(mean - 2 * sd), numbers(mean + 2 * sd), "± 2 sd"),
        line(t, numbers(mean), "state of the data"),
    ]
    return Spec(
        "phase-space",
        "The one latent coordinate over time, given all of the data.",
        traces,
        layout(xaxis=axis(with_unit("time", clock)), yaxis=axis("x1")),
    )


def equation(slices: tuple[Slice, ...], unit: str = "") -> list[Spec]:
    """Drift and diffusion along each coordinate; ``unit``: of time."""
    per = text(singular(unit)) or "unit of time"
    shown = slices[: len(COLOURS)]
    found = []
    for name, what, key in (("drift", "drift", "drift"), ("diffusion", "diffusion", "diffusion")):
        traces, axes, marks, shapes = [], {}, [], []
        for k, (one, domain) in enumerate(zip(shown, panels(len(shown)), strict=True)):
            number = k + 1 if k else ""
            at = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
            mean, sd = getattr(one, key), getattr(one, f"{key}_sd")
            x = numbers(one.x)
            for d in range(min(mean.shape[1], len(COLOURS))):
                traces.append(
                    band(
                        x,
                        numbers(mean[:, d] - 2 * sd[:, d]),
                        numbers(mean[:, d] + 2 * sd[:, d]),
                        "",
                        COLOURS[d],
                        0.16,
                        **at,
                    )
                )
                traces.append(line(x, numbers(mean[:, d]), f"of x{d + 1}" if k == 0 else "", COLOURS[d], **at))
            shapes += [
                {
                    "type": "line",
                    "x0": end,
                    "x1": end,
                    "y0": 0,
                    "y1": 1,
                    "xref": at["xaxis"],
                    "yref": f"{at['yaxis']} domain",
                    "line": {"color": FAINT, "width": 1, "dash": "dot"},
                }
                for end in (one.low, one.high)
            ]
            low = {"rangemode": "tozero"} if key == "diffusion" else {"zeroline": True, "zerolinecolor": "#bbbbbb"}
            axes[f"xaxis{number}"] = axis(f"x{one.axis + 1}", domain=domain, anchor=at["yaxis"])
            axes[f"yaxis{number}"] = axis(f"{what} per {per}" if k == 0 else "", anchor=at["xaxis"], **low)
            marks.append(heading(f"along x{one.axis + 1}", domain[0]))
        hidden = f" (the first {len(shown)} of {len(slices)} coordinates)" if len(slices) > len(shown) else ""
        caption = (
            f"The {what}{hidden} ± 2 sd of its posterior along lines through the middle of the data. Between the "
            "dotted lines are 90 % of the states; outside, the model extrapolates."
        )
        legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.1, "yanchor": "bottom"}
        found.append(Spec(name, caption, traces, layout(**axes, annotations=marks, shapes=shapes, legend=legend), 300))
    return found


def _arrows(result: FitResult) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States that the data went through, the drift there, and how large its sd is beside it."""
    picked = np.linspace(0, len(result.states) - 1, min(_ARROWS, len(result.states))).round().astype(int)
    places = result.states[picked]
    mean, sd = result.drift(places)
    size = np.linalg.norm(mean, axis=1)
    return places, mean, np.linalg.norm(sd, axis=1) / np.maximum(size, np.finfo(float).tiny)


def _shafts(places: np.ndarray, drift: np.ndarray) -> list[np.ndarray]:
    """Arrows as polygons: a shaft and two barbs."""
    spread = places.std(axis=0) + np.finfo(float).tiny
    unit = drift / spread
    speed = np.linalg.norm(unit, axis=1, keepdims=True)
    length = 0.4 * np.sqrt(speed / max(float(speed.max()), np.finfo(float).tiny))
    along = unit / np.maximum(speed, np.finfo(float).tiny) * length
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    foot = places / spread
    tip = foot + along
    left, right = tip - 0.3 * along + 0.15 * across, tip - 0.3 * along - 0.15 * across
    return list(np.stack([foot, tip, left, tip, right], axis=1) * spread)


def _ellipses(embedding: Embedding, pair: tuple[int, int]) -> list[np.ndarray]:
    picked = np.unique(np.linspace(0, len(embedding.mean) - 1, _ELLIPSES).round().astype(int))
    angle = np.linspace(0, 2 * np.pi, _CORNERS)
    circle = 2.0 * np.stack([np.cos(angle), np.sin(angle)])
    found = []
    for k in picked:
        cov = embedding.cov[k][np.ix_(pair, pair)]
        values, vectors = np.linalg.eigh(cov)
        found.append(embedding.mean[k, list(pair)] + ((vectors * np.sqrt(np.maximum(values, 0.0))) @ circle).T)
    return found


def _bounded(path: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The path until it leaves three times the range of the states: an escape must not squeeze the data."""
    low, high = states.min(axis=0), states.max(axis=0)
    inside = (np.abs(path - (low + high) / 2) <= 1.5 * (high - low)).all(axis=1)
    return path[: len(path) if inside.all() else int(np.argmin(inside))][:_PATH]


def _xyz(points: np.ndarray) -> dict[str, list]:
    return {key: numbers(points[:, k]) for k, key in enumerate("xyz")}
