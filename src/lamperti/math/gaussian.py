"""Densities of small Gaussians given by mean and Cholesky factor."""

import jax.numpy as jnp

from lamperti._typing import Array, Float
from lamperti.math import small

LOG_2PI = 1.8378770664093453


def log_density(x: Float[Array, "*K D"], mean: Float[Array, " D"], chol: Float[Array, "D D"]) -> Float[Array, "*K"]:
    """log N(x; mean, chol chol')."""
    whitened = small.matvec(small.lower_inverse(chol), x - mean)
    return -0.5 * jnp.sum(whitened**2 + LOG_2PI, axis=-1) - jnp.sum(jnp.log(small.diagonal(chol)))
