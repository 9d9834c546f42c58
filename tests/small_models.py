"""Small models, made by hand, that several tests share."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.kernels import SquaredExponential
from lamperti.math.normal_gamma import NormalGamma, Statistics, prior

SHARED = (SquaredExponential([0.9, 1.3], 0.8),)
SEPARATE = (SquaredExponential([0.9, 1.3], 0.8), SquaredExponential([1.4, 0.7], 1.2))


def random_normal_gamma(seed: int, dim: int, n_weights: int) -> NormalGamma:
    """Any point of the cone."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(dim, n_weights, n_weights)) / np.sqrt(n_weights)
    prec = half @ np.swapaxes(half, 1, 2) + rng.uniform(0.5, 2.0, size=(dim, 1, 1)) * np.eye(n_weights)
    return NormalGamma(
        jnp.asarray(rng.uniform(2.0, 6.0, size=dim)),
        jnp.asarray(rng.uniform(0.5, 3.0, size=dim)),
        jnp.asarray(rng.normal(size=(dim, n_weights))),
        jnp.asarray(prec),
    )


def small_dynamics(
    kernels=SHARED, n_inducing: int = 6, *, Z=None, jitter=1e-8, diffusion_step="natural", seed=0
) -> SparseGPDynamics:
    """Two coordinates; q is a random point of the cone, the mean function is not zero."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_inducing, 2)) if Z is None else Z
    m = len(Z)
    return SparseGPDynamics(
        kernels=kernels,
        amplitude=jnp.asarray([0.7, 1.4]),
        Z=jnp.asarray(Z),
        mean=LinearMean(jnp.asarray([[-0.4, 0.3], [0.1, -0.6]]), jnp.asarray([0.2, -0.1])),
        diffusion=jnp.asarray([0.5, 0.8]),
        q=random_normal_gamma(seed + 1, 2, m),
        prior=prior(jnp.asarray([2.0, 3.0]), jnp.asarray([1.0, 0.6]), m),
        jitter=jnp.asarray(jitter),
        axes=jnp.eye(2),
        diffusion_step=diffusion_step,
    )


def fixed_path(n: int, seed: int = 3) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Points, increments and irregular steps; the increments need not follow any model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    dt = rng.uniform(0.1, 0.6, size=n)
    dx = dt[:, None] * np.sin(2 * x) + np.sqrt(dt)[:, None] * rng.normal(size=(n, 2)) * 0.5
    return jnp.asarray(x), jnp.asarray(dx), jnp.asarray(dt)


@eqx.filter_jit
def statistics_of(dynamics: SparseGPDynamics, x, dx, dt) -> Statistics:
    """Sufficient statistics of a whole path."""
    return dynamics.condition().path_terms(x, dx, dt, jnp.ones_like(dt))[1]


@eqx.filter_jit
def bound(dynamics: SparseGPDynamics, x, dx, dt) -> jax.Array:
    """The part of the ELBO that the dynamics owns: E log p(path) - KL."""
    return dynamics.condition().path_terms(x, dx, dt, jnp.ones_like(dt))[0] - dynamics.kl()
