"""The linear part that both encoders share: Hankel windows, their principal components, and the linear skip.

Notation   W: window length      window: y_{k-W+1}, ..., y_k, oldest first, channels fastest [W P]
           score: whitened principal components of the window [K]      u: the encoder's own coordinates [D]
           x = gauge u: latent coordinates (the gauge is moved by training, see train/gauge.py)
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float
from lamperti.interfaces import Encoding, Potentials
from lamperti.math import small

# An encoder that has seen less than this share of its window says nothing.
_ENOUGH = 0.5
_LOG_SD_RANGE = (-7.0, 3.0)


class HankelSkip(eqx.Module):
    """Projection of each causal window on the principal components of the data, and a linear map to the state.

    Only ``weight`` is trained; the principal components are the data's, and the gauge is moved by training."""

    offset: Float[Array, " WP"]
    projection: Float[Array, "K WP"]
    weight: Float[Array, "D K"]
    gauge: Float[Array, "D D"]
    window: int = eqx.field(static=True)

    def windows(self, a: Array) -> Array:
        """All windows of a [L, P] array: [T, W P] with T = L - W + 1."""
        n = a.shape[0] - self.window + 1
        index = jnp.arange(n)[:, None] + jnp.arange(self.window)
        return a[index].reshape(n, -1)

    def scores(self, y: Float[Array, "L P"]) -> Float[Array, "T K"]:
        offset, projection = jax.lax.stop_gradient((self.offset, self.projection))
        return (self.windows(y) - offset) @ projection.T

    def seen(self, mask: Bool[Array, "L P"]) -> Float[Array, "T W"]:
        """Share of channels observed at each sample of each window."""
        return self.windows(jnp.mean(mask.astype(float), axis=1, keepdims=True))

    def encoding(
        self,
        score: Float[Array, "T K"],
        seen: Float[Array, "T W"],
        correction: Float[Array, "T D"],
        log_sd: Float[Array, "T D"],
    ) -> Encoding:
        """Skip plus the network's correction as potentials on x; silent where too little was seen."""
        u = score @ self.weight.T + correction
        precision = jnp.exp(-2.0 * jnp.clip(log_sd, *_LOG_SD_RANGE))
        known = jnp.mean(seen, axis=1) >= _ENOUGH
        gauge = jax.lax.stop_gradient(self.gauge)
        back = _inverse(gauge)
        Lam = jnp.einsum("ki,tk,kj->tij", back, precision, back)
        mean = u @ gauge.T
        potentials = Potentials(Lam, jnp.einsum("tij,tj->ti", Lam, mean))
        return Encoding(mean, potentials.masked(known), known)


def _inverse(a: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """Inverse of a small square matrix through its normal equations, so that no solver is called."""
    return small.matmul(small.inverse_pd(small.matmul(small.transpose(a), a))[0], small.transpose(a))
