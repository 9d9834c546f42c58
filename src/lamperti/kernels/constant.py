"""The constant kernel: k(x, z) = variance."""

from typing import final

import equinox as eqx
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float, Scalar
from lamperti.kernels._base import Kernel
from lamperti.kernels._fields import as_positive


@final
class Constant(Kernel):
    """Functions that are one unknown number. Has Gaussian expectations."""

    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return self.variance

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return jnp.broadcast_to(self.variance, (x.shape[0], z.shape[0]))

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return jnp.broadcast_to(self.variance, x.shape[:1])
