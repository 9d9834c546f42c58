"""All diagnostics of a fitted model on some data, in one record."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lamperti.data.checking import Check
from lamperti.data.checking.report import examine
from lamperti.data.matching import match_channels
from lamperti.data.series import Series
from lamperti.diagnostics.caveats import Caveat, caveats
from lamperti.diagnostics.fixed_points import FixedPoint, fixed_points
from lamperti.diagnostics.held_out import ForecastCheck, check_forecasts
from lamperti.diagnostics.long_run import Likeness, likeness, lyapunov
from lamperti.diagnostics.residuals import Residuals, residuals
from lamperti.diagnostics.slices import Slice, slices
from lamperti.evaluation.lyapunov import Exponent
from lamperti.results import FitResult, Simulation
from lamperti.train.history import History


@dataclass(frozen=True)
class Effort:
    """How much is computed: origins, futures and horizon of the forecasts (None: as far as the data allows, 100 at
    most), stretches for residuals, free-running paths, steps of the Lyapunov exponent, starts of Newton's method."""

    origins: int = 24
    futures: int = 200
    horizon: int | None = None
    pieces: int = 8
    paths: int = 16
    steps: int = 1500
    starts: int = 64


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What `diagnose` found."""

    series: tuple[Series, ...]
    check: Check
    history: History
    calibrates: bool
    """Whether training that comes to its end calibrates the noises."""
    dimension: int
    residuals: Residuals | None
    fixed_points: tuple[FixedPoint, ...]
    lyapunov: Exponent
    forecasts: ForecastCheck | None
    likeness: tuple[Likeness, ...]
    simulation: Simulation
    slices: tuple[Slice, ...]
    extrapolated: float
    """Share of the states of the data at which the sd of the drift exceeds the drift's usual size."""

    @property
    def samples(self) -> int:
        return sum(s.length for s in self.series)

    @property
    def suggested_dimension(self) -> int | None:
        return None if self.check.suggestion is None else self.check.suggestion.dimension

    @cached_property
    def caveats(self) -> tuple[Caveat, ...]:
        """Warnings in plain words, the most serious first."""
        return caveats(self)


_USUAL = Effort()


def diagnose(result: FitResult, data: Any, *, effort: Effort = _USUAL, seed: int = 0) -> Diagnostics:
    """Look at a fitted model from all sides.

    **Arguments**

    - `data`: what the model was trained on (forecasts are then checked on the part that was held out), or data that
      is new to it (all of it is then unseen). Anything that `lamperti.fit` takes.
    - `effort`: how much to compute; with the usual, about half a minute.

    **Returns** `Diagnostics`, in the user's units. `diagnostics.caveats` are warnings in plain words.

    ```python
    from lamperti.diagnostics import diagnose
    for caveat in diagnose(result, series).caveats:
        print(caveat.text)
    ```
    """
    series, check = examine(data, {})
    series = [match_channels(one, result.names) for one in series]
    alike, simulation = likeness(result, series, n_paths=effort.paths, seed=seed)
    return Diagnostics(
        series=tuple(series),
        check=check,
        history=result.history,
        calibrates=result.config.fit.calibrate,
        dimension=result.model.latent_dim,
        residuals=residuals(result, series, n_pieces=effort.pieces, seed=seed),
        fixed_points=fixed_points(result.drift, result.states, result.step, n_starts=effort.starts, seed=seed),
        lyapunov=lyapunov(result, n_steps=effort.steps, seed=seed),
        forecasts=check_forecasts(
            result, series, horizon=effort.horizon, n_origins=effort.origins, n_samples=effort.futures, seed=seed
        ),
        likeness=alike,
        simulation=simulation,
        slices=slices(result),
        extrapolated=_extrapolated(result),
    )


def _extrapolated(result: FitResult) -> float:
    mean, sd = result.drift(result.states)
    usual = np.sqrt(np.mean(mean**2, axis=0))
    return float(np.mean(np.any(sd > usual, axis=1)))
