"""The region that the data went through, and the pull back to it from outside.

Notation   c: centre [D]      A: |A (x - c)| <= 1 is an ellipsoid that holds the states of the data [D, D]
           n_p: rows, one per observed channel [P, D]; -low_p <= n_p (x - c) <= high_p holds its values
           rho(x): how many times further out x lies than the border on the ray from c through x
           pi(x) = c + (x - c) / max(rho(x), 1): x itself inside, the border on its ray outside
Equations  docs/theory.md (28)

A drift that was learned from data says nothing of places where no data was, and what it says there may lead ever
further away. Outside the region the state moves as it does at the border, and what it is beyond it decays: paths of any
length stay near the data, and inside nothing changes.
"""

import equinox as eqx
import jax.numpy as jnp

from lamperti._typing import Array, Float, Scalar
from lamperti.math import small

PULL = 0.632  # of what lies outside, by which it shrinks in one step: e-fold


class Region(eqx.Module):
    """An ellipsoid of states, cut by the range of every observed channel."""

    centre: Float[Array, " D"]
    axes: Float[Array, "D D"]
    rows: Float[Array, "P D"]
    low: Float[Array, " P"]
    high: Float[Array, " P"]

    def gauge(self, x: Float[Array, "*K D"]) -> Float[Array, "*K"]:
        """rho squared: 1 on the border, 0 at the centre."""
        away = x - self.centre
        round_part = jnp.sum(small.matvec(self.axes, away) ** 2, axis=-1)
        across = away @ self.rows.T
        flat_part = jnp.max(jnp.where(across > 0, across / self.high, across / self.low) ** 2, axis=-1)
        return jnp.maximum(round_part, flat_part)

    def nearest(self, x: Float[Array, "*K D"]) -> Float[Array, "*K D"]:
        """pi(x)."""
        rho2 = self.gauge(x)
        outside = rho2 > 1.0
        # The root of one where it is not used: its derivative at the centre would not be finite.
        shrink = 1.0 / jnp.sqrt(jnp.where(outside, rho2, 1.0))
        return jnp.where(outside[..., None], self.centre + shrink[..., None] * (x - self.centre), x)


def pulled(region: Region | None, x: Float[Array, "*K D"]) -> tuple[Float[Array, "*K D"], Float[Array, "*K D"]]:
    """Where the drift is to be looked up, and what x is beyond that."""
    if region is None:
        return x, jnp.zeros_like(x)
    border = region.nearest(x)
    return border, x - border


def shrunk(beyond: Float[Array, "*K D"], dt: Scalar) -> Float[Array, "*K D"]:
    """What is left of it after a step."""
    return (1.0 - PULL) ** dt * beyond
