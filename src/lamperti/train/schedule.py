"""How rates change while training goes on."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from lamperti.train.step import Rates

# The second half of the budget anneals: gradient noise of the first half would otherwise stay in the drift.
_ANNEAL_FROM = 0.5
_LAST_LEARNING = 0.05
# 0.4 x 0.05: the last posterior of the drift averages over some 50 batches. Free-running paths show the noise of fewer.
_LAST_RHO = 0.05


class Schedule(NamedTuple):
    """A large natural step at the start, then constant rates, then a cosine down over the second half."""

    rho: float
    start_rho: float
    start_iterations: int

    def at(self, iteration: int, spent: float, slowdown: float = 1.0) -> Rates:
        """Rates of an iteration; ``spent`` is the share of the budget used, of iterations or of time."""
        along = np.clip((spent - _ANNEAL_FROM) / (1.0 - _ANNEAL_FROM), 0.0, 1.0)
        fall = 0.5 * (1.0 + np.cos(np.pi * along))
        rho = self.start_rho if iteration < self.start_iterations else self.rho * (_LAST_RHO + (1 - _LAST_RHO) * fall)
        learning = slowdown * (_LAST_LEARNING + (1 - _LAST_LEARNING) * fall)
        # An explicit dtype: a weakly typed scalar would compile the step anew when its type changes.
        return Rates(jnp.asarray(rho, dtype=float), jnp.asarray(learning, dtype=float))
