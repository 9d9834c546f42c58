"""The forecasts that every method must beat: what is usual, and what was last seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float
from lamperti.baselines.held_out import ErrorEnsemble
from lamperti.baselines.interface import check_request, training_arrays
from lamperti.data.series import Series
from lamperti.evaluation.climatology import Climatology as Marginal

_ANY = 2**31


@dataclass(frozen=True)
class Climatology:
    """The distribution of the training values, whatever the context; drawn independently at every horizon."""

    def fit(self, series: Sequence[Series], seed: int) -> "FittedClimatology":
        return FittedClimatology(Marginal.of_values(np.concatenate(training_arrays(series))))


@dataclass(frozen=True, eq=False)
class FittedClimatology:
    marginal: Marginal

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        n_channels = len(self.marginal.channels)
        check_request(context, horizon, n_samples, n_channels=n_channels, least=0, furthest=_ANY)
        return self.marginal.samples(1, n_samples, horizon, seed=seed)[0]


@dataclass(frozen=True)
class Persistence:
    """The last value stays, give or take the changes that the training series showed over each horizon."""

    horizon: int = 100

    def fit(self, series: Sequence[Series], seed: int) -> ErrorEnsemble:
        arrays = training_arrays(series, shortest=self.horizon + 1)
        # Nothing is fitted, so that nothing need be held out: every stretch of the training data counts.
        return ErrorEnsemble.measured(_last_value, arrays, 1, self.horizon, np.random.default_rng(seed))


def _last_value(context: Float[np.ndarray, "T P"], horizon: int) -> Float[np.ndarray, "H P"]:
    return np.repeat(context[-1:], horizon, axis=0)
