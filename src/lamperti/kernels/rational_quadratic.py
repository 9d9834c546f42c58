"""The rational-quadratic kernel.

Notation   r2: squared distance of x / lengthscale and z / lengthscale
           k(x, z) = variance (1 + r2 / (2 alpha))^-alpha
"""

from typing import final

import equinox as eqx
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float
from lamperti.kernels._fields import as_positive, as_positive_vector
from lamperti.kernels._stationary import Stationary


@final
class RationalQuadratic(Stationary):
    """Smooth functions of many lengthscales at once; tends to the squared exponential as ``alpha`` grows.

    ``lengthscale`` is one per coordinate [D], or a single number that all coordinates share.
    """

    lengthscale: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)
    alpha: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2: Float[Array, "*K"]) -> Float[Array, "*K"]:
        # log1p keeps the digits that (1 + small)^-alpha loses when alpha is large.
        return jnp.exp(-self.alpha * jnp.log1p(r2 / (2.0 * self.alpha)))
