"""The learned drift and diffusion along lines through the middle of the data."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lamperti.results import FitResult


@dataclass(frozen=True, eq=False)
class Slice:
    """Drift and diffusion along one latent coordinate, the others held at the centre of the states; per unit of the
    user's time, with the sd of their posterior."""

    axis: int
    x: Float[np.ndarray, " K"]
    drift: Float[np.ndarray, "K D"]
    drift_sd: Float[np.ndarray, "K D"]
    diffusion: Float[np.ndarray, "K D"]
    diffusion_sd: Float[np.ndarray, "K D"]
    low: float
    """The middle 90 % of the states are between low and high."""
    high: float


def slices(result: FitResult, n_points: int = 81) -> tuple[Slice, ...]:
    """One slice a latent coordinate, over the range of the states."""
    states = result.states
    centre = np.median(states, axis=0)
    low, high = states.min(axis=0), states.max(axis=0)
    middle = np.quantile(states, [0.05, 0.95], axis=0)
    found = []
    for axis in range(states.shape[1]):
        x = np.linspace(low[axis], high[axis], n_points)
        points = np.tile(centre, (n_points, 1))
        points[:, axis] = x
        moments = (*result.drift(points), *result.diffusion(points))
        found.append(Slice(axis, x, *moments, float(middle[0, axis]), float(middle[1, axis])))
    return tuple(found)
