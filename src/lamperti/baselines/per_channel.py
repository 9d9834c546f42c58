"""A baseline for one channel, used on each channel of many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.baselines.interface import Baseline, Forecaster
from lamperti.data.series import Series


@dataclass(frozen=True)
class PerChannel:
    """One fit of ``baseline`` a channel; channels know nothing of each other."""

    baseline: Baseline

    def fit(self, series: Sequence[Series], seed: int) -> "FittedPerChannel":
        if not series:
            raise SeriesError("there is no series to learn from. Pass at least one.")
        channels = [
            [Series(s.values[:, p], times=s.times, mask=s.mask[:, p]) for s in series]
            for p in range(series[0].n_channels)
        ]
        return FittedPerChannel(tuple(self.baseline.fit(channel, seed) for channel in channels))


@dataclass(frozen=True, eq=False)
class FittedPerChannel:
    channels: tuple[Forecaster, ...]

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        if context.ndim != 2 or context.shape[1] != len(self.channels):
            raise SeriesError(f"the context must be [T, {len(self.channels)}], got {context.shape}.")
        parts = [
            one.forecast(context[:, p : p + 1], horizon, n_samples, seed + p) for p, one in enumerate(self.channels)
        ]
        return np.concatenate(parts, axis=-1)
