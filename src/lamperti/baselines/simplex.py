"""Simplex projection: what followed the moments of the past that looked most like the present.

Notation   z: delay vector of d samples a lag apart, the newest last [d]      k neighbours among the training series
Equations  w_i = exp(-|z - z_i| / median_j |z - z_j|), normalised: the probability that a member is the future of z_i

Sugihara and May scale the weights by the nearest distance, for a mean of d + 1 neighbours. In an ensemble that lets one
lucky neighbour speak for all (40 % coverage of 90 % intervals on a noisy oscillation), hence the median.
Lag and dimension come from the data (mutual information; prediction error), k from the CRPS of held-out forecasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from lamperti._typing import Float, Int
from lamperti.baselines.held_out import hold_out, origins
from lamperti.baselines.interface import check_request, training_arrays
from lamperti.data.correlation import first_minimum_lag
from lamperti.data.delay import suggest_delays
from lamperti.data.series import Series
from lamperti.evaluation.scores import crps

_N_VALIDATION = 100
_LEAST = 1e-12  # of the largest distance: the scale of weights
_N_MEMBERS = 50


@dataclass(frozen=True)
class Simplex:
    """Analogue ensemble in delay space. Fields that are None are chosen from the data."""

    horizon: int = 100
    lag: int | None = None
    dimension: int | None = None
    neighbours: int | None = None

    def fit(self, series: Sequence[Series], seed: int) -> "FittedSimplex":
        arrays = training_arrays(series, scalar="Simplex", shortest=self.horizon + 2)
        lag = first_minimum_lag(arrays).lag if self.lag is None else self.lag
        dimension = suggest_delays(arrays, lag) if self.dimension is None else self.dimension
        if self.neighbours is not None:
            return self._library(arrays, lag, dimension, self.neighbours)
        train, held = hold_out(arrays)
        rng = np.random.default_rng(seed)
        trial = self._library(train, lag, dimension, dimension + 1)
        pairs = origins(held, trial.span, self.horizon, rng, most=_N_VALIDATION)
        truth = np.stack([future for _, future in pairs])
        best = min(
            (k for k in sorted({dimension + 1, 10, 25, 60}) if k <= len(trial.points)),
            key=lambda k: _score(replace(trial, neighbours=k), pairs, truth, self.horizon),
        )
        return self._library(arrays, lag, dimension, best)

    def _library(self, arrays: list[np.ndarray], lag: int, dimension: int, neighbours: int) -> "FittedSimplex":
        span = (dimension - 1) * lag + 1
        # The newest sample of a library vector is followed by the whole horizon within its own series.
        ends, offset = [], 0
        for a in arrays:
            ends.append(offset + np.arange(span - 1, len(a) - self.horizon))
            offset += len(a)
        values, newest = np.concatenate(arrays)[:, 0], np.concatenate(ends)
        points = _delays(values, newest, lag, dimension)
        return FittedSimplex(values, newest, points, KDTree(points), lag, min(neighbours, len(points)), self.horizon)


@dataclass(frozen=True, eq=False)
class FittedSimplex:
    values: Float[np.ndarray, " N"]
    newest: Int[np.ndarray, " L"]
    """Places in ``values`` of the newest sample of each library vector."""
    points: Float[np.ndarray, "L d"]
    tree: KDTree
    lag: int
    neighbours: int
    horizon: int

    @property
    def span(self) -> int:
        """Samples of context that are used."""
        return (self.points.shape[1] - 1) * self.lag + 1

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        check_request(context, horizon, n_samples, n_channels=1, least=self.span, furthest=self.horizon)
        z = _delays(context[:, 0], np.array([len(context) - 1]), self.lag, self.points.shape[1])
        distance, found = (np.atleast_1d(a[0]) for a in self.tree.query(z, k=self.neighbours))
        # zero where the present was seen many times
        scale = max(float(np.median(distance)), _LEAST * float(distance.max()), np.finfo(float).tiny)
        weights = np.exp(-distance / scale)
        rng = np.random.default_rng(seed)
        picked = self.newest[rng.choice(found, n_samples, p=weights / weights.sum())]
        return self.values[picked[:, None] + np.arange(1, horizon + 1)][..., None]


def _delays(
    values: Float[np.ndarray, " N"], newest: Int[np.ndarray, " L"], lag: int, dimension: int
) -> Float[np.ndarray, "L d"]:
    return values[newest[:, None] - lag * np.arange(dimension - 1, -1, -1)]


def _score(fitted: FittedSimplex, pairs: list, truth: Float[np.ndarray, "R H 1"], horizon: int) -> float:
    samples = np.stack([fitted.forecast(c, horizon, _N_MEMBERS, seed=i) for i, (c, _) in enumerate(pairs)])
    return float(crps(samples, truth).mean())
