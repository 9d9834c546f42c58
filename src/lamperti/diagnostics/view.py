"""From where to look at states: the region that the data fills, and the angle from which it is seen to be open."""

from itertools import product

import numpy as np
from jaxtyping import Float

Limits = list[tuple[float, float]]


def limits(x: Float[np.ndarray, "K D"], margin: float = 0.12) -> Limits:
    """Ends of the axes around the data: neither a path that escapes nor a stray point may squeeze it."""
    low, high = np.quantile(x, 0.002, axis=0), np.quantile(x, 0.998, axis=0)
    extra = margin * (high - low)
    return list(zip((low - extra).tolist(), (high + extra).tolist(), strict=True))


def inside(points: Float[np.ndarray, "K D"], ends: Limits) -> Float[np.ndarray, "L D"]:
    """The points between the ends of all axes that are given."""
    low, high = np.array(ends).T
    shown = points[:, : len(ends)]
    return points[((shown >= low) & (shown <= high)).all(axis=1)]


def open_view(points: Float[np.ndarray, "K 3"], ends: Limits) -> tuple[int, int]:
    """Elevation and azimuth (degrees) from which the points cover most of the picture: seen edge-on they show
    nothing."""
    low, high = np.array(ends).T
    unit = (inside(points, ends) - low) / (high - low) - 0.5

    def covered(view: tuple[int, int]) -> int:
        elevation, azimuth = np.radians(view)
        right = [-np.sin(azimuth), np.cos(azimuth), 0.0]
        up = [-np.sin(elevation) * np.cos(azimuth), -np.sin(elevation) * np.sin(azimuth), np.cos(elevation)]
        pixels = np.floor(25 * unit @ np.array([right, up]).T).astype(int)
        return len(np.unique(pixels, axis=0))

    return max(product((10, 25, 40, 55), range(-90, 90, 15)), key=covered)
