"""The paper's encoder: delay vectors, a convolution, a GRU and two heads, beside the linear skip."""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.encoders._skip import HankelSkip
from lamperti.encoders.window_mlp import zero_last
from lamperti.interfaces import AbstractEncoder, Encoding

_CONV_WIDTH = 5


class ConvGRU(AbstractEncoder):
    """Delay embedding (``delays`` samples, ``lag`` apart) -> conv (32, width 5) -> GRU 64 -> two heads (128).

    Causal throughout: a state never depends on later samples. The lead warms up the recurrent part."""

    skip: HankelSkip
    conv: eqx.nn.Conv1d
    gru: eqx.nn.GRUCell
    mean_head: eqx.nn.MLP
    scale_head: eqx.nn.MLP
    log_sd: Float[Array, " D"]
    lag: int = eqx.field(static=True)
    delays: int = eqx.field(static=True)

    def __init__(
        self,
        skip: HankelSkip,
        n_channels: int,
        *,
        lag: int,
        delays: int = 5,
        start_sd: float = 0.5,
        key: PRNGKeyArray,
    ):
        keys = jax.random.split(key, 4)
        d = skip.weight.shape[0]
        self.skip, self.lag, self.delays = skip, lag, delays
        self.conv = eqx.nn.Conv1d((delays + 1) * n_channels, 32, _CONV_WIDTH, key=keys[0])
        self.gru = eqx.nn.GRUCell(32, 64, key=keys[1])
        self.mean_head = zero_last(eqx.nn.MLP(64, d, 128, 1, activation=jax.nn.leaky_relu, key=keys[2]))
        self.scale_head = zero_last(eqx.nn.MLP(64, d, 128, 1, activation=jax.nn.leaky_relu, key=keys[3]))
        self.log_sd = jnp.full(d, jnp.log(start_sd))

    @property
    def lead(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(self.skip.window - 1, self._reach)

    @property
    def _reach(self) -> int:
        """Samples before the first that the convolution can be run at."""
        return (self.delays - 1) * self.lag + _CONV_WIDTH - 1

    def turned(self, T: Float[Array, "D D"]) -> "ConvGRU":
        return eqx.tree_at(lambda e: e.skip.gauge, self, T @ self.skip.gauge)

    def __call__(self, y: Float[Array, "L P"], mask: Bool[Array, "L P"], dt: Float[Array, " N"]) -> Encoding:
        n = y.shape[0] - self.lead
        first = y.shape[0] - (n + self.skip.window - 1)
        score, seen = self.skip.scores(y[first:]), self.skip.seen(mask[first:])
        hidden = self._recurrent(y, mask)[-n:]
        correction = jax.vmap(self.mean_head)(hidden)
        log_sd = jax.vmap(self.scale_head)(hidden) + self.log_sd
        return self.skip.encoding(score, seen, correction, log_sd)

    def _recurrent(self, y: Float[Array, "L P"], mask: Bool[Array, "L P"]) -> Float[Array, "T H"]:
        n = y.shape[0] - (self.delays - 1) * self.lag
        delayed = [y[j * self.lag : j * self.lag + n] for j in range(self.delays)]
        missing = 1.0 - mask[-n:].astype(float)
        features = jnp.concatenate([*delayed, missing], axis=1)
        convolved = jax.nn.leaky_relu(self.conv(features.T)).T

        def step(hidden, feature):
            hidden = self.gru(feature, hidden)
            return hidden, hidden

        _, hidden = jax.lax.scan(step, jnp.zeros(self.gru.hidden_size), convolved)
        return hidden
