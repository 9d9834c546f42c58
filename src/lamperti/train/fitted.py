"""What of a trained model is fitted to its likelihood, and how far each of it may go.

Notation   g, R: noises of the motion [D] and the observation [P]      C, c: loadings, offset      B x + b: linear drift
           Q = M diag(g) M': covariance of the motion's noise, M with a unit diagonal and zeros above [D, D]
           a: weights of the noise's dependence on the state [D, M]
           mu, Sigma = root root': mean and covariance of the drift's weights, times g [D, M], [D, M, M]
Equations  docs/theory.md (27), (29)
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._compile import compiled, to_jax
from lamperti._params import positive, realise
from lamperti._typing import Array, Float
from lamperti.emissions.linear_gaussian import NOISE_FLOOR, LinearGaussian
from lamperti.math.normal_gamma import Weights, weights
from lamperti.model import LatentSDE

_FURTHEST = 4.0  # log g and log R, from where training left them
_REACH, _LEAST_REACH = 0.5, 0.2  # loadings and linear drift: a share of what they are, but at least so much
_TILT = 10.0  # entries of M below the diagonal, between coordinates of equal noise
_SDS = 10.0  # weights of the drift, in sds of their posterior
# Steps of the search, in the order of Fitted: a tenth of a loading or a slope matters as much as a factor of e in a
# noise.
UNITS = (1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0)
_FIELD = 10.0  # weights of the noise's dependence on the state, which start from zero

What = Literal["all", "noises", "state noise"]
"""What a search moves: all with a matrix of constant noise, the noises alone, or all with noise that depends on the
state, in coordinates that stay as they are."""


class Fitted(NamedTuple):
    """What is fitted to the likelihood: the noises by their logarithms, the linear parts, and the drift's weights."""

    g: Float[Array, " D"]
    tilt: Float[Array, "D D"]
    """M below its diagonal, in units of the sds that the coordinates' noises have at the start; the rest is ignored."""
    R: Float[Array, " P"]
    C: Float[Array, "P D"]
    c: Float[Array, " P"]
    weight: Float[Array, "D D"]
    bias: Float[Array, " D"]
    drift: Float[Array, "D M"]
    """mu, from where training left it, in sds of its posterior."""
    a: Float[Array, "D M"]

    @classmethod
    def of(cls, model: LatentSDE) -> "Fitted":
        e, d = model.emission, model.dynamics
        assert isinstance(e, LinearGaussian)  # calibrate() has looked
        tilt, still = jnp.zeros((d.dim, d.dim)), jnp.zeros_like(d.q.shift)
        a = still if d.noise is None else d.noise
        g, R = 2.0 * jnp.log(noise_sds(model)), jnp.log(e.noise)
        return cls(g, tilt, R, e.C, e.c, d.mean.weight, d.mean.bias, still, a)

    def put_into(self, model: LatentSDE) -> LatentSDE:
        """The model with the noises and the linear parts."""
        g = jnp.exp(self.g)
        rate = model.dynamics.q.shape * g  # which is in force where the diffusion's step is the conjugate one
        new = (positive(g), rate, jnp.exp(self.R), self.C, self.c, self.weight, self.bias)
        model = eqx.tree_at(_places, model, new)
        return model if model.dynamics.noise is None else with_noise(model, self.a)

    def settled_in(self, model: LatentSDE) -> LatentSDE:
        """The model with all of it but the tilt, its drift's prior what it was.

        The prior's variance is amplitude^2 g: with another g the amplitude is another, and so are whitened weights. Of
        the precision of these, the part that the data gave grows with it; the prior's does not."""
        d = model.dynamics
        ratio = jnp.exp(2.0 * jnp.log(noise_sds(model)) - self.g)
        eye = jnp.eye(d.Z.shape[0])
        prec = eye + ratio[:, None, None] * (d.q.prec - eye)
        mu = self.weights(model).mu / jnp.sqrt(ratio)[:, None]
        amplitude = realise(d).amplitude * jnp.sqrt(ratio)
        return eqx.tree_at(
            lambda m: (m.dynamics.amplitude, m.dynamics.q.prec, m.dynamics.q.shift),
            self.put_into(model),
            (positive(amplitude), prec, jnp.einsum("dij,dj->di", prec, mu)),
        )

    def weights(self, model: LatentSDE) -> Weights:
        w = weights(model.dynamics.q)
        return w._replace(mu=w.mu + jnp.einsum("d,dij,dj->di", noise_sds(model), w.root, self.drift))

    def Q(self, model: LatentSDE) -> Float[Array, "D D"]:
        sd = noise_sds(model)
        M = jnp.eye(len(sd)) + jnp.tril(self.tilt, -1) * sd[:, None] / sd[None, :]
        return (M * jnp.exp(self.g)) @ M.T


def with_noise(model: LatentSDE, a: Float[Array, "D M"]) -> LatentSDE:
    """The model with noise that depends on the state."""
    return eqx.tree_at(lambda m: m.dynamics.noise, model, a, is_leaf=lambda leaf: leaf is None)


def noise_sds(model: LatentSDE) -> Float[Array, " D"]:
    """Root of the diffusion that is in force."""
    return 1.0 / jnp.sqrt(realise(model.dynamics).posterior().mean_precision)


def _places(m: Any) -> tuple:
    d, e = m.dynamics, m.emission
    return d.diffusion, d.q.rate, e.noise, e.C, e.c, d.mean.weight, d.mean.bias


@compiled
def search_range(model: LatentSDE, what: What) -> tuple[Fitted, Fitted, Fitted]:
    """Where the search starts, and how far down and up it may go."""
    start = Fitted.of(model)
    return start, *_bounds(start, model, what)


def _bounds(start: Fitted, model: LatentSDE, what: What) -> tuple[Fitted, Fitted]:
    """How far each may go: noises by a factor, linear parts by a share of what they are, or not at all."""

    def reach(value: Array) -> Array:
        return jnp.maximum(_REACH * jnp.abs(value), _LEAST_REACH)

    far = Fitted(
        g=jnp.full_like(start.g, _FURTHEST),
        tilt=jnp.full_like(start.tilt, _TILT if what == "all" and turns(model) else 0.0),
        R=jnp.full_like(start.R, _FURTHEST),
        C=reach(start.C),
        c=reach(start.c),
        weight=reach(start.weight),
        bias=reach(start.bias),
        drift=jnp.full_like(start.drift, _SDS),
        a=jnp.full_like(start.a, _FIELD if what == "state noise" else 0.0),
    )
    if model.dynamics.mean.fixed:
        far = far._replace(weight=jnp.zeros_like(far.weight), bias=jnp.zeros_like(far.bias))
    if what == "noises":
        far = jax.tree.map(jnp.zeros_like, far)._replace(g=far.g, R=far.R)
    low, high = (jax.tree.map(move, start, far) for move in (jnp.subtract, jnp.add))
    floor = jnp.minimum(jnp.log(NOISE_FLOOR), start.R)
    return low._replace(R=jnp.maximum(low.R, floor)), high


def turns(model: LatentSDE) -> bool:
    """Drifts whose coordinates have kernels of their own cannot be mixed; a single one has nothing to mix."""
    return len(model.dynamics.kernels) == 1 and model.latent_dim > 1


# In NumPy: op by op in jax, each would be a program for every shape.
def flat(values: Fitted) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(value)) for value in values])


def shaped(flat: np.ndarray, like: Fitted) -> Fitted:
    parts = np.split(flat, np.cumsum([value.size for value in like])[:-1])
    return Fitted(*(to_jax(part.reshape(value.shape)) for part, value in zip(parts, like, strict=True)))
