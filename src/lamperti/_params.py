"""Constrained parameters.

A module that is being trained holds ``PositiveParam`` leaves (the logarithm); ``realise`` replaces them by their
values, once, at the loss boundary. Code inside the loss therefore only ever sees plain arrays.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Float

_T = TypeVar("_T")


class PositiveParam(eqx.Module):
    """A positive array stored as its logarithm."""

    raw: Float[Array, "..."]

    @property
    def value(self) -> Float[Array, "..."]:
        return jnp.exp(self.raw)


if TYPE_CHECKING:
    Positive = Annotated[_T, "positive"]
else:

    class Positive:
        """``Positive[Float[Array, "D"]]``: that array, or the parameter that stands for it in training."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Union[PositiveParam, item]  # noqa: UP007 - built at run time


def positive(value: Any) -> Any:
    """Make a trainable positive parameter with this value."""
    return PositiveParam(jnp.log(jnp.asarray(value, dtype=float)))


def _is_param(leaf: Any) -> bool:
    return isinstance(leaf, PositiveParam)


def realise(tree: Any) -> Any:
    """Replace every constrained parameter by its value."""
    return jax.tree.map(lambda p: p.value if _is_param(p) else p, tree, is_leaf=_is_param)
