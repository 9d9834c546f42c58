"""The Matern kernel of order 1/2.

Notation   r2: squared distance of x / lengthscale and z / lengthscale      r = sqrt(r2)
           k(x, z) = variance exp(-r)
"""

from typing import final

import equinox as eqx

from lamperti._params import Positive
from lamperti._typing import Array, Float
from lamperti.kernels._fields import as_positive, as_positive_vector
from lamperti.kernels._matern import g12
from lamperti.kernels._stationary import Stationary


@final
class Matern12(Stationary):
    """Continuous functions that are nowhere smooth; the gradient of k at x = z is given as 0.

    ``lengthscale`` is one per coordinate [D], or a single number that all coordinates share.
    """

    lengthscale: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2: Float[Array, "*K"]) -> Float[Array, "*K"]:
        return g12(r2)
