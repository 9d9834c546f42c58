"""All diagnostics of a fitted model on some data, in one record."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lamperti.data.checking import Check
from lamperti.data.checking.report import examine
from lamperti.data.matching import match_channels
from lamperti.data.series import Series
from lamperti.data.stationarity import Stationarity, assess
from lamperti.diagnostics.calibration import HorizonCalibration, calibration
from lamperti.diagnostics.caveats import Caveat, caveats
from lamperti.diagnostics.claims import ExponentClaim, exponent_claim, linear_exponent
from lamperti.diagnostics.fixed_points import FixedPoint, fixed_points
from lamperti.diagnostics.held_out import ForecastCheck, checked
from lamperti.diagnostics.long_run import Likeness, likeness, lyapunov
from lamperti.diagnostics.origins import forecast_unseen
from lamperti.diagnostics.refitted import or_refitted
from lamperti.diagnostics.residuals import Residuals, residuals
from lamperti.diagnostics.slices import Slice, slices
from lamperti.diagnostics.verdict import Verdict, judged_horizons, verdict_on
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

    verdict: Verdict
    """Beside simple methods, on data that training has not seen; its sentence is the first thing to read."""
    series: tuple[Series, ...]
    check: Check
    stationarity: Stationarity
    history: History
    calibrates: bool
    """Whether training that comes to its end calibrates the noises."""
    dimension: int
    residuals: Residuals | None
    fixed_points: tuple[FixedPoint, ...]
    lyapunov: Exponent
    linear_exponent: float
    """What the linear system nearest to the mean drift would have."""
    forecasts: ForecastCheck | None
    calibration: tuple[HorizonCalibration, ...]
    """Of the forecasts, by horizon."""
    likeness: tuple[Likeness, ...]
    simulation: Simulation
    slices: tuple[Slice, ...]
    extrapolated: float
    """Share of the states of the data at which the sd of the drift exceeds the drift's usual size."""
    learned_from: int
    """Samples of the training data, the held-out part included; of older models, those of the data at hand."""

    @property
    def samples(self) -> int:
        return sum(s.length for s in self.series)

    @property
    def suggested_dimension(self) -> int | None:
        return None if self.check.suggestion is None else self.check.suggestion.dimension

    @property
    def exponent_claim(self) -> ExponentClaim:
        """What the Lyapunov exponent allows to say of the system."""
        return exponent_claim(self.lyapunov, self.linear_exponent, self.stationarity)

    @cached_property
    def caveats(self) -> tuple[Caveat, ...]:
        """Warnings in plain words, the most serious first."""
        return caveats(self)


_USUAL = Effort()


def diagnose(
    result: FitResult, data: Any, *, training: Sequence[Series] = (), effort: Effort = _USUAL, seed: int = 0
) -> Diagnostics:
    """Look at a fitted model from all sides.

    **Arguments**

    - `data`: what the model was trained on, data that is new to it, or some of both: the model knows the rows that it
      learned from, and forecasts are checked on the others. Anything that `lamperti.fit` takes.
    - `training`: the series that the model was fitted to, for simple methods to learn from, where `data` is new and
      the model was read from a file.
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
    found = forecast_unseen(
        result,
        series,
        training=training,
        horizon=effort.horizon,
        n_origins=effort.origins,
        n_samples=effort.futures,
        seed=seed,
    )
    return Diagnostics(
        verdict=or_refitted(verdict_on(found, result, alike), result, series, seed=seed),
        series=tuple(series),
        check=check,
        stationarity=assess(series),
        history=result.history,
        calibrates=result.config.fit.calibrate,
        dimension=result.model.latent_dim,
        residuals=residuals(result, series, n_pieces=effort.pieces, seed=seed),
        fixed_points=fixed_points(result.drift, result.states, result.step, n_starts=effort.starts, seed=seed),
        lyapunov=lyapunov(result, n_steps=effort.steps, seed=seed),
        linear_exponent=linear_exponent(result),
        forecasts=None if found is None else checked(found, result),
        calibration=() if found is None else calibration(found, judged_horizons(found)),
        likeness=alike,
        simulation=simulation,
        slices=slices(result),
        extrapolated=_extrapolated(result),
        learned_from=sum(s.length for s in series) if result.trained_on is None else result.trained_on.n_rows,
    )


def _extrapolated(result: FitResult) -> float:
    mean, sd = result.drift(result.states)
    usual = np.sqrt(np.mean(mean**2, axis=0))
    return float(np.mean(np.any(sd > usual, axis=1)))
