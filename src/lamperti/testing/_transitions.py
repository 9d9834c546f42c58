"""The contract of a transition.

Notation   E log p(x' | x) = c(x) - sum (x' - mean)^2 / (2 variance): a parabola in x'
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._errors import CapabilityError
from lamperti.interfaces import AbstractTransition

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
    for point, following, step in zip(x, x_next, dt, strict=True):
        _check_moments(transition, point, step)
        _check_density(transition, point, following, step)
    _check_programs(transition, x, x_next, dt)
    try:
        push = transition.pusher()
    except CapabilityError as refusal:
        assert "Use " in str(refusal), "a refused capability names no alternative"
    else:
        _check_push(transition, push, x[0], dt[0])


def _check_moments(transition: AbstractTransition, x: jax.Array, dt: jax.Array) -> None:
    dim = x.shape[0]
    mean, variance = transition.mean(x, dt), transition.variance(x, dt)
    assert mean.shape == (dim,), f"mean has shape {mean.shape}, not [D]"
    assert variance.shape == (dim,), f"variance has shape {variance.shape}, not [D]"
    assert np.all(variance > 0), f"variance is not positive: {variance}"
    step = transition.linearise(x, dt)
    np.testing.assert_allclose(
        step.F @ x + step.b, mean, rtol=1e-8, atol=1e-8, err_msg="linearise does not touch mean at its point"
    )
    shifts = _STEP * np.eye(dim)
    slope = [(transition.mean(x + s, dt) - transition.mean(x - s, dt)) / (2 * _STEP) for s in shifts]
    np.testing.assert_allclose(
        step.F, np.stack(slope, axis=1), rtol=1e-5, atol=1e-6, err_msg="F is not the derivative of mean"
    )
    np.testing.assert_allclose(
        jnp.diag(step.Omega), variance, rtol=1e-8, err_msg="the noise of linearise is not the variance"
    )


def _check_density(transition: AbstractTransition, x: jax.Array, x_next: jax.Array, dt: jax.Array) -> None:
    mean, variance = transition.mean(x, dt), transition.variance(x, dt)
    at_mean = float(transition.expected_log_density(x, mean, dt))
    away = float(transition.expected_log_density(x, x_next, dt))
    drop = 0.5 * float(jnp.sum((x_next - mean) ** 2 / variance))
    np.testing.assert_allclose(
        at_mean - away, drop, rtol=1e-7, atol=1e-9,
        err_msg="expected_log_density is not the parabola of mean and variance",
    )  # fmt: skip
    plug_in = -0.5 * float(jnp.sum(jnp.log(2 * jnp.pi * variance)))
    assert at_mean <= plug_in + 1e-9 * abs(plug_in), (
        f"expected_log_density ({at_mean:g}) exceeds the density at the mean drift and precision ({plug_in:g})"
    )


def _check_programs(transition: AbstractTransition, x: jax.Array, x_next: jax.Array, dt: jax.Array) -> None:
    def total(t: AbstractTransition, at: jax.Array) -> jax.Array:
        return jnp.sum(jax.vmap(t.expected_log_density)(at, x_next, dt))

    each = [transition.expected_log_density(a, b, s) for a, b, s in zip(x, x_next, dt, strict=True)]
    compiled = eqx.filter_jit(total)(transition, x)
    np.testing.assert_allclose(compiled, sum(map(float, each)), rtol=1e-8, err_msg="compiled values differ")
    gradients = jax.tree.leaves((eqx.filter_grad(total)(transition, x), jax.grad(total, argnums=1)(transition, x)))
    assert all(np.all(np.isfinite(g)) for g in gradients), "a gradient of expected_log_density is not finite"


def _check_push(transition: AbstractTransition, push, mean: jax.Array, dt: jax.Array) -> None:
    dim = mean.shape[0]
    cov = 0.05 * (jnp.eye(dim) + 0.4 * (jnp.ones((dim, dim)) - jnp.eye(dim)))
    step = push(mean, cov, dt)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    grid = np.array(list(itertools.product(nodes, repeat=dim)))
    w = np.prod(np.array(list(itertools.product(weights / weights.sum(), repeat=dim))), axis=1)
    x = np.asarray(mean) + grid @ np.linalg.cholesky(cov).T
    y = np.asarray(jax.vmap(transition.mean, in_axes=(0, None))(jnp.asarray(x), dt))
    noise = w @ np.asarray(jax.vmap(transition.variance, in_axes=(0, None))(jnp.asarray(x), dt))
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
