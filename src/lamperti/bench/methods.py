"""Who takes part: the library as a user gets it, the library told the true dimension, and all baselines."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._errors import ConfigError
from lamperti._typing import Float
from lamperti.api import fit, forecast, simulate
from lamperti.baselines import Baseline, PerChannel, Simulator, standard_baselines
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.series import Series
from lamperti.results import FitResult
from lamperti.train.history import STOPPED
from lamperti.train.interrupts import Terminated
from lamperti.train.loop import Progress, Watch

N_SAMPLES = 256
LEARNED = ("lamperti", "lamperti-told")
SEASON = "seasonal-naive"
# The simulated systems have no season: the last season would be persistence a second time.
BASELINES = tuple(name for name in standard_baselines(1) if name != SEASON)
METHODS = (*LEARNED, *BASELINES, SEASON)

Forecasts = Callable[[Series, int, int], Float[np.ndarray, "S H P"]]
"""(context, horizon, seed) to sampled futures."""
Simulates = Callable[[int, int, int], Float[np.ndarray, "N T P"]]
"""(paths, steps, seed) to free-running paths."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method that has seen the training data."""

    forecast: Forecasts
    simulate: Simulates | None
    minutes: float
    """Wall time of the fit, compiling included."""
    result: FitResult | None = None
    """Of the library's methods."""


@dataclass(frozen=True)
class Training:
    """What a method is given besides the data."""

    seed: int
    minutes: float
    horizon: int
    """The furthest forecast that baselines must be able to make."""
    latent_dim: int | None = None
    """The truth, for the method that is told it."""
    noise: bool = False
    """Whether forecasts are of what would be observed, noise included, or of the observable without it."""
    progress: Progress | None = None
    watch: Watch | None = None
    """Sees the model at every iteration, for methods that train by iterations."""


def is_learned(method: str) -> bool:
    return method in LEARNED


def fit_method(method: str, series: Sequence[Series], training: Training) -> Fitted:
    """Let one method learn. Raises whatever the method raises, and `KeyboardInterrupt` when training was stopped."""
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}. Choose from {', '.join(METHODS)}.")
    began = time.monotonic()
    if not is_learned(method):
        chosen: Baseline = standard_baselines(training.horizon)[method]
        return _baseline(chosen if series[0].n_channels == 1 else PerChannel(chosen), series, training.seed, began)
    # A user's call: nothing but the clock and the seed is set, and where told, the dimension.
    told = training.latent_dim if method == "lamperti-told" else None
    result = fit(
        list(series),
        ModelConfig(latent_dim=told),
        FitConfig(seed=training.seed, max_minutes=training.minutes),
        progress=training.progress or False,
        watch=training.watch,
    )
    if result.history.status in STOPPED:  # fit gives back what it has; a half-trained cell must not stand in the table
        raise Terminated if result.history.status == "terminated" else KeyboardInterrupt
    return learned(result, noise=training.noise, minutes=(time.monotonic() - began) / 60)


def learned(result: FitResult, *, noise: bool, minutes: float) -> Fitted:
    """A fitted model as one method among others."""

    def ahead(context: Series, horizon: int, seed: int) -> Float[np.ndarray, "S H P"]:
        return forecast(
            result, context, horizon=horizon, n_samples=N_SAMPLES, seed=seed, observation_noise=noise
        ).samples

    def freely(n_paths: int, n_steps: int, seed: int) -> Float[np.ndarray, "N T P"]:
        return simulate(result, n_steps=n_steps, n_paths=n_paths, seed=seed, observation_noise=noise).samples

    return Fitted(ahead, freely, minutes, result)


def _baseline(baseline: Baseline, series: Sequence[Series], seed: int, began: float) -> Fitted:
    fitted = baseline.fit([even(one) for one in series], seed)

    def ahead(context: Series, horizon: int, seed: int) -> Float[np.ndarray, "S H P"]:
        return fitted.forecast(even(context).values, horizon, N_SAMPLES, seed)

    return Fitted(ahead, fitted.simulate if isinstance(fitted, Simulator) else None, (time.monotonic() - began) / 60)


def even(series: Series) -> Series:
    """The series as one counts it who wants to use a simple method: missing values on a straight line between their
    neighbours, and samples instead of times where these are not regular."""
    if series.mask.all() and series.is_regular:
        return series
    at = np.arange(len(series))
    columns = [
        np.interp(at, at[seen], column[seen]) for column, seen in zip(series.values.T, series.mask.T, strict=True)
    ]
    return Series(np.column_stack(columns), names=series.names)
