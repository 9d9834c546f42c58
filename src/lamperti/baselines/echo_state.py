"""Echo state network: a random recurrent network with a linear readout, run on its own output.

Notation   x: reservoir [N]   u: input, the standardised series [P]   W, Win: random, from reservoirpy
Equations  x' = (1 - leak) x + leak tanh(W x + Win u);  u' = u + Wout x', by ridge regression on the increments
           forecast: u' is fed back; spread from held-out errors

Leak rate and ridge are those that forecast held-out series best.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lamperti._errors import CapabilityError
from lamperti._typing import Float
from lamperti.baselines.held_out import ErrorEnsemble, hold_out
from lamperti.baselines.interface import training_arrays
from lamperti.data.series import Series

_WARM_UP = 100
_LEAKS = (0.3, 1.0)
_RIDGES = (1e-6, 1e-2)
_RANGE = 10.0  # sds; the fed-back input is held within, so that an unstable readout cannot overflow


@dataclass(frozen=True)
class EchoState:
    """Needs reservoirpy: ``pip install lamperti[baselines]``."""

    horizon: int = 100
    units: int = 300
    spectral_radius: float = 0.9

    def fit(self, series: Sequence[Series], seed: int) -> ErrorEnsemble:
        if find_spec("reservoirpy") is None:
            raise CapabilityError(
                "EchoState needs reservoirpy, which is not installed: pip install lamperti[baselines]. "
                "Simplex() and Autoregression() need nothing."
            )
        arrays = training_arrays(series, shortest=3)
        pooled = np.concatenate(arrays)
        mean, sd = pooled.mean(axis=0), pooled.std(axis=0)
        train, held = hold_out(arrays)
        scaled = [(a - mean) / sd for a in train]
        least = min(_WARM_UP, *(len(a) // 3 for a in held))
        fits = []
        for leak, ridge in product(_LEAKS, _RIDGES):
            rng = np.random.default_rng(seed)  # the same held-out origins for every setting
            network = self._learn(scaled, leak, ridge, mean, sd, seed)
            fits.append(ErrorEnsemble.measured(network.point, held, max(least, 1), self.horizon, rng))
        return min(fits, key=lambda f: float(np.mean(f.errors**2)))

    def _learn(
        self, scaled: list[np.ndarray], leak: float, ridge: float, mean: np.ndarray, sd: np.ndarray, seed: int
    ) -> "Network":
        from reservoirpy.nodes import Reservoir, Ridge

        reservoir = Reservoir(self.units, lr=leak, sr=self.spectral_radius, input_connectivity=1.0, seed=seed)
        reservoir.initialize(scaled[0])
        W, Win = (dense(m) for m in (reservoir.W, reservoir.Win))
        network = Network(W, Win, np.zeros((self.units, len(mean))), np.zeros(len(mean)), leak, mean, sd)
        states, targets = [], []
        for u in scaled:
            skip = min(_WARM_UP, len(u) // 3)
            states.append(network.states(u)[skip:-1])
            targets.append(np.diff(u, axis=0)[skip:])
        readout = Ridge(ridge=ridge * sum(map(len, states)))
        readout.fit(states, targets)
        return Network(W, Win, dense(readout.Wout), dense(readout.bias).ravel(), leak, mean, sd)


def dense(matrix: Any) -> np.ndarray:
    """A matrix of reservoirpy, which may be sparse, as an array."""
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)


@dataclass(frozen=True, eq=False)
class Network:
    W: Float[np.ndarray, "N N"]
    Win: Float[np.ndarray, "N P"]
    Wout: Float[np.ndarray, "N P"]
    bias: Float[np.ndarray, " P"]
    leak: float
    mean: Float[np.ndarray, " P"]
    sd: Float[np.ndarray, " P"]

    def step(self, x: Float[np.ndarray, " N"], u: Float[np.ndarray, " P"]) -> Float[np.ndarray, " N"]:
        return (1 - self.leak) * x + self.leak * np.tanh(self.W @ x + self.Win @ u)

    def states(self, u: Float[np.ndarray, "T P"]) -> Float[np.ndarray, "T N"]:
        """The reservoir after each input, from rest."""
        x, path = np.zeros(len(self.W)), np.empty((len(u), len(self.W)))
        for k, value in enumerate(u):
            path[k] = x = self.step(x, value)
        return path

    def point(self, context: Float[np.ndarray, "T P"], horizon: int) -> Float[np.ndarray, "H P"]:
        scaled = (context[-_WARM_UP:] - self.mean) / self.sd
        x, u, path = self.states(scaled)[-1], scaled[-1], np.empty((horizon, len(self.mean)))
        for k in range(horizon):
            u = np.clip(u + x @ self.Wout + self.bias, -_RANGE, _RANGE)
            path[k] = u
            x = self.step(x, u)
        return self.mean + self.sd * path
