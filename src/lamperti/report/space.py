"""Figures of the learned phase space and of the equation in it."""

from itertools import combinations

import numpy as np

from lamperti.data.dates import DATES
from lamperti.data.durations import one as singular
from lamperti.diagnostics.slices import Slice
from lamperti.diagnostics.view import Limits, inside, limits, open_view
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
from lamperti.report.arrows import arrows_of, shafts
from lamperti.results import Embedding, FitResult

_ELLIPSES = 40
_CORNERS = 24
_PATH = 1500
_MIDDLE = "#21918c"
_IN_SPACE, _IN_A_PLANE = 80, 150  # arrows; all planes share theirs
_FROM = 2.0  # distance of the eye, in edges of the cube
_LEGEND = ("free-running path", "states, 2-sd ellipses", "states of the data", "inducing inputs", "mean drift")


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
    ends = limits(np.concatenate([x, result.states[:, :3]]))
    arrows = arrows_of(result, _IN_SPACE)
    ranges = np.array([high - low for low, high in ends])
    shown = np.array([*shafts(arrows.places[:, :3], arrows.drift[:, :3], ranges)])
    common = {"type": "scatter3d", "hoverinfo": "skip"}
    traces: list[Trace] = [
        {
            **common,
            "mode": "lines",
            **_xyz(_cut(path[:, :3], ends)),
            "name": "free-running path",
            "line": {"color": FAINT, "width": 1.5},
            "opacity": 0.5,
        },
        {
            **common,
            "mode": "lines",
            **_xyz(x),
            "name": "states of the data",
            "line": {"color": LEARNED, "width": 3},
        },
        {
            **common,
            "mode": "markers",
            **_xyz(inside(np.asarray(result.model.dynamics.Z), ends)[:, :3]),
            "name": "inducing inputs",
            "marker": {"size": 3, "symbol": "cross", "color": ACCENT},
            "visible": "legendonly",
        },
        {
            **common,
            "mode": "lines",
            # A gap after each arrow, so that they are one curve.
            **_xyz(np.concatenate([shown, np.full((len(shown), 1, 3), np.nan)], axis=1).reshape(-1, 3)),
            "name": "mean drift",
            "line": {"color": REAL, "width": 2.5},
        },
    ]
    axes = {
        f"{key}axis": {
            "title": {"text": f"x{k + 1}"},
            "range": numbers(ends[k]),
            "backgroundcolor": "#fafafa",
            "gridcolor": "#e4e4e4",
            "showbackground": True,
        }
        for k, key in enumerate("xyz")
    }
    elevation, azimuth = np.radians(open_view(x, ends))
    flat = _FROM * np.cos(elevation)
    eye = {"x": flat * np.cos(azimuth), "y": flat * np.sin(azimuth), "z": _FROM * np.sin(elevation)}
    scene = {**axes, "aspectmode": "cube", "camera": {"eye": {key: round(float(v), 3) for key, v in eye.items()}}}
    caption = (
        f"The learned phase space{_left_out(result)}; drag to turn. States are the means of their posterior; arrows "
        "are the mean drift, longer where it is faster (by the root of the speed). Inducing inputs appear when their "
        "name is clicked."
    )
    return Spec(
        "phase-space", caption, traces, layout(scene=scene, margin={"l": 0, "r": 0, "t": 30, "b": 0}), height=560
    )


def _in_planes(result: FitResult, embedding: Embedding, path: np.ndarray) -> Spec:
    dim = min(result.model.latent_dim, 3)
    pairs = list(combinations(range(dim), 2))
    Z = np.asarray(result.model.dynamics.Z)
    ends = limits(np.concatenate([embedding.mean, result.states]))
    traces, axes = [], {}
    for k, ((i, j), domain) in enumerate(zip(pairs, panels(len(pairs)), strict=True)):
        number, pair = k + 1 if k else "", [i, j]
        at = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        names = _LEGEND if k == 0 else ("",) * len(_LEGEND)
        ranges = np.array([ends[d][1] - ends[d][0] for d in pair])
        arrows = arrows_of(result, _IN_A_PLANE // len(pairs), pair)
        tips = broken(shafts(arrows.places[:, pair], arrows.drift[:, pair], ranges))
        cross = {"symbol": "cross-thin", "line": {"color": ACCENT, "width": 1.5}}
        foot = {"marker": {"opacity": 0.01}, "hoverinfo": "text"}
        doubt = [f"sd of the drift / its size: {d:.2f}" for d in arrows.doubt]
        traces += [
            line(*_xy(path[:, pair]), names[0], FAINT, line={"width": 0.7}, opacity=0.6, **at),
            line(*broken(_ellipses(embedding, (i, j))), names[1], _MIDDLE, line={"width": 1}, **at),
            dots(*_xy(embedding.mean[:, pair]), names[2], LEARNED, 3, **at),
            dots(*_xy(Z[:, pair]), names[3], ACCENT, 7, marker=cross, **at),
            line(*tips, names[4], REAL, line={"width": 1.2}, hoverinfo="skip", **at),
            dots(*_xy(arrows.places[:, pair]), "", REAL, 4, text=doubt, **foot, **at),
        ]
        axes[f"xaxis{number}"] = axis(f"x{i + 1}", domain=domain, anchor=at["yaxis"], range=numbers(ends[i]))
        axes[f"yaxis{number}"] = axis(f"x{j + 1}", anchor=at["xaxis"], range=numbers(ends[j]))
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


def _cut(path: np.ndarray, ends: Limits) -> np.ndarray:
    """The path with gaps where it is outside."""
    low, high = np.array(ends).T
    return np.where(((path >= low) & (path <= high)).all(axis=1, keepdims=True), path, np.nan)


def _xy(points: np.ndarray) -> tuple[list, list]:
    return numbers(points[:, 0]), numbers(points[:, 1])


def _xyz(points: np.ndarray) -> dict[str, list]:
    return {key: numbers(points[:, k]) for k, key in enumerate("xyz")}
