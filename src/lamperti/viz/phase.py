"""The learned phase space: where the data lies in it, and how the drift moves.

Notation   x: latent states [K, D]      pair (i, j): the coordinates of a panel
"""

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from lamperti._compile import compiled
from lamperti._params import realise
from lamperti._text import literal
from lamperti._typing import Array, Float
from lamperti.api import embed, simulate
from lamperti.data.dates import DATES, as_dates
from lamperti.data.durations import in_words, one
from lamperti.data.series import Series
from lamperti.data.windows import whole
from lamperti.diagnostics.view import Limits, inside, limits, open_view
from lamperti.model import LatentSDE
from lamperti.results import Embedding, FitResult
from lamperti.viz._style import ACCENT, FAINT, LEARNED, REAL, TIME_MAP, left_out, legend, new_figure, tidy, time_axis

_ELLIPSES = 60
_CELLS = 15
_PADDING = 64  # series are padded to multiples of this, as elsewhere, so that few lengths are compiled
_MAX_DIM = 3  # coordinates shown
_PATH = 2500  # steps of the free-running path
_MIDDLE = "#21918c"  # of the time map


def phase_space(result: FitResult, series: Series, *, seed: int = 0) -> Figure:
    """Encoder means of a series (coloured by time), 2-sd ellipses of its states given all of it, one free-running
    path, inducing inputs and drift arrows.

    Two latent dimensions make one panel; of three or more, the first three are shown in space and pair by pair.
    """
    mean, embedding = encoder_means(result, series), embed(result, series)
    path = simulate(result, n_steps=max(_PATH, 3 * len(series)), n_paths=1, seed=seed).states[0]
    visited = np.concatenate([embedding.mean, result.states])
    ends = limits(visited)
    dim = min(result.model.latent_dim, _MAX_DIM)
    if dim == 1:
        return _line(result, embedding, ends)
    if dim == 2:
        figure = new_figure(8.2, 6.6)
        panels = [((0, 1), figure.add_subplot())]
    else:
        figure = new_figure(11.5, 9.6)
        panels = [(pair, figure.add_subplot(2, 2, k + 2)) for k, pair in enumerate(combinations(range(3), 2))]
        _draw_space(figure.add_subplot(2, 2, 1, projection="3d"), result, path, ends)
    dated, unit = series.time_unit == DATES, result.step_unit
    clock = result.step * result.scaler.in_steps(series).times if dated else series.times
    for (i, j), axes in panels:
        axes.plot(path[:, i], path[:, j], color=LEARNED, lw=0.4, alpha=0.35, label="free-running path", zorder=1)
        _draw_ellipses(axes, embedding, (i, j))
        dots = axes.scatter(mean[:, i], mean[:, j], c=clock, cmap=TIME_MAP, s=9, lw=0, zorder=4)
        Z = np.asarray(result.model.dynamics.Z)
        axes.plot(Z[:, i], Z[:, j], "+", color=ACCENT, ms=6, mew=1.1, label="inducing inputs", zorder=5)
        _draw_arrows(axes, result, visited, (i, j), ends)
        axes.set(xlim=ends[i], ylim=ends[j])
        tidy(axes, x=f"$x_{i + 1}$", y=f"$x_{j + 1}$")
    flat = [axes for _, axes in panels]
    flat[0].plot([], [], "o", color=_MIDDLE, ms=4, label="encoder means")
    flat[0].plot([], [], "o", color=_MIDDLE, ms=9, mfc="none", mew=0.7, label="states, 2-sd ellipses")
    flat[0].plot([], [], marker=r"$\rightarrow$", color=REAL, ms=11, mew=0.2, ls="", label="mean drift")
    figure.legend(fontsize=9, frameon=False, loc="outside lower left", ncols=5, handles=_handles(flat[0]))
    bar = figure.colorbar(dots, ax=flat, shrink=0.6, aspect=35, pad=0.015)
    bar.set_label(f"time of the data [{literal(unit)}, from its start]" if dated else "time of the data", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    title = f"Learned phase space of {', '.join(map(literal, result.names))}"
    figure.suptitle(title + left_out(_MAX_DIM, result.model.latent_dim), x=0.01, ha="left", fontsize=12)
    return figure


def encoder_means(result: FitResult, series: Series) -> Float[np.ndarray, "T D"]:
    """What the encoder alone says of each state."""
    scaler, encoder = result.scaler, result.model.encoder
    y = np.nan_to_num(scaler.values(series.values))
    batch = whole(y, series.mask, scaler.steps_of(series), encoder.lead, _PADDING)
    mean = _encoded(result.model, batch.y[0], batch.mask[0], batch.dt[0])
    return np.asarray(mean)[: len(series)]


@compiled
def _encoded(model: LatentSDE, y: np.ndarray, mask: np.ndarray, dt: np.ndarray) -> Array:
    return realise(model).encoder(y, mask, dt).mean


def _handles(axes: Axes) -> list:
    return axes.get_legend_handles_labels()[0]


def _draw_arrows(axes: Axes, result: FitResult, x: np.ndarray, pair: tuple[int, int], ends: Limits) -> None:
    """Mean drift over the states of each cell: in more than two dimensions a plane alone does not fix the state."""
    i, j = pair
    edges = [np.linspace(*ends[k], _CELLS + 1) for k in pair]
    cell = [np.clip(np.digitize(x[:, k], e) - 1, 0, _CELLS - 1) for k, e in zip(pair, edges, strict=True)]
    if x.shape[1] == 2:
        middles = [0.5 * (e[1:] + e[:-1]) for e in edges]
        points = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
        place, drift = points, result.drift(points)[0]
    else:
        flat = cell[0] * _CELLS + cell[1]
        used, index, count = np.unique(flat, return_inverse=True, return_counts=True)
        sums = np.zeros((2, len(used), 2))
        for target, values in zip(sums, (x, result.drift(x)[0]), strict=True):
            np.add.at(target, index, values[:, [i, j]])
        place, drift = sums / count[:, None]
    width = min(ends[k][1] - ends[k][0] for k in pair) / _CELLS
    # A few fast cells would leave all others without a visible arrow: the root of the speed sets the length.
    speed = np.linalg.norm(drift, axis=1, keepdims=True)
    arrows = drift / np.maximum(np.sqrt(speed * max(float(speed.max()), 1e-12)), 1e-12) * 1.3 * width
    axes.quiver(
        *place.T, *arrows.T, angles="xy", scale_units="xy", scale=1.0, color=REAL, alpha=0.75, width=0.0028, zorder=6
    )


def _draw_ellipses(axes: Axes, embedding: Embedding, pair: tuple[int, int]) -> None:
    shown = np.linspace(0, len(embedding.mean) - 1, min(_ELLIPSES, len(embedding.mean))).astype(int)
    values, vectors = np.linalg.eigh(embedding.cov[np.ix_(shown, np.array(pair), np.array(pair))])
    diameters = 4.0 * np.sqrt(np.maximum(values, 0.0))
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    ellipses = EllipseCollection(
        diameters[:, 1],
        diameters[:, 0],
        angles,
        units="xy",
        offsets=embedding.mean[shown][:, list(pair)],
        offset_transform=axes.transData,
        facecolors=to_rgba(_MIDDLE, 0.12),
        edgecolors=to_rgba(_MIDDLE, 0.7),
        linewidths=0.6,
        zorder=3,
    )
    axes.add_collection(ellipses, autolim=False)


def _draw_space(axes, result: FitResult, path: np.ndarray, ends: Limits) -> None:
    """The free-running path in space, coloured by its own time."""
    points, ends = path[:, :3], ends[:3]
    segments = Line3DCollection(
        np.stack([points[:-1], points[1:]], axis=1), array=np.arange(len(points) - 1), cmap=TIME_MAP, linewidths=0.6
    )
    axes.add_collection3d(segments)
    axes.scatter(*inside(np.asarray(result.model.dynamics.Z), ends)[:, :3].T, marker="+", color=ACCENT, s=16, lw=0.8)
    axes.set(xlim=ends[0], ylim=ends[1], zlim=ends[2])
    span = in_words(len(path) * result.step, literal(result.step_unit) or "time units", digits=3)
    axes.set_title(f"A free-running path over {span}", loc="left", fontsize=10.5, fontweight="bold")
    for k, axis in enumerate((axes.xaxis, axes.yaxis, axes.zaxis)):
        axis.set_label_text(f"$x_{k + 1}$", fontsize=9)
        axis.set_tick_params(labelsize=7)
        axis.pane.set_facecolor((0.97, 0.97, 0.97, 1.0))
    axes.set_box_aspect(None, zoom=0.9)
    elevation, azimuth = open_view(points, ends)
    axes.view_init(elev=elevation, azim=azimuth)


def _line(result: FitResult, embedding: Embedding, ends: Limits) -> Figure:
    """One latent dimension: the state over time, and the drift with its uncertainty."""
    figure = new_figure(10.0, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    mean, sd = embedding.mean[:, 0], np.sqrt(embedding.cov[:, 0, 0])
    times = as_dates(embedding.times, embedding.time_unit)
    left.fill_between(times, mean - 2 * sd, mean + 2 * sd, color=LEARNED, alpha=0.2, lw=0)
    left.plot(times, mean, color=LEARNED, lw=0.8)
    tidy(left, title="State ± 2 sd", y="$x_1$")
    time_axis(left, embedding.time_unit)
    x = np.linspace(*ends[0], 200)[:, None]
    f, sd = (moment[:, 0] for moment in result.drift(x))
    right.fill_between(x[:, 0], f - 2 * sd, f + 2 * sd, color=FAINT, alpha=0.3, lw=0)
    right.plot(x[:, 0], f, color=REAL, lw=1.2)
    Z = np.asarray(result.model.dynamics.Z)[:, 0]
    right.plot(Z, np.zeros(len(Z)), "+", color=ACCENT, ms=6, label="inducing inputs")
    per = f" [per {literal(one(result.step_unit))}]" if result.step_unit else ""
    tidy(right, title="Drift ± 2 sd", x="$x_1$", y=f"$dx_1/dt${per}")
    legend(right)
    return figure
