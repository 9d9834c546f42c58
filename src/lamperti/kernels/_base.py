"""The base of all kernels, and the four ways of making new kernels from old ones.

Notation   x, z: two points [D], or two sets of points [N, D] and [M, D]

A kernel says ``__call__`` for one pair of points; matrices follow by ``vmap``. ``gram`` and ``diagonal`` are
the only concrete methods that a subclass may replace, where that is measurably faster; the contract check
``lamperti.testing.check_kernel`` asks that they still agree with ``__call__``.
"""

from typing import Any, final

import equinox as eqx
import jax
import numpy as np

from lamperti._params import Positive, PositiveParam
from lamperti._typing import Array, Float, Scalar
from lamperti.interfaces import AbstractKernel
from lamperti.kernels._fields import as_positive


class Kernel(AbstractKernel):
    """A covariance function with `+` (sum) and `*` (product, or scaling by a positive number)."""

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return jax.vmap(lambda a: jax.vmap(lambda b: self(a, b))(z))(x)

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return jax.vmap(lambda a: self(a, a))(x)

    def __add__(self, other: AbstractKernel) -> "Sum":
        if not isinstance(other, AbstractKernel):
            return NotImplemented
        return Sum(self, other)

    def __mul__(self, other: Any) -> "Product | Scaled":
        if isinstance(other, AbstractKernel):
            return Product(self, other)
        if isinstance(other, float | int | np.number | np.ndarray | jax.Array | PositiveParam):
            return Scaled(self, other)
        return NotImplemented

    def __rmul__(self, other: Any) -> "Product | Scaled":
        return self * other


@final
class Sum(Kernel):
    """k(x, z) = left(x, z) + right(x, z): independent functions added."""

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return self.left(x, z) + self.right(x, z)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return self.left.gram(x, z) + self.right.gram(x, z)

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.left.diagonal(x) + self.right.diagonal(x)


@final
class Product(Kernel):
    """k(x, z) = left(x, z) * right(x, z): functions that vary where both factors vary."""

    left: AbstractKernel
    right: AbstractKernel

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return self.left(x, z) * self.right(x, z)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return self.left.gram(x, z) * self.right.gram(x, z)

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.left.diagonal(x) * self.right.diagonal(x)


@final
class Scaled(Kernel):
    """k(x, z) = variance * kernel(x, z)."""

    kernel: AbstractKernel
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive)

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return self.variance * self.kernel(x, z)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return self.variance * self.kernel.gram(x, z)

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.variance * self.kernel.diagonal(x)


@final
class Mapped(Kernel):
    """k(x, z) = kernel(axes x, axes z): the same functions in other coordinates."""

    kernel: AbstractKernel
    axes: Float[Array, "D D"]

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return self.kernel(self.axes @ x, self.axes @ z)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return self.kernel.gram(x @ self.axes.T, z @ self.axes.T)

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.kernel.diagonal(x @ self.axes.T)
