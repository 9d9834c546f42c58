"""Positive fields of kernels: plain arrays in evaluation, logarithms in training."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from lamperti._errors import ConfigError
from lamperti._params import PositiveParam, positive
from lamperti.interfaces import AbstractKernel

K = TypeVar("K", bound=AbstractKernel)
PositiveLike: TypeAlias = ArrayLike | Sequence[float] | PositiveParam


def as_positive(value: PositiveLike) -> Any:
    """Field converter: numbers become strongly typed floating arrays, parameters in training stay."""
    if isinstance(value, PositiveParam):
        return value
    if isinstance(value, Sequence):
        value = np.asarray(value, dtype=float)
    # An explicit dtype, because a weakly typed scalar would recompile the step that gets it back strong.
    array = jnp.asarray(value, dtype=jnp.result_type(value, float))
    if not isinstance(array, Tracer) and not np.all((np.asarray(array) > 0) & np.isfinite(array)):
        raise ConfigError(
            f"the parameters of a kernel must be positive and finite; got {np.asarray(array)}. "
            "Pass the lengthscale, variance, period or alpha itself, not its logarithm."
        )
    return array


def as_positive_vector(value: PositiveLike) -> Any:
    """As ``as_positive``; a single number becomes [1], which all coordinates share."""
    converted = as_positive(value)
    return converted if isinstance(converted, PositiveParam) else jnp.atleast_1d(converted)


def trainable(kernel: K) -> K:
    """The same kernel with the fields annotated ``Positive[...]`` held as parameters; ``realise`` undoes it.

    Kernels inside kernels are followed. Fields without the annotation stay as they are.
    """
    hints = get_type_hints(type(kernel))
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, AbstractKernel):
            changed[field.name] = trainable(value)
        elif PositiveParam in get_args(hints[field.name]) and not isinstance(value, PositiveParam):
            changed[field.name] = positive(value)
    if not changed:
        return kernel
    return eqx.tree_at(lambda k: [getattr(k, name) for name in changed], kernel, list(changed.values()))
