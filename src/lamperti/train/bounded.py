"""A trained model that stays near its data: the region of the data's states, found and put in.

Notation   x: smoothed means of the states of the training data [n, D]      y: its values [n, P]
           R: the largest Mahalanobis distance of a state from their mean
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lamperti._compile import compiled, to_jax
from lamperti._params import realise
from lamperti._typing import Array, Bool, Float
from lamperti.dynamics.region import Region
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.model import LatentSDE, Segment
from lamperti.train.likelihood import state_means

_MARGIN = 1.25  # of the furthest state's distance; new data may go a little further than training data did
_ROOM = 0.25  # of a channel's range, beyond each of its ends
_WORST_CONDITION = 1e-12  # states in a plane keep a little width across it


def bounded(model: LatentSDE, batch: Segment, most_room: Float[np.ndarray, " P"] | float = np.inf) -> LatentSDE:
    """The model with a drift that pulls back outside the region of this data; as it was where there is no such region
    (states that are not finite, or an emission of which the values cannot be read off). ``most_room``: how far beyond
    its largest value a channel may go at most."""
    if not isinstance(model.emission, LinearGaussian):
        return model
    means, valid = (np.asarray(a) for a in _means(model, batch))
    lead = model.encoder.lead
    y, seen = (np.asarray(a)[:, lead:].reshape(valid.size, -1) for a in (batch.y, batch.mask))
    found = region(
        means[valid],
        np.where(seen, y, np.nan)[valid.ravel()],
        np.asarray(model.emission.C),
        np.asarray(model.emission.c),
        most_room,
    )
    return model if found is None else with_region(model, found)


def with_region(model: LatentSDE, found: Region) -> LatentSDE:
    return eqx.tree_at(lambda m: m.dynamics.region, model, found, is_leaf=lambda leaf: leaf is None)


def blank_region(dim: int, n_channels: int) -> Region:
    """Shapes without values."""
    zeros = jnp.zeros
    shapes = ((dim,), (dim, dim), (n_channels, dim), (n_channels,), (n_channels,))
    return eqx.filter_eval_shape(lambda: Region(*(zeros(shape) for shape in shapes)))


def region(
    x: Float[np.ndarray, "n D"],
    y: Float[np.ndarray, "n P"],
    C: Float[np.ndarray, "P D"],
    c: Float[np.ndarray, " P"],
    most_room: Float[np.ndarray, " P"] | float = np.inf,
) -> Region | None:
    """From states and values of the data (NaN where not observed) and the emission y = C x + c."""
    x = x[np.isfinite(x).all(axis=1)]
    if len(x) <= x.shape[1]:
        return None
    centre = x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(x, rowvar=False)))
    if not values[-1] > 0:
        return None
    whitener = vectors.T / np.sqrt(np.maximum(values, _WORST_CONDITION * values[-1]))[:, None]
    furthest = float(np.linalg.norm((x - centre) @ whitener.T, axis=1).max())
    lowest, highest = np.nanmin(y, axis=0), np.nanmax(y, axis=0)
    room = _ROOM * (highest - lowest)
    middle = C @ centre + c
    # The values of the centre lie between those of the data; not less than the room is left on either side.
    low = np.maximum(middle - lowest, 0.0) + room
    high = np.maximum(highest - middle, 0.0) + np.minimum(room, most_room)
    return Region(*(to_jax(a) for a in (centre, whitener / (_MARGIN * furthest), C, low, high)))


@compiled
def _means(model: LatentSDE, batch: Segment) -> tuple[Float[Array, "B T D"], Bool[Array, "B T"]]:
    return state_means(realise(model), batch)
