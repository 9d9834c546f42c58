"""HAVOK: a linear model of Hankel coordinates, driven by the last of them.

Notation   v_1..v_r: whitened principal components of delay windows;  u = v_r: the forcing
Equations  v' = A v + B u over v = (v_1..v_{r-1}), least squares over all series
           forecast with u = 0, its mean; the newest sample of the window read off v

The published method regresses time derivatives of one long series; here it is the step itself, over many series. The
forcing is not known ahead of time, so that the point forecast is that of the unforced model and all spread comes from
held-out errors. The rank r is the one that predicts held-out series best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._errors import ConfigError
from lamperti._typing import Float
from lamperti.baselines.held_out import ErrorEnsemble, hold_out
from lamperti.baselines.interface import training_arrays
from lamperti.data.delay import HankelBasis, hankel, window_length
from lamperti.data.series import Series

_RANKS = (3, 4, 6, 8, 11, 15)


@dataclass(frozen=True)
class Havok:
    """Fields that are None are chosen from the data."""

    horizon: int = 100
    window: int | None = None
    rank: int | None = None

    def fit(self, series: Sequence[Series], seed: int) -> ErrorEnsemble:
        arrays = training_arrays(series, scalar="Havok")
        window = window_length(arrays) if self.window is None else self.window
        ranks = [r for r in _RANKS if r <= window] if self.rank is None else [self.rank]
        if not ranks or min(ranks) < 2 or max(ranks) > window:
            raise ConfigError(
                f"HAVOK needs a rank from 2 to the window of {window} samples, got {self.rank}. Widen the window."
            )
        train, held = hold_out(arrays)
        fits = []
        for rank in ranks:
            rng = np.random.default_rng(seed)  # the same held-out origins for every rank
            model = HavokModel.learn(train, window, rank, rng)
            fits.append(ErrorEnsemble.measured(model.point, held, window, self.horizon, rng))
        # an unstable rank may have overflowed
        return min(fits, key=lambda f: np.inf if not np.isfinite(f.errors).all() else float(np.mean(f.errors**2)))


@dataclass(frozen=True, eq=False)
class HavokModel:
    """The unforced linear model of the Hankel coordinates."""

    basis: HankelBasis
    A: Float[np.ndarray, "q q"]
    B: Float[np.ndarray, " q"]

    @classmethod
    def learn(cls, arrays: list[np.ndarray], window: int, rank: int, rng: np.random.Generator) -> "HavokModel":
        basis = HankelBasis.from_series(arrays, window, rank, rng)
        paths = [basis.project(hankel(a, window)) for a in arrays if len(a) > window]
        now, then = np.concatenate([v[:-1] for v in paths]), np.concatenate([v[1:, :-1] for v in paths])
        weights = np.linalg.lstsq(now, then, rcond=None)[0].T
        return cls(basis, weights[:, :-1], weights[:, -1])

    def point(self, context: Float[np.ndarray, "T P"], horizon: int) -> Float[np.ndarray, "H P"]:
        window = len(self.basis.mean)
        v = self.basis.project(hankel(context[-window:], window))[0]
        readout = self.basis.components[:-1, -1] * self.basis.sd[:-1]
        # What truncation leaves out of the newest sample fades from the forecast as the window moves on.
        v, path = v[:-1], np.empty((horizon, 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(horizon):
                v = self.A @ v
                path[k] = self.basis.mean[-1] + readout @ v
        return path
