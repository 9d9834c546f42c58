"""The squared-exponential kernel.

Notation   r2: squared distance of x / lengthscale and z / lengthscale
           k(x, z) = variance exp(-r2 / 2)
"""

from typing import final

import equinox as eqx
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float
from lamperti.kernels._fields import as_positive, as_positive_vector
from lamperti.kernels._stationary import Stationary


@final
class SquaredExponential(Stationary):
    """Smooth functions; has closed-form Gaussian expectations.

    ``lengthscale`` is one per coordinate [D], or a single number that all coordinates share.
    """

    lengthscale: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2: Float[Array, "*K"]) -> Float[Array, "*K"]:
        return jnp.exp(-0.5 * r2)
