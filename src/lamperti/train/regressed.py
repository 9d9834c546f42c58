"""A model whose state is read off a window of samples and whose drift is regressed: nothing is trained.

Notation   x = B (w - mean): the state, by the window that ends with the newest sample (`data.regressed`)
           e = dx - dt f(x): what the regressed drift leaves of the increments
           the drift is regressed on x and on x +- shake e, with what came next unchanged (docs/adr/0032), and a
           little on places that no state is near, from where it leads to the nearest inducing input (docs/adr/0033)
           log Var(e_i) = log g_i + s_i(x), s_i(x) = phi(x) a_i, a ~ N(0, 1), phi the drift's whitened features
Equations  docs/theory.md (1)-(6), (29), (32)
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._params import positive
from lamperti._typing import Array, Float, PRNGKeyArray, Scalar
from lamperti.data.delay import hankel
from lamperti.data.regressed import DelayCoordinates
from lamperti.data.windows import Track, interpolate
from lamperti.dynamics.noise_field import FURTHEST
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.emissions.linear_gaussian import LinearGaussian, emission_moments, refit
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import trainable
from lamperti.math.normal_gamma import posterior, prior
from lamperti.train.start import LinearPicture, regress_mean, roughness

MAX_POINTS = 20_000
_PRIOR_SHAPE = 0.5  # half a pseudo-observation
_LEAST_VARIANCE = 1e-8
_ROUNDS = 30  # of scoring, which settles in about ten
_LONGEST_STEP = 2.0  # of s in a round
_BEYOND, _BACK = 1.6, 0.3  # of the way from one state to another, and of the way back in a step
_ALONE, WEIGHT_BETWEEN = 0.88, 0.03  # kernel to the nearest inducing input: half a lengthscale; of a row of data
ENCODER_SD = 1e-3  # a window is the state


def picture_of(coordinates: DelayCoordinates, tracks: Sequence[Track], rng: np.random.Generator) -> LinearPicture:
    """States of the data by their windows, with their increments."""
    window, parts = coordinates.window, []
    for track in tracks:
        y = interpolate(track)
        if len(y) > window:
            x = (hankel(y, window) - coordinates.mean) @ coordinates.B.T
            rows = slice(window - 1, -1)
            parts.append((x[:-1], np.diff(x, axis=0), track.dt[window - 1 :], y[rows], track.mask[rows]))
    x, dx, dt, y, mask = (np.concatenate(a) for a in zip(*parts, strict=True))
    if len(x) > MAX_POINTS:
        keep = np.sort(rng.choice(len(x), MAX_POINTS, replace=False))
        x, dx, dt, y, mask = x[keep], dx[keep], dt[keep], y[keep], mask[keep]
    return LinearPicture(coordinates.mean, coordinates.B, x, dx, dt, y, mask, roughness(tracks))


def dynamics_of(
    picture: LinearPicture,
    Z: Float[Array, "M D"],
    kernels: tuple[AbstractKernel, ...],
    *,
    share: Scalar,
    jitter: float,
    shake: Scalar | float,
    between: float = WEIGHT_BETWEEN,
    key: PRNGKeyArray,
) -> SparseGPDynamics:
    """The posterior of the drift after these increments, and noise that depends on the state as what is left does.

    ``share``: transitions of all the data for each point of the picture. ``shake``: by how many sds of the noise of a
    step states are moved, to either side, for the drift to lead from there to where the data went. ``between``: weight
    of places where no data was, beside a state of the data."""
    x, dx, dt = (jnp.asarray(a) for a in (picture.x, picture.dx, picture.dt))
    dim = x.shape[1]
    mean = regress_mean(x, dx, dt)
    residual = dx - dt[:, None] * mean(x)
    drift_variance = jnp.maximum(jnp.var(residual / dt[:, None], axis=0), _LEAST_VARIANCE)

    def assembled(g: Float[Array, " D"]) -> SparseGPDynamics:
        weak = prior(jnp.full(dim, _PRIOR_SHAPE), _PRIOR_SHAPE * g, len(Z))
        return SparseGPDynamics(
            kernels=kernels,
            amplitude=jnp.sqrt(drift_variance / g),  # so that the drift's prior variance does not depend on g
            Z=Z,
            mean=mean,
            diffusion=g,
            q=weak,
            prior=weak,
            jitter=jnp.asarray(jitter),
            axes=jnp.eye(dim),
        )

    key_off, key_between = jax.random.split(key)
    places, back, alone = _between(x, Z, kernels[0], key=key_between)

    def after_data(g: Float[Array, " D"], off: Float[Array, "n D"]) -> SparseGPDynamics:
        d = assembled(g)
        around = jnp.concatenate([x, x + off, x - off, places])
        increments = jnp.concatenate([dx, dx - off, dx + off, back])
        weight = share * jnp.concatenate([jnp.full(3 * len(x), 1 / 3), between * alone])
        q = posterior(d.prior, d.condition().path_terms(around, increments, jnp.tile(dt, 4), weight)[1])
        return eqx.tree_at(lambda d: d.q, d, q)

    g = jnp.maximum(jnp.mean(residual**2 / dt[:, None], axis=0), _LEAST_VARIANCE)
    off = jnp.zeros_like(x)
    for _ in range(2):  # the noise decides how much of the prior is left, and the drift how much noise
        left = _left(after_data(g, off), x, dx, dt)
        g = jnp.maximum(jnp.mean(left**2, axis=0), _LEAST_VARIANCE)
    off = shake * jax.random.permutation(key_off, left)
    d = after_data(g, off)
    g = jnp.maximum(jnp.mean(_left(d, x, dx, dt) ** 2, axis=0), _LEAST_VARIANCE)
    d = after_data(g, off)
    phi = kernels[0].gram(x, Z) @ d.factors()[0].chol_inv.T
    log_g, a = noise_field(_left(d, x, dx, dt) ** 2 / g, phi)
    # The covariance of the drift stays what it is with the mean noise; only what paths are drawn with changes.
    factor = jnp.exp(log_g)
    q = eqx.tree_at(lambda q: (q.rate, q.prec, q.shift), d.q, (d.q.rate * factor, *_rescaled(d, factor)))
    return eqx.tree_at(
        lambda d: (d.kernels, d.amplitude, d.diffusion, d.q, d.noise),
        d,
        (
            tuple(trainable(k) for k in kernels),
            positive(d.amplitude / jnp.sqrt(factor)),
            positive(g * factor),
            q,
            a,
        ),
        is_leaf=lambda leaf: leaf is None,
    )


def _between(
    x: Float[Array, "n D"], Z: Float[Array, "M D"], kernel: AbstractKernel, *, key: PRNGKeyArray
) -> tuple[Float[Array, "n D"], Float[Array, "n D"], Float[Array, " n"]]:
    """Places between states, and a little beyond, with increments that lead to the nearest inducing input; and which of
    them are so far from all of these that no data says what happens there."""
    key_pair, key_share = jax.random.split(key)
    share = _BEYOND * jax.random.uniform(key_share, (len(x), 1))
    p = x + share * (jax.random.permutation(key_pair, x) - x)
    gram = kernel.gram(p, Z)
    nearest = Z[jnp.argmax(gram, axis=1)]
    return p, _BACK * (nearest - p), (jnp.max(gram, axis=1) < _ALONE).astype(float)


def _rescaled(d: SparseGPDynamics, factor: Float[Array, " D"]) -> tuple[Array, Array]:
    """Precision and shift of whitened weights when the amplitude is divided by the root of the factor: the drift and
    its covariance, Sigma amplitude^2 g, stay as they are."""
    # f = amplitude L v: v' = v root(factor); Cov(v') = Sigma' g' with g' = g factor, so that Sigma' = Sigma
    return d.q.prec, d.q.shift * jnp.sqrt(factor)[:, None]


def _left(
    d: SparseGPDynamics, x: Float[Array, "n D"], dx: Float[Array, "n D"], dt: Float[Array, " n"]
) -> Float[Array, "n D"]:
    """What the drift leaves of the increments, for steps of one."""
    transition = d.condition()
    gram = d.kernels[0].gram(x, d.Z)
    drift = d.mean(x) + gram @ transition.w.T
    return (dx - dt[:, None] * drift) / jnp.sqrt(dt)[:, None]


def noise_field(
    squares: Float[Array, "n D"], phi: Float[Array, "n M"]
) -> tuple[Float[Array, " D"], Float[Array, "D M"]]:
    """log g and a at the maximum of the posterior of Var = g exp(phi a), a ~ N(0, 1), given squares of normal draws:
    Fisher scoring, whose matrix is the same in each round."""
    n, m = phi.shape
    features = jnp.concatenate([jnp.ones((n, 1)), phi], axis=1)
    penalty = jnp.ones(m + 1).at[0].set(0.0)
    fisher = 0.5 * features.T @ features + jnp.diag(penalty)
    solve = jnp.linalg.inv(fisher)
    w = jnp.zeros((m + 1, squares.shape[1]))
    for _ in range(_ROUNDS):
        s = jnp.clip(features @ w, -2 * FURTHEST, 2 * FURTHEST)
        step = solve @ (0.5 * features.T @ (squares * jnp.exp(-s) - 1.0) - penalty[:, None] * w)
        longest = jnp.max(jnp.abs(features @ step), axis=0)
        w = w + step * jnp.minimum(1.0, _LONGEST_STEP / jnp.maximum(longest, 1e-12))
    return w[0], w[1:].T


def emission_of(picture: LinearPicture) -> LinearGaussian:
    """The newest sample from the state, by least squares."""
    y, mask, x = jnp.asarray(picture.y)[None], jnp.asarray(picture.mask)[None], jnp.asarray(picture.x)[None, None]
    return refit(emission_moments(y, mask, x)[0])
