"""Where training stands: everything that it changes, as one value that can be written down and taken up again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

from lamperti.model import LatentSDE
from lamperti.train.arrays import Arrays, copied, filled, named
from lamperti.train.history import History, pack, pack_history, unpack, unpack_history
from lamperti.train.step import TrainState, optimiser_state

_NUMBERS = ("iteration", "slowdown", "refused_in_a_row", "refused", "halvings", "seconds")
_KEY = "key"


@dataclass
class Position:
    """All that training changes. The rest of a run follows from it bit by bit, unless the clock ends or anneals it."""

    state: TrainState
    best: LatentSDE
    rng: np.random.Generator  # draws the segments
    history: History
    iteration: int = 0  # the last one that was done
    slowdown: float = 1.0
    refused_in_a_row: int = 0
    refused: int = 0
    halvings: int = 0
    seconds: float = 0.0  # of training, without compiling

    def export(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays and JSON, from which `restore` makes the same position."""
        arrays = copied(self.state.model, "model") | copied(self.best, "best")
        arrays |= copied(self.state.opt_state, "optimiser")
        arrays[_KEY] = np.array(jax.random.key_data(self.state.key))
        content = {name: pack(getattr(self, name)) for name in _NUMBERS}
        return arrays, content | {"rng": self.rng.bit_generator.state, "history": pack_history(self.history)}


def restore(
    arrays: Mapping[str, np.ndarray],
    content: Mapping[str, Any],
    blank: LatentSDE,
    optimiser: optax.GradientTransformation,
) -> Position:
    """The position that `Position.export` gave. ``blank``: a model of the same structure; its values do not matter.

    Raises ValueError, KeyError or TypeError when they do not belong together.
    """
    moments = eqx.filter_eval_shape(lambda model: optimiser_state(model, optimiser), blank)
    expected = named(blank, "model") | named(blank, "best") | named(moments, "optimiser")
    # commits of versions in which kernels saw the coordinates themselves
    axes = {f"{place}.dynamics.axes": np.eye(blank.latent_dim) for place in ("model", "best")}
    arrays = axes | dict(arrays)
    if set(arrays) != {*expected, _KEY}:
        raise ValueError(f"the array {sorted(set(arrays) ^ {*expected, _KEY})[0]!r} is missing or unknown")
    for name, leaf in expected.items():
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype or not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} does not belong to this model, or is not finite")
    rng = np.random.default_rng()
    rng.bit_generator.state = content["rng"]
    state = TrainState(
        filled(blank, arrays, "model"),
        filled(moments, arrays, "optimiser"),
        jax.random.wrap_key_data(jax.numpy.asarray(arrays[_KEY])),
    )
    numbers = {name: unpack(content[name]) for name in _NUMBERS}
    return Position(state, filled(blank, arrays, "best"), rng, unpack_history(content["history"]), **numbers)
