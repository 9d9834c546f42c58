"""Forecasts at the times of what was observed, which need not be those of their steps.

Notation   p: time of an observation in steps after the origin; h: the step nearest to it; u = |p - h|, at most a half
           m: mean observation of a path's state; between two steps it moves as a Brownian bridge does:
           m(p) = (1 - u) m(h) + u m(h ± 1) + sqrt(u (1 - u)) e, with e the effect of one step's diffusion
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from lamperti.data.series import Series
from lamperti.forecasting import emit
from lamperti.results import FitResult, Forecast

_ON_A_STEP = 1e-6


class Observed(NamedTuple):
    """What was observed nearest to each step of a forecast, NaN where nothing was, and how many steps later."""

    values: Float[np.ndarray, "H P"]
    late: Float[np.ndarray, "H P"]


def nearest(truth: Series, origin: float, step: float, horizon: int) -> Observed:
    """Each value at the step that is nearest to it; of several at one step, the nearest."""
    place = (truth.times - origin) / step
    step_of = np.round(place).astype(int)
    late = place - step_of
    found = Observed(*(np.full((horizon, truth.n_channels), np.nan) for _ in range(2)))
    ahead = (step_of >= 1) & (step_of <= horizon)
    for p in range(truth.n_channels):
        rows = np.flatnonzero(ahead & truth.mask[:, p])
        rows = rows[np.argsort(-np.abs(late[rows]), kind="stable")]
        for k in rows:  # the nearest comes last, and stays
            found.values[step_of[k] - 1, p], found.late[step_of[k] - 1, p] = truth.values[k, p], late[k]
    return found


def samples_at(
    result: FitResult, forecast: Forecast, late: Float[np.ndarray, "H P"], seed: int
) -> Float[np.ndarray, "S H P"]:
    """The sampled paths, each step moved by ``late`` steps; observation noise stays as it was drawn."""
    if not (np.abs(late) > _ON_A_STEP).any():
        return forecast.samples
    key_noise, key_bridge = jax.random.split(jax.random.key(seed))
    x = forecast.states
    g = result.diffusion(x)[0] * result.step  # variance of a step
    kicked = x + np.sqrt(g) * np.asarray(jax.random.normal(key_bridge, x.shape))
    mean, moved = (
        result.scaler.unscale_values(np.asarray(emit(result.model, states, noise=False, key=key_noise)))
        for states in (x, kicked)
    )
    late = np.nan_to_num(late)
    u = np.abs(late)
    bridge = np.sqrt(u * (1.0 - u)) * (moved - mean)
    return forecast.samples + u * (_neighbours(mean, late > 0) - mean) + bridge


def _neighbours(mean: Float[np.ndarray, "S H P"], later: np.ndarray) -> Float[np.ndarray, "S H P"]:
    """The step after or before each; beyond the ends all paths go on as they did on average."""
    if mean.shape[1] < 2:
        return mean
    motion = np.diff(mean, axis=1).mean(axis=0)
    before = np.concatenate([mean[:, :1] - motion[0], mean[:, :-1]], axis=1)
    after = np.concatenate([mean[:, 1:], mean[:, -1:] + motion[-1]], axis=1)
    return np.where(later, after, before)
