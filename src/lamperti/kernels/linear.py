"""The linear kernel.

Notation   v: variances [D]
           k(x, z) = sum_i v_i x_i z_i
"""

from typing import final

import equinox as eqx
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float, Scalar
from lamperti.kernels._base import Kernel
from lamperti.kernels._fields import as_positive_vector


@final
class Linear(Kernel):
    """Linear functions through the origin; add a ``Constant`` for an offset. Has Gaussian expectations.

    ``variances`` of the slopes are one per coordinate [D], or a single number that all coordinates share.
    """

    variances: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        return jnp.sum(self.variances * x * z)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return (self.variances * x) @ z.T

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return jnp.sum(self.variances * x * x, axis=1)
