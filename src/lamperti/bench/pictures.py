"""Pictures of a learned model, drawn while it is at hand and kept beside its cell as small PNG files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from lamperti.api import embed, forecast, simulate
from lamperti.bench.cells import Cell, picture_path
from lamperti.data.series import Series
from lamperti.evaluation.embedding import smooth_map
from lamperti.model import LatentSDE
from lamperti.results import FitResult

if TYPE_CHECKING:  # cells without pictures need not wait for matplotlib
    from matplotlib.figure import Figure

    from lamperti.bench.problems import Problem
    from lamperti.data.systems import Simulated
    from lamperti.evaluation._paths import Paths

DPI = 75  # all pictures of a report together are to stay within a few megabytes
SEED = 11
_SHOWN = 8  # series
_MAPPED = 24  # other series, to which the map into the coordinates of the truth is fitted
_NUDGE = 1e-3  # of a step of time along the drift, to see where the map takes it
_PATHS = 3
STAGES = (0, 10, 50, 200, 500)

Drawings = Mapping[str, "Callable[[], Figure]"]


@dataclass
class Snapshots:
    """Copies of a model at some iterations of its training."""

    at: Sequence[int] = STAGES
    models: dict[int, LatentSDE] = field(default_factory=dict)

    def __call__(self, iteration: int, model: LatentSDE) -> None:
        if iteration in self.at:
            # the step takes over the memory of its arguments, so what is to be kept must be copied
            self.models[iteration] = jax.tree.map(lambda a: a.copy() if isinstance(a, jax.Array) else a, model)

    def stages(self, result: FitResult, series: Sequence[Series]) -> list[tuple[int, list[np.ndarray]]]:
        """States of some series after each kept iteration, and at the end."""
        models = {**self.models, result.history.best_iteration: result.model}
        return [
            (iteration, [embed(replace(result, model=model), s).mean for s in series])
            for iteration, model in sorted(models.items())
        ]


def draw(drawings: Drawings, folder: Path, cell: Cell) -> tuple[list[str], list[str]]:
    """Names of the pictures written, and a note for each that could not be drawn."""
    from lamperti.viz import write_png

    names, notes = [], []
    for name, drawing in drawings.items():
        path = picture_path(folder, cell, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_png(drawing(), path, dpi=DPI)
            names.append(name)
        except Exception as error:
            notes.append(f"picture {name} was not drawn ({type(error).__name__}: {error})")
    return names, notes


def of_simulated(
    problem: "Problem", test: "Simulated", result: FitResult, real: "Sequence[Paths]", snapshots: Snapshots
) -> Drawings:
    """All pictures of a fit to simulated data; each is computed when it is drawn."""
    from lamperti import viz

    shown = test.series[:_SHOWN]
    # computed by the first drawing that asks, so that what fails is one picture and not the cell
    aligned = cache(lambda: _Aligned.fit(result, test))
    steps = np.diff(test.states, axis=1) / problem.dt
    true = (test.states[:, :-1].reshape(-1, test.states.shape[-1]), steps.reshape(-1, test.states.shape[-1]))
    drawings = {
        "state_space": lambda: viz.state_spaces(list(test.states[:_SHOWN]), aligned().states),
        "drift": lambda: viz.drift_fields(true, (np.concatenate(aligned().states), aligned().drift)),
        "forecast": lambda: fan(result, test.series[0], problem.context, max(*problem.horizons, problem.far)),
    }
    if real:
        n_paths, n_steps = real[0].shape
        paths = cache(lambda: simulate(result, n_steps=n_steps, n_paths=n_paths, seed=SEED, observation_noise=False))
        beside = [Series(path, dt=problem.dt) for path in real[0][:_PATHS]]
        drawings["free_run"] = lambda: viz.free_run(
            replace(paths(), samples=paths().samples[:_PATHS], states=paths().states[:_PATHS]), beside
        )
        drawings["statistics"] = lambda: viz.long_run(paths().samples[:, :, 0], real[0], problem.dt)
    else:
        length = len(shown[0])
        drawings["free_run"] = lambda: viz.free_run(_run(result, length), shown[:_PATHS])
    if snapshots.models:
        drawings["evolution"] = lambda: viz.evolution(snapshots.stages(result, shown))
    return drawings


def of_recording(result: FitResult, series: Series, context: int, horizon: int, origin: int) -> Drawings:
    """Pictures of a fit to a recording: one forecast, and a free run."""
    from lamperti import viz

    end = min(len(series), origin + 1000)
    return {
        "forecast": lambda: fan(result, series[origin - context :], context, horizon),
        "free_run": lambda: viz.free_run(_run(result, end - origin), series[origin:end]),
    }


def fan(result: FitResult, series: Series, context: int, horizon: int) -> "Figure":
    """The forecast after so many samples of a series, and what followed."""
    from lamperti import viz

    past, future = series[:context], series[context : context + horizon]
    return viz.forecast_fan(forecast(result, past, horizon=horizon, seed=SEED), past, future)


def _run(result: FitResult, n_steps: int):
    return simulate(result, n_steps=n_steps, n_paths=_PATHS, seed=SEED)


@dataclass(frozen=True, eq=False)
class _Aligned:
    """Learned states and drift of the series shown, in the coordinates of the truth: by the smooth map of
    ``evaluation.embedding`` (an affine one would lay the butterfly flat), fitted to other series."""

    states: list[np.ndarray]
    drift: np.ndarray

    @classmethod
    def fit(cls, result: FitResult, test: "Simulated") -> "_Aligned":
        latent = [embed(result, s).mean for s in test.series[: _SHOWN + _MAPPED]]
        others = slice(_SHOWN, len(latent))
        carry = smooth_map(np.concatenate(latent[others]), np.concatenate(list(test.states[others])))
        z = np.concatenate(latent[:_SHOWN])
        drift = result.drift(z)[0]
        nudge = _NUDGE * result.step
        along = (carry(z + nudge * drift) - carry(z - nudge * drift)) / (2 * nudge)
        return cls([carry(s) for s in latent[:_SHOWN]], along)
