"""Learned beside true: state spaces, drifts, long-run statistics; and the state space as it is learned.

Notation   true, learned: states of some series in the same coordinates, each [T, D]
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.signal import welch

from lamperti._typing import Float
from lamperti.evaluation.invariants import half_cycles, peak_heights
from lamperti.viz._style import LEARNED, REAL, legend, new_figure, tidy

_CELLS = 14
_MARGIN = 0.1  # sds that a signal must pass its mean by to have changed sides
_BINS = 30

States = Float[np.ndarray, "_T D"]
Paths = Float[np.ndarray, "N T"]


def state_spaces(true: Sequence[States], learned: Sequence[States]) -> Figure:
    """Courses of the true state and of the learned one, side by side on the same axes.

    One coordinate is drawn in time, two make a plane, of three or more the first three a space.
    """
    dim = min(true[0].shape[1], 3)
    figure = new_figure(9.0, 4.4)
    limits = _limits(np.concatenate(true))
    for k, (title, many, colour) in enumerate((("True", true, REAL), ("Learned", learned, LEARNED))):
        axes = figure.add_subplot(1, 2, k + 1, projection="3d" if dim == 3 else None)
        for states in many:
            axes.plot(*states[:, :dim].T, color=colour, lw=0.5, alpha=0.7)
        axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
        names = "y" if dim == 1 else "xyz"  # one coordinate alone is drawn over its samples
        for name, limit, label in zip(names, limits[:dim], ("$x_1$", "$x_2$", "$x_3$"), strict=False):
            getattr(axes, f"set_{name}lim")(*limit)
            getattr(axes, f"set_{name}label")(label, fontsize=9)
        axes.tick_params(labelsize=7)
    return figure


def drift_fields(
    true: tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N D"]],
    learned: tuple[Float[np.ndarray, "M D"], Float[np.ndarray, "M D"]],
) -> Figure:
    """Mean motion in each cell of a plane: points and velocities of the truth, and of the learned equation.

    In three dimensions the planes of the first coordinate with the second and the third are shown.
    """
    pairs = [pair for pair in combinations(range(min(true[0].shape[1], 3)), 2) if pair[0] == 0]
    figure = new_figure(9.0, 0.4 + 4.0 * len(pairs))
    panels = figure.subplots(len(pairs), 2, squeeze=False)
    limits = _limits(true[0])
    for row, pair in zip(panels, pairs, strict=True):
        # one scale for both columns, so that arrows can be compared
        fields = [_cell_means(x[:, pair], v[:, pair], [limits[i] for i in pair]) for x, v in (true, learned)]
        longest = max((float(np.linalg.norm(fields[0][1], axis=1).max()), np.finfo(float).tiny))
        for axes, (x, v), title, colour in zip(row, fields, ("True", "Learned"), (REAL, LEARNED), strict=True):
            axes.quiver(*x.T, *(v / longest).T, color=colour, scale=_CELLS * 0.8, width=0.004)
            axes.set(xlim=limits[pair[0]], ylim=limits[pair[1]])
            tidy(axes, title=f"{title} drift", x=f"$x_{pair[0] + 1}$", y=f"$x_{pair[1] + 1}$")
    return figure


def long_run(model: Paths, real: Paths, dt: float) -> Figure:
    """Spectra, residence times about the mean, and peak heights of free-running paths beside real ones."""
    figure = new_figure(11.0, 3.3)
    spectrum, residence, peaks = figure.subplots(1, 3)
    kept = model[np.isfinite(model).all(axis=1)]
    centre, margin = float(real.mean()), _MARGIN * float(real.std())
    stays, heights = [], []
    for paths, colour, label in ((real, REAL, "real"), (kept, LEARNED, "model")):
        if len(paths):
            frequency, power = welch(paths, fs=1 / dt, nperseg=min(512, paths.shape[1]), axis=1)
            spectrum.loglog(frequency[1:], power.mean(axis=0)[1:], color=colour, lw=1.2, label=label)
            stays.append((dt * half_cycles(paths, centre, margin), colour, label))
            heights.append((peak_heights(paths), colour, label))
    tidy(spectrum, title="Power spectrum", x="frequency", y="power")
    legend(spectrum)
    _histograms(residence, stays)
    tidy(residence, title="Time on one side of the mean", x="time", y="density")
    _histograms(peaks, heights)
    lost = f" ({len(model) - len(kept)} paths escaped)" if len(kept) < len(model) else ""
    tidy(peaks, title=f"Heights of peaks{lost}", x="height", y="density")
    return figure


def evolution(stages: Sequence[tuple[int, Sequence[States]]]) -> Figure:
    """The first two latent coordinates of some series after so many iterations each."""
    figure = new_figure(2.6 * len(stages), 3.0)
    for axes, (iteration, many) in zip(figure.subplots(1, len(stages), squeeze=False)[0], stages, strict=True):
        for states in many:
            second = states[:, 1] if states.shape[1] > 1 else np.zeros(len(states))
            axes.plot(states[:, 0], second, color=LEARNED, lw=0.6, alpha=0.7)
        tidy(axes, title=f"iteration {iteration}", x="$x_1$", y="$x_2$" if axes is figure.axes[0] else "")
    return figure


def _histograms(axes: Axes, samples: Sequence[tuple[Float[np.ndarray, " K"], str, str]]) -> None:
    """On the bins of the first, which is the truth; what lies beyond them is not shown."""
    if not samples or not len(samples[0][0]):
        return
    low, high = np.quantile(samples[0][0], [0.0, 0.995])
    bins = np.linspace(low, high + 1e-9 * (1 + abs(high)), _BINS + 1).tolist()
    for values, colour, label in samples:
        inside = values[(values >= bins[0]) & (values <= bins[-1])]
        if len(inside):
            # the share that is seen, so that a tail beyond the bins lowers the bars
            weights = np.full(len(inside), 1 / len(values) / (bins[1] - bins[0]))
            axes.hist(inside, bins=bins, weights=weights, histtype="step", color=colour, lw=1.3, label=label)


def _cell_means(
    x: Float[np.ndarray, "N 2"], v: Float[np.ndarray, "N 2"], limits: list[tuple[float, float]]
) -> tuple[Float[np.ndarray, "C 2"], Float[np.ndarray, "C 2"]]:
    """Mean place and mean velocity of the points in each cell that holds any."""
    low, high = np.array(limits).T
    inside = ((x >= low) & (x <= high)).all(axis=1)
    x, v = x[inside], v[inside]
    cell = np.minimum(((x - low) / (high - low) * _CELLS).astype(int), _CELLS - 1)
    _, index, count = np.unique(cell @ [_CELLS, 1], return_inverse=True, return_counts=True)
    sums = np.zeros((2, len(count), 2))
    for target, values in zip(sums, (x, v), strict=True):
        np.add.at(target, index, values)
    place, speed = sums / count[:, None]
    return place, speed


def _limits(x: Float[np.ndarray, "N D"]) -> list[tuple[float, float]]:
    low, high = x.min(axis=0), x.max(axis=0)
    extra = 0.05 * np.where(high > low, high - low, 1.0)
    return [(float(a), float(b)) for a, b in zip(low - extra, high + extra, strict=True)]
