"""The Matern kernel of order 5/2.

Notation   r2: squared distance of x / lengthscale and z / lengthscale      r = sqrt(r2)
           k(x, z) = variance (1 + sqrt(5) r + 5 r2 / 3) exp(-sqrt(5) r)
"""

from typing import final

import equinox as eqx

from lamperti._params import Positive
from lamperti._typing import Array, Float
from lamperti.kernels._fields import as_positive, as_positive_vector
from lamperti.kernels._matern import g52
from lamperti.kernels._stationary import Stationary


@final
class Matern52(Stationary):
    """Functions with two derivatives.

    ``lengthscale`` is one per coordinate [D], or a single number that all coordinates share.
    """

    lengthscale: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2: Float[Array, "*K"]) -> Float[Array, "*K"]:
        return g52(5.0 * r2)
