"""The periodic kernel, a product over coordinates.

Notation   p: period [D]      l: lengthscale [D]
           k(x, z) = variance prod_i exp(-2 sin(pi (x_i - z_i) / p_i)^2 / l_i^2)

Coordinate i is wound on a circle of radius 1 / l_i; k is the unit squared exponential of the points so
placed, since the squared chord is 4 sin(pi (x_i - z_i) / p_i)^2 / l_i^2.
"""

from typing import final

import equinox as eqx
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float, Scalar
from lamperti.kernels._base import Kernel
from lamperti.kernels._fields import as_positive, as_positive_vector
from lamperti.kernels._stationary import squared_distances


@final
class Periodic(Kernel):
    """Functions that repeat along every coordinate.

    ``period`` and ``lengthscale`` are one per coordinate [D], or a single number that all coordinates share;
    the lengthscale is measured on the circle of radius 1, not in the units of x.
    """

    period: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    lengthscale: Positive[Float[Array, " D"]] = eqx.field(converter=as_positive_vector)
    variance: Positive[Float[Array, ""]] = eqx.field(converter=as_positive, default=1.0)

    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar:
        half_chord = jnp.sin(jnp.pi * (x - z) / self.period) / self.lengthscale
        return self.variance * jnp.exp(-2.0 * half_chord @ half_chord)

    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        return self.variance * jnp.exp(-0.5 * squared_distances(self._wind(x), self._wind(z)))

    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        return jnp.broadcast_to(self.variance, x.shape[:1])

    def _wind(self, x: Float[Array, "N D"]) -> Float[Array, "N 2*D"]:
        angle = 2.0 * jnp.pi * x / self.period
        return jnp.concatenate([jnp.cos(angle) / self.lengthscale, jnp.sin(angle) / self.lengthscale], axis=1)
