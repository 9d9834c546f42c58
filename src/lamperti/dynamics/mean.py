"""The mean function of the drift's prior: B x + c."""

import equinox as eqx
import jax.numpy as jnp

from lamperti._typing import Array, Float


class LinearMean(eqx.Module):
    """Where the Gaussian process knows nothing, the drift is this linear field (zero for the paper's prior).

    Training moves it unless it is ``fixed``."""

    weight: Float[Array, "D D"]
    bias: Float[Array, " D"]
    fixed: bool = eqx.field(static=True, default=False)

    def __call__(self, x: Float[Array, "*K D"]) -> Float[Array, "*K D"]:
        return x @ self.weight.T + self.bias

    def turned(self, T: Float[Array, "D D"]) -> "LinearMean":
        """The same field in coordinates x' = T x."""
        return LinearMean(T @ self.weight @ jnp.linalg.inv(T), T @ self.bias, self.fixed)


def zero_mean(dim: int) -> LinearMean:
    """The paper's prior mean, which stays zero."""
    return LinearMean(jnp.zeros((dim, dim)), jnp.zeros(dim), fixed=True)
