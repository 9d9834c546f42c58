"""Cubature (sigma-point) filter with backward sampling.

Notation   xi_j = +-sqrt(D) e_j: 2D points of equal weight      x_j = m + chol(P) xi_j
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.interfaces import AbstractSmoother, AbstractTransition, AffineStep, Gaussian, Potentials
from lamperti.math import small
from lamperti.smoothers._chain import GaussianChain, build_chain
from lamperti.smoothers._filter import filter_pushed


class SigmaPoint(AbstractSmoother):
    """Third-degree cubature: exact for means of cubic and covariances of linear drifts; any kernel."""

    def __call__(
        self,
        transition: AbstractTransition,
        initial: Gaussian,
        potentials: Potentials,
        dt: Float[Array, " N"],
        *,
        points: Float[Array, "T D"],
        link: Bool[Array, " N"] | None = None,
        key: PRNGKeyArray,
    ) -> GaussianChain:
        link = jnp.ones(dt.shape, dtype=bool) if link is None else link

        def step(mean: Float[Array, " D"], cov: Float[Array, "D D"], dt: Scalar) -> AffineStep:
            return sigma_point_step(transition.mean, lambda x: jnp.diag(transition.variance(x, dt)), mean, cov, dt)

        filtered, steps = filter_pushed(step, initial, potentials, dt, link)
        return build_chain(filtered, steps, initial, potentials, link, parallel=False)


def sigma_point_step(
    move: Callable[[Float[Array, " D"], Scalar], Float[Array, " D"]],
    noise: Callable[[Float[Array, " D"]], Float[Array, "D D"]],
    mean: Float[Array, " D"],
    cov: Float[Array, "D D"],
    dt: Scalar,
) -> AffineStep:
    """Statistical linear regression, on 2D cubature points, of a step with this mean and this noise, which is averaged
    over them."""
    d = mean.shape[0]
    xi = jnp.sqrt(float(d)) * jnp.concatenate([jnp.eye(d), -jnp.eye(d)])
    chol = small.cholesky(cov)
    x = mean + small.matmul(xi, small.transpose(chol))
    y = jax.vmap(move, in_axes=(0, None))(x, dt)
    m = jnp.mean(y, axis=0)
    away = y - m
    half = small.matmul(small.transpose(away), xi) / (2 * d)  # Cov(y, x) = half chol'
    F = small.matmul(half, small.lower_inverse(chol))
    # The residual of the regression on whitened points is a sum of squares, hence never negative.
    left = away - small.matmul(xi, small.transpose(half))
    Omega = small.matmul(small.transpose(left), left) / (2 * d) + jnp.mean(jax.vmap(noise)(x), axis=0)
    return AffineStep(F, m - small.matvec(F, mean), Omega)
