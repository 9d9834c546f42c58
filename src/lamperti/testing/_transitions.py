"""The contract of a transition.

Notation   E log p(x' | x) = c(x) - sum (x' - mean)^2 / (2 variance): a parabola in x'
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from lamperti._errors import CapabilityError
from lamperti._typing import Array
from lamperti.interfaces import AbstractTransition, AffineStep, Pusher

_NODES = 20
_STEP = 1e-5


def check_transition(transition: AbstractTransition, dim: int) -> None:
    """Check that the views a transition on ``dim`` coordinates gives of one step agree with each other.

    ``linearise`` is the tangent of ``mean``; ``expected_log_density`` is the parabola that mean and variance
    make, and lies below the density at the mean drift and precision (Jensen); ``pusher``, where there is one,
    gives the moments of ``mean`` and ``variance`` under a Gaussian. All can be compiled, mapped and differentiated.
    """
    assert isinstance(transition, AbstractTransition), f"{type(transition).__name__} is not an AbstractTransition"
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.normal(size=(2, 5, dim)))
    dt = jnp.asarray(rng.uniform(0.05, 0.3, size=5))
    step = transition.linearise(x[0], dt[0])
    shapes = (transition.mean(x[0], dt[0]).shape, transition.variance(x[0], dt[0]).shape, step.F.shape)
    assert shapes == ((dim,), (dim,), (dim, dim)), f"mean, variance and F have shapes {shapes}"

    views = _see(transition, x, x_next, dt)
    _check_moments(views, np.asarray(x))
    _check_density(views, np.asarray(x_next))
    finite = all(np.all(np.isfinite(g)) for g in jax.tree.leaves(views.gradients))
    assert finite, "a gradient of expected_log_density is not finite"
    try:
        push = transition.pusher()
    except CapabilityError as refusal:
        assert "Use " in str(refusal), "a refused capability names no alternative"
    else:
        _check_push(transition, push, x[0], dt[0])


class _Views(NamedTuple):
    """What a transition says of the same steps in different ways, one row a step."""

    mean: Array
    variance: Array
    step: AffineStep
    slope: Array  # of mean, by central differences [5, D, D]
    at_mean: Array  # expected_log_density of x' = mean
    away: Array  # expected_log_density of x' = x_next
    gradients: PyTree


@eqx.filter_jit
def _see(transition: AbstractTransition, x: Array, x_next: Array, dt: Array) -> _Views:
    mean = jax.vmap(transition.mean)(x, dt)
    shifts = _STEP * jnp.eye(x.shape[1])
    moved = jax.vmap(jax.vmap(transition.mean), in_axes=(0, None))

    def total(t: AbstractTransition, at: Array) -> Array:
        return jnp.sum(jax.vmap(t.expected_log_density)(at, x_next, dt))

    difference = moved(x + shifts[:, None], dt) - moved(x - shifts[:, None], dt)
    return _Views(
        mean,
        jax.vmap(transition.variance)(x, dt),
        jax.vmap(transition.linearise)(x, dt),
        jnp.transpose(difference, (1, 2, 0)) / (2 * _STEP),
        jax.vmap(transition.expected_log_density)(x, mean, dt),
        jax.vmap(transition.expected_log_density)(x, x_next, dt),
        (eqx.filter_grad(total)(transition, x), jax.grad(total, argnums=1)(transition, x)),
    )


def _check_moments(views: _Views, x: np.ndarray) -> None:
    assert np.all(views.variance > 0), f"variance is not positive: {views.variance}"
    F, b, Omega = (np.asarray(a) for a in (views.step.F, views.step.b, views.step.Omega))
    tangent = np.einsum("nij,nj->ni", F, x) + b
    np.testing.assert_allclose(
        tangent, views.mean, rtol=1e-8, atol=1e-8, err_msg="linearise does not touch mean at its point"
    )
    np.testing.assert_allclose(F, views.slope, rtol=1e-5, atol=1e-6, err_msg="F is not the derivative of mean")
    noise = np.einsum("nii->ni", Omega)
    np.testing.assert_allclose(noise, views.variance, rtol=1e-8, err_msg="the noise of linearise is not the variance")


def _check_density(views: _Views, x_next: np.ndarray) -> None:
    mean, variance = np.asarray(views.mean), np.asarray(views.variance)
    drop = 0.5 * np.sum((x_next - mean) ** 2 / variance, axis=1)
    np.testing.assert_allclose(
        views.at_mean - views.away, drop, rtol=1e-7, atol=1e-9,
        err_msg="expected_log_density is not the parabola of mean and variance",
    )  # fmt: skip
    plug_in = -0.5 * np.sum(np.log(2 * np.pi * variance), axis=1)
    assert np.all(views.at_mean <= plug_in + 1e-9 * np.abs(plug_in)), (
        f"expected_log_density ({views.at_mean}) exceeds the density at the mean drift and precision ({plug_in})"
    )


def _check_push(transition: AbstractTransition, push: Pusher, mean: Array, dt: Array) -> None:
    dim = mean.shape[0]
    cov = 0.05 * (jnp.eye(dim) + 0.4 * (jnp.ones((dim, dim)) - jnp.eye(dim)))
    step = eqx.filter_jit(push)(mean, cov, dt)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    grid = np.array(list(itertools.product(nodes, repeat=dim)))
    w = np.prod(np.array(list(itertools.product(weights / weights.sum(), repeat=dim))), axis=1)
    x = np.asarray(mean) + grid @ np.linalg.cholesky(cov).T
    y, variance = eqx.filter_jit(lambda t, at: jax.vmap(lambda x: (t.mean(x, dt), t.variance(x, dt)))(at))(
        transition, jnp.asarray(x)
    )
    y, noise = np.asarray(y), w @ np.asarray(variance)
    m = w @ y
    found = {
        "mean": (step.F @ mean + step.b, m),
        "cross-covariance": (step.F @ cov, (w[:, None] * (y - m)).T @ (x - np.asarray(mean))),
        "covariance": (step.F @ cov @ step.F.T + step.Omega, (w[:, None] * (y - m)).T @ (y - m) + np.diag(noise)),
    }
    for name, (value, truth) in found.items():
        np.testing.assert_allclose(
            value, truth, rtol=1e-6, atol=1e-8, err_msg=f"the {name} of pusher is not that of the step"
        )
