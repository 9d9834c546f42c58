"""p(x_1): a Gaussian fitted in closed form to the first states of the sampled paths."""

import equinox as eqx
import jax.numpy as jnp

from lamperti._typing import Array, Float, Scalar
from lamperti.interfaces import Gaussian
from lamperti.math import small

_RIDGE = 1e-6


class InitialState(eqx.Module):
    """Running averages of E[x_1] and E[x_1 x_1']."""

    mean: Float[Array, " D"]
    second: Float[Array, "D D"]

    def gaussian(self) -> Gaussian:
        cov = self.second - self.mean[:, None] * self.mean[None, :]
        return Gaussian(self.mean, small.cholesky(small.symmetrise(cov) + _RIDGE * jnp.eye(self.mean.shape[0])))

    def updated(self, x: Float[Array, "K D"], rate: Scalar) -> "InitialState":
        """Blend in more first states."""
        return InitialState(
            (1 - rate) * self.mean + rate * jnp.mean(x, axis=0),
            (1 - rate) * self.second + rate * (x.T @ x) / x.shape[0],
        )


def standard_initial(dim: int) -> InitialState:
    """N(0, I), right for whitened coordinates."""
    return InitialState(jnp.zeros(dim), jnp.eye(dim))
