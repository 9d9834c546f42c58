"""The Matern shapes as functions of a squared distance.

Notation   u: squared distance, scaled by 2 nu      s = sqrt(u)
           g12 = e^-s      g32 = (1 + s) e^-s      g52 = (1 + s + u/3) e^-s

Each shape has the one before it as its derivative in u: g52' = -g32/6, g32' = -g12/2. Saying so keeps the
first two derivatives exact where two points coincide; the derivative of sqrt at 0 would make them NaN, and
the usual guard around sqrt would make the curvature 0.
"""

import jax
import jax.numpy as jnp

from lamperti._typing import Array, Float


def g12(u: Float[Array, "*K"]) -> Float[Array, "*K"]:
    """Has a kink at u = 0, where its derivative is taken as 0 (the mean of all directions)."""
    apart = u > 0
    return jnp.where(apart, jnp.exp(-jnp.sqrt(jnp.where(apart, u, 1.0))), 1.0)


@jax.custom_jvp
def g32(u: Float[Array, "*K"]) -> Float[Array, "*K"]:
    s = jnp.sqrt(u)
    return (1.0 + s) * jnp.exp(-s)


@jax.custom_jvp
def g52(u: Float[Array, "*K"]) -> Float[Array, "*K"]:
    s = jnp.sqrt(u)
    return (1.0 + s + u / 3.0) * jnp.exp(-s)


g32.defjvps(lambda du, _, u: -g12(u) / 2.0 * du)
g52.defjvps(lambda du, _, u: -g32(u) / 6.0 * du)
