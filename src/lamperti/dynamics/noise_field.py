"""Noise of the motion that depends on the state: g_i(x) = g_i exp(s_i(x)).

Notation   s_i(x) = B tanh(k(x, Z) L^-T a_i / B): log of the noise at x over the constant g_i, never beyond B
           a: weights in the whitened basis of the drift [D, M]      field: L^-T a [D, M]
Equations  docs/theory.md (29)

The drift's kernel and inducing inputs serve the noise too, so that it varies no faster over the states than the drift
may, and both need one Gram matrix.
"""

import jax.numpy as jnp

from lamperti._typing import Array, Float

FURTHEST = 5.0  # B: a factor of about 150 in the variance, to either side


def log_ratio(grams: list[Float[Array, "N M"]], field: Float[Array, "D M"]) -> Float[Array, "N D"]:
    """s at N points, by the Gram matrix k(x, Z) of the kernel that all coordinates share, or of each one's own."""
    if len(grams) == 1:
        raw = grams[0] @ field.T
    else:
        raw = jnp.stack([g @ one for g, one in zip(grams, field, strict=True)], axis=-1)
    return FURTHEST * jnp.tanh(raw / FURTHEST)
