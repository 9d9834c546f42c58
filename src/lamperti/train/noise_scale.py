"""How strong the noise of a linear model is, by its forecasts at several horizons.

Notation   k: factor on all variances of the motion's noise

The variance of what a regression leaves is right for a normal law. Innovations of recordings have heavy tails: a few
jumps make the variance, and forecasts a few samples ahead are too vague. Far ahead they add up to what the variance
says. The factor is the one with the least CRPS over all horizons, each in units of what it is with no factor.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lamperti._compile import compiled
from lamperti._typing import PRNGKeyArray, Scalar
from lamperti.model import LatentSDE, Segment
from lamperti.train.fitted import Fitted
from lamperti.train.forecast_fit import Scores, forecast_scores

_FACTORS = 2.0 ** np.arange(-6, 2.5, 0.5)
_ENOUGH = 6  # segments, from which on the data a model was fitted to can tell of its errors
_PATHS = 64
_NOTICED = 0.01  # of the CRPS


def rescale_noise(model: LatentSDE, batch: Segment, *, seed: int) -> LatentSDE:
    """The model with the noise that forecasts this batch best; as it was where there are few segments, or no gain."""
    if len(batch.y) < _ENOUGH:
        return model
    key = jax.random.key(seed)
    usual = np.asarray(_score(model, batch, jnp.asarray(0.0), key=key).by_horizon())
    known = np.isfinite(usual) & (usual > 0)

    def share(i: int) -> float:
        """Of the CRPS with no factor."""
        crps = np.asarray(_score(model, batch, jnp.asarray(np.log(_FACTORS[i])), key=key).by_horizon())
        mean = float(np.mean(crps[known] / usual[known]))
        return mean if np.isfinite(mean) else np.inf

    start = int(np.argmin(np.abs(np.log(_FACTORS))))
    # Down first: innovations with heavy tails are what there is to mend. The score has one valley.
    best, least = start, 1.0
    for direction in (-1, 1):
        for i in range(start + direction, len(_FACTORS) if direction > 0 else -1, direction):
            found = share(i)
            if found >= least:
                break
            best, least = i, found
        if best != start:
            break
    return _scaled(model, jnp.asarray(np.log(_FACTORS[best]))) if least < 1.0 - _NOTICED else model


@compiled
def _score(model: LatentSDE, batch: Segment, log_k: Scalar, *, key: PRNGKeyArray) -> Scores:
    values = Fitted.of(model)
    return forecast_scores(values._replace(g=values.g + log_k), model, batch, _PATHS, key=key)


@compiled
def _scaled(model: LatentSDE, log_k: Scalar) -> LatentSDE:
    values = Fitted.of(model)
    return values._replace(g=values.g + log_k).settled_in(model)
