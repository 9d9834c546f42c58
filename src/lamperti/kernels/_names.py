"""Kernels by name, for configuration files and the command line."""

import difflib
import math
from collections.abc import Callable
from functools import reduce

import jax.numpy as jnp

from lamperti._errors import ConfigError
from lamperti._typing import Array, Float
from lamperti.kernels._base import Kernel
from lamperti.kernels.constant import Constant
from lamperti.kernels.linear import Linear
from lamperti.kernels.matern12 import Matern12
from lamperti.kernels.matern32 import Matern32
from lamperti.kernels.matern52 import Matern52
from lamperti.kernels.rational_quadratic import RationalQuadratic
from lamperti.kernels.squared_exponential import SquaredExponential

# Each has variance 1 and depends on x through x / lengthscale only. Periodic is left out: it needs a period.
_BUILDERS: dict[str, Callable[[Float[Array, " D"]], Kernel]] = {
    "se": SquaredExponential,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "rq": RationalQuadratic,
    "linear": lambda lengthscale: Linear(lengthscale**-2.0),
    "constant": lambda lengthscale: Constant(jnp.ones((), lengthscale.dtype)),
}

KERNEL_NAMES: tuple[str, ...] = tuple(_BUILDERS)


def by_name(name: str, dim: int, lengthscale: float) -> Kernel:
    """Build a kernel of unit variance from its name.

    ``name`` is one of ``KERNEL_NAMES``, or several joined by ``+`` and ``*`` (which binds tighter), as in
    ``"se + linear"``; capitals and blanks do not matter. ``dim`` is the number of coordinates, and
    ``lengthscale``, in the units of x, is given to every one of them.

    Returns the kernel, with plain arrays; see ``trainable``. Raises ConfigError for an unknown name.

    >>> type(by_name("matern32 + linear", dim=2, lengthscale=1.5)).__name__
    'Sum'
    """
    if dim < 1:
        raise ConfigError(f"a kernel needs dim >= 1; got {dim}.")
    if not (lengthscale > 0 and math.isfinite(lengthscale)):
        raise ConfigError(f"lengthscale must be positive and finite; got {lengthscale:g}.")
    lengthscales = jnp.full(dim, lengthscale, dtype=float)
    terms = [
        reduce(lambda a, b: a * b, [_builder(part.strip(), name)(lengthscales) for part in term.split("*")])
        for term in name.lower().split("+")
    ]
    return reduce(lambda a, b: a + b, terms)


def _builder(part: str, whole: str) -> Callable[[Float[Array, " D"]], Kernel]:
    if part in _BUILDERS:
        return _BUILDERS[part]
    close = difflib.get_close_matches(part, KERNEL_NAMES, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    where = "" if part == whole.strip().lower() else f" in '{whole}'"
    raise ConfigError(
        f"unknown kernel '{part}'{where}.{hint} "
        f"Choose from {', '.join(KERNEL_NAMES)}, or join some with + and *, as in 'se+linear'."
    )
