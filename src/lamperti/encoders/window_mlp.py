"""The default encoder: a causal window, its principal components, and a small network on top of a linear skip."""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.encoders._skip import HankelSkip
from lamperti.interfaces import AbstractEncoder, Encoding


class WindowMLP(AbstractEncoder):
    """score -> MLP -> correction of the mean and log-scale. Missing samples enter through a mask channel.

    The last layer starts at zero, so that training starts from the Hankel embedding itself."""

    skip: HankelSkip
    mlp: eqx.nn.MLP
    log_sd: Float[Array, " D"]

    def __init__(self, skip: HankelSkip, *, width: int = 64, depth: int = 2, start_sd: float = 0.5, key: PRNGKeyArray):
        d, k = skip.weight.shape
        self.skip = skip
        mlp = eqx.nn.MLP(k + skip.window, 2 * d, width, depth, activation=jax.nn.leaky_relu, key=key)
        self.mlp = zero_last(mlp)
        self.log_sd = jnp.full(d, jnp.log(start_sd))

    @property
    def lead(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.skip.window - 1

    def turned(self, T: Float[Array, "D D"]) -> "WindowMLP":
        return eqx.tree_at(lambda e: e.skip.gauge, self, T @ self.skip.gauge)

    def __call__(self, y: Float[Array, "L P"], mask: Bool[Array, "L P"], dt: Float[Array, " N"]) -> Encoding:
        score, seen = self.skip.scores(y), self.skip.seen(mask)
        features = jnp.concatenate([score, 1.0 - seen], axis=1)
        correction, log_sd = jnp.split(jax.vmap(self.mlp)(features), 2, axis=1)
        return self.skip.encoding(score, seen, correction, log_sd + self.log_sd)


def zero_last(mlp: eqx.nn.MLP) -> eqx.nn.MLP:
    """A network whose output starts at zero."""
    last = mlp.layers[-1]
    return eqx.tree_at(
        lambda m: (m.layers[-1].weight, m.layers[-1].bias),
        mlp,
        jax.tree.map(jnp.zeros_like, (last.weight, last.bias)),
    )
