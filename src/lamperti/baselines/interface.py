"""What a baseline promises, and what all of them refuse.

Notation   context: what was observed before the forecast [T, P]      samples: ensemble of futures [S, H, P]

A baseline is a small frozen record of options. ``fit`` learns from training series and returns something that
forecasts; options never change after that. Times do not enter: series must be evenly sampled and without gaps.
A method that cannot tell the observation noise from the signal forecasts the *observed* series, noise included.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Float
from lamperti.data.series import Series, check_for_training

_SAME_STEP = 1e-3  # steps of different recordings that are taken for the same, relative


class Forecaster(Protocol):
    """A fitted baseline."""

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        """An ensemble of futures, 1..horizon samples after the context."""
        ...


@runtime_checkable
class Simulator(Protocol):
    """A fitted baseline that also runs freely."""

    def simulate(self, n_paths: int, n_steps: int, seed: int) -> Float[np.ndarray, "N T P"]:
        """Independent long-run paths."""
        ...


class Baseline(Protocol):
    """Options of a method, before it has seen data."""

    def fit(self, series: Sequence[Series], seed: int) -> Forecaster:
        """Learn from training series."""
        ...


def training_arrays(
    series: Sequence[Series], *, scalar: str | None = None, shortest: int = 2
) -> list[Float[np.ndarray, "T P"]]:
    """Values of series that a baseline can learn from; ``scalar`` names a method that takes one channel only."""
    check_for_training(series)
    step = series[0].dt
    for i, one in enumerate(series):
        if not one.mask.all():
            raise SeriesError(
                f"series {i} has {int((~one.mask).sum())} missing values; baselines take none. Fill them, or cut the "
                "series into stretches without gaps."
            )
        if not one.is_regular or abs(one.dt - step) > _SAME_STEP * step:
            raise SeriesError(
                f"series {i} is not sampled every {step:g} like the first. Baselines count in samples: resample it."
            )
    if scalar is not None and series[0].n_channels != 1:
        raise SeriesError(
            f"{scalar} takes one channel, got {series[0].n_channels}. Wrap it: PerChannel({scalar}(...))."
        )
    long_enough = [one.values for one in series if one.length >= shortest]
    if not long_enough:
        raise SeriesError(
            f"no series has the {shortest} samples that this baseline needs; the longest has "
            f"{max(one.length for one in series)}. Use longer series, or a shorter horizon."
        )
    return long_enough


def check_request(
    context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, *, n_channels: int, least: int, furthest: int
) -> None:
    """Refuse a forecast that cannot be made, saying what could."""
    if context.ndim != 2 or context.shape[1] != n_channels:
        raise SeriesError(f"the context must be [T, {n_channels}] like the training data, got {context.shape}.")
    if len(context) < least:
        raise SeriesError(
            f"this baseline needs a context of {least} samples, got {len(context)}. Pass more of the past."
        )
    if not np.isfinite(context[-least:]).all():
        raise SeriesError(
            f"the last {least} samples of the context have missing values; baselines take none. Fill them first."
        )
    if n_samples < 1 or horizon < 1:
        raise ConfigError(f"n_samples and horizon must be at least 1, got {n_samples} and {horizon}.")
    if horizon > furthest:
        raise ConfigError(
            f"this baseline learned its spread up to {furthest} samples ahead, got horizon={horizon}. "
            f"Make it with horizon={horizon} and fit again."
        )
