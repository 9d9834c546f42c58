"""A linear model in closed form as a latent stochastic differential equation.

Notation   x' = F x + b + N(0, diag Q), y = C x + c + N(0, R): the law that `data.autoregressive` finds
           x = B (w - mean): the state, by the window of samples that ends with the newest

Nothing is learned by gradient. The mean drift is (F - 1) x + b, as the regularised regression gave it; the Gaussian
process about it, of linear functions, has mean zero and the covariance that slopes have after so many samples, so that
forecasts know how little a short record tells.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lamperti._params import positive
from lamperti._typing import Array, Float, Scalar
from lamperti.data.delay import hankel
from lamperti.data.linear_law import LinearLaw
from lamperti.data.windows import Track, interpolate
from lamperti.dynamics.initial import InitialState
from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.emissions.linear_gaussian import NOISE_FLOOR, EmissionMoments, LinearGaussian, emission_moments
from lamperti.encoders import WindowMLP
from lamperti.interfaces import AbstractEncoder, AbstractKernel
from lamperti.kernels import trainable
from lamperti.math.normal_gamma import posterior, prior
from lamperti.train.start import LinearPicture

_MAX_POINTS = 20_000
_PRIOR_SHAPE = 0.5  # half a pseudo-observation
ENCODER_SD = 0.001  # a window tells the state all but exactly
_FAR = 10.0  # sds of the data, that a level may be from those of training where the level drops out


class LawArrays(NamedTuple):
    """The numbers of a law."""

    F: Float[np.ndarray, "D D"]
    b: Float[np.ndarray, " D"]
    Q: Float[np.ndarray, " D"]
    C: Float[np.ndarray, "P D"]
    c: Float[np.ndarray, " P"]
    R: Float[np.ndarray, " P"]
    level: Float[np.ndarray, "P D"]
    """How the state moves when a channel is raised; zero where levels matter."""

    @classmethod
    def of(cls, law: LinearLaw) -> "LawArrays":
        P = len(law.c)
        raised = np.stack([law.B[:, p::P].sum(axis=1) for p in range(P)])
        return cls(law.F, law.b, law.Q, law.C, law.c, law.R, raised if law.level_free else np.zeros_like(raised))


def picture_of(law: LinearLaw, tracks: Sequence[Track], rng: np.random.Generator) -> LinearPicture:
    """States of the data by their windows, with their increments."""
    parts = []
    for track in tracks:
        y = interpolate(track)
        if len(y) > law.window:
            x = (hankel(y, law.window) - law.mean) @ law.B.T
            rows = slice(law.window - 1, -1)
            parts.append((x[:-1], np.diff(x, axis=0), track.dt[law.window - 1 :], y[rows], track.mask[rows]))
    x, dx, dt, y, mask = (np.concatenate(a) for a in zip(*parts, strict=True))
    if len(x) > _MAX_POINTS:
        keep = np.sort(rng.choice(len(x), _MAX_POINTS, replace=False))
        x, dx, dt, y, mask = x[keep], dx[keep], dt[keep], y[keep], mask[keep]
    return LinearPicture(law.mean, law.B, x, dx, dt, y, mask, law.R)


def dynamics_of(
    law: LawArrays,
    picture: LinearPicture,
    Z: Float[Array, "M D"],
    kernels: tuple[AbstractKernel, ...],
    *,
    share: Scalar,
    jitter: float,
) -> SparseGPDynamics:
    """The law's drift and noise, with the covariance of slopes that a regression on the states has."""
    D = len(law.Q)
    Q = jnp.asarray(law.Q)
    weak = prior(jnp.full(D, _PRIOR_SHAPE), _PRIOR_SHAPE * Q, len(Z))
    dynamics = SparseGPDynamics(
        kernels=kernels,
        amplitude=jnp.ones(D),
        Z=Z,
        mean=LinearMean(jnp.asarray(law.F) - jnp.eye(D), jnp.asarray(law.b)),
        diffusion=Q,
        q=weak,
        prior=weak,
        jitter=jnp.asarray(jitter),
        axes=jnp.eye(D),
    )
    x, dx, dt = (jnp.asarray(a) for a in (picture.x, picture.dx, picture.dt))
    q = posterior(weak, dynamics.condition().path_terms(x, dx, dt, jnp.full(len(x), share))[1])
    q = eqx.tree_at(lambda q: (q.shift, q.rate), q, (jnp.zeros_like(q.shift), q.shape * Q))
    return eqx.tree_at(
        lambda d: (d.kernels, d.amplitude, d.diffusion, d.q),
        dynamics,
        (tuple(trainable(k) for k in kernels), positive(dynamics.amplitude), positive(Q), q),
    )


def emission_of(law: LawArrays, picture: LinearPicture) -> LinearGaussian:
    y, mask, x = jnp.asarray(picture.y)[None], jnp.asarray(picture.mask)[None], jnp.asarray(picture.x)[None, None]
    moments: EmissionMoments = emission_moments(y, mask, x)[0]
    return LinearGaussian(jnp.asarray(law.C), jnp.asarray(law.c), jnp.maximum(jnp.asarray(law.R), NOISE_FLOOR), moments)


def initial_of(law: LawArrays) -> InitialState:
    """N(0, I), as the states of the data have it; wide where the level of the data drops out."""
    level = jnp.asarray(law.level)
    return InitialState(jnp.zeros(len(law.b)), jnp.eye(len(law.b)) + _FAR**2 * level.T @ level)


def certain(encoder: AbstractEncoder, sd: float = ENCODER_SD) -> AbstractEncoder:
    """The encoder, sure of the state."""
    assert isinstance(encoder, WindowMLP)
    return eqx.tree_at(lambda e: e.log_sd, encoder, jnp.full_like(encoder.log_sd, np.log(sd)))
