"""The arrays of a model by name, so that they can be written to a file and put back."""

from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

from lamperti._compile import to_jax

T = TypeVar("T")
Arrays = dict[str, np.ndarray]

_ROUNDING = 1e-6  # of the largest entry of a symmetric matrix


def named(tree: Any, prefix: str) -> dict[str, Any]:
    """Every array (or shape of one) of a tree, by its path below ``prefix``."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(prefix, path): leaf for path, leaf in leaves if is_array(leaf)}


def copied(tree: Any, prefix: str) -> Arrays:
    """The same as NumPy arrays of their own: a training step takes the memory of its state."""
    return {name: np.array(leaf, order="C") for name, leaf in named(tree, prefix).items()}


def filled(blank: T, arrays: Mapping[str, np.ndarray], prefix: str) -> T:
    """``blank`` with each array (or shape of one) exchanged for that of its name."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(blank)
    values = [to_jax(arrays[_name(prefix, path)]) if is_array(leaf) else leaf for path, leaf in leaves]
    return jax.tree.unflatten(structure, values)


def is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _name(prefix: str, path: Any) -> str:
    return f"{prefix}.{jax.tree_util.keystr(path, simple=True, separator='.')}"


def positive_definite(matrices: np.ndarray) -> bool:
    """Whether matrices [..., M, M] are those of precisions, symmetric but for rounding."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    # Rounding in training leaves a little; how much goes with the largest entry, not with each.
    return bool(np.abs(matrices - np.swapaxes(matrices, -1, -2)).max() <= _ROUNDING * np.abs(matrices).max())
