"""Arrows of the drift, at states that the data went through, as lines that plotly.js draws in a plane or in space."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lamperti.results import FitResult

_LENGTH = 0.16  # of the longest arrow, in ranges of the axes
_TINY = np.finfo(float).tiny


class Arrows(NamedTuple):
    """Where they start, the mean drift there, and how large its sd is beside it."""

    places: Float[np.ndarray, "N D"]
    drift: Float[np.ndarray, "N D"]
    doubt: Float[np.ndarray, " N"]


def arrows_of(result: FitResult, most: int, seen: Sequence[int] | None = None) -> Arrows:
    """Far from each other, so that none covers another: each state is the one furthest from those before it, in the
    coordinates that are ``seen`` (all of them by default)."""
    states = result.states
    places = states[_spread_out(states if seen is None else states[:, list(seen)], most)]
    mean, sd = result.drift(places)
    size = np.linalg.norm(mean, axis=1)
    return Arrows(places, mean, np.linalg.norm(sd, axis=1) / np.maximum(size, _TINY))


def shafts(
    places: Float[np.ndarray, "N d"], drift: Float[np.ndarray, "N d"], ranges: Float[np.ndarray, " d"]
) -> list[Float[np.ndarray, "5 d"]]:
    """Arrows as polygons, a shaft and two barbs, in two or three dimensions; ``ranges`` of the axes make directions
    look as they are, and lengths go by the root of the speed, so that slow ones can be seen."""
    unit = drift / ranges
    speed = np.linalg.norm(unit, axis=1, keepdims=True)
    length = _LENGTH * np.sqrt(speed / max(float(speed.max()), _TINY))
    along = unit / np.maximum(speed, _TINY) * length
    foot = places / ranges
    tip = foot + along
    across = _across(along)
    left, right = tip - 0.3 * along + 0.15 * across, tip - 0.3 * along - 0.15 * across
    return list(np.stack([foot, tip, left, tip, right], axis=1) * ranges)


def _across(along: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N d"]:
    """At right angles to each arrow and as long as it is; in space, as level as possible."""
    if along.shape[1] == 2:
        return np.stack([-along[:, 1], along[:, 0]], axis=1)
    level = np.stack([-along[:, 1], along[:, 0], np.zeros(len(along))], axis=1)
    upright = np.linalg.norm(level, axis=1) < 1e-9
    level[upright] = np.array([1.0, 0.0, 0.0])
    size = np.linalg.norm(along, axis=1, keepdims=True)
    return level / np.linalg.norm(level, axis=1, keepdims=True) * size


def _spread_out(x: Float[np.ndarray, "K D"], most: int) -> list[int]:
    scaled = (x - x.mean(axis=0)) / (x.std(axis=0) + _TINY)
    picked = [int(np.argmin(np.linalg.norm(scaled, axis=1)))]
    distance = np.linalg.norm(scaled - scaled[picked[0]], axis=1)
    while len(picked) < min(most, len(x)) and distance.max() > 0:
        picked.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(scaled - scaled[picked[-1]], axis=1))
    return picked
