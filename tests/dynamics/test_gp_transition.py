"""One step of the learned process: identities, invariances and derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from lamperti.interfaces import Gaussian, Potentials
from lamperti.smoothers import Linearised
from small_models import SEPARATE, SHARED, bound, fixed_path, small_dynamics, statistics_of

KERNELS = {"shared": SHARED, "separate": SEPARATE}


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_path_terms_are_the_weighted_sum_of_expected_log_densities(kernels):
    transition = small_dynamics(kernels).condition()
    x, dx, dt = fixed_path(12)
    weight = jnp.asarray(np.random.default_rng(0).uniform(0.0, 2.0, size=12)).at[3].set(0.0)
    each = jax.vmap(transition.expected_log_density)(x, x + dx, dt)
    total, _ = transition.path_terms(x, dx, dt, weight)
    np.testing.assert_allclose(total, jnp.sum(weight * each), rtol=1e-10)


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_drift_and_its_variance_are_those_of_the_definition(kernels):
    dynamics = small_dynamics(kernels)
    transition = dynamics.condition()
    for x in fixed_path(4)[0]:
        for i in range(2):
            kernel, s = kernels[i % len(kernels)], float(dynamics.amplitude[i])
            K = np.asarray(kernel.gram(dynamics.Z, dynamics.Z)) + float(dynamics.jitter) * np.eye(len(dynamics.Z))
            k = np.asarray(kernel.gram(x[None], dynamics.Z))[0]
            A = s * np.linalg.solve(np.linalg.cholesky(K), k)
            P = s**2 * (float(kernel(x, x)) - k @ np.linalg.solve(K, k))
            Sigma = np.linalg.inv(dynamics.q.prec[i])
            mu = Sigma @ np.asarray(dynamics.q.shift[i])
            np.testing.assert_allclose(transition.drift_variance(x)[i], P + A @ Sigma @ A, rtol=1e-7)
            np.testing.assert_allclose(transition.drift(x)[i], dynamics.mean(x)[i] + A @ mu, rtol=1e-7)


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_draws_have_the_moments_of_the_posterior(kernels):
    dynamics = small_dynamics(kernels)
    transition = dynamics.condition()
    x = jnp.asarray([0.3, -0.5])

    many = jnp.broadcast_to(x, (4000, 2))
    draws = dynamics.draw(4000, key=jax.random.key(0))
    f, lam = np.asarray(draws(many)), 1.0 / np.asarray(draws.diffusion)
    # Normalised by lam the drift has variance A Sigma A'; P is left at its mean by a draw.
    scaled = lam * (f - np.asarray(transition.drift(x))) ** 2
    conditional = [_conditional_variance(dynamics, i, x) for i in range(2)]
    for sample, truth in ((f, transition.drift(x)), (lam, transition.precision), (scaled, conditional)):
        se = sample.std(axis=0) / np.sqrt(len(sample))
        assert np.all(np.abs(sample.mean(axis=0) - np.asarray(truth)) < 5 * se)
    central = dynamics.central(3)
    np.testing.assert_allclose(central(many[:3])[2], transition.drift(x), rtol=1e-8)
    np.testing.assert_allclose(central.diffusion[1], 1.0 / transition.precision, rtol=1e-8)


def _conditional_variance(dynamics, i, x):
    """A Sigma A'."""
    kernel = dynamics.kernels[i % len(dynamics.kernels)]
    K = np.asarray(kernel.gram(dynamics.Z, dynamics.Z)) + float(dynamics.jitter) * np.eye(len(dynamics.Z))
    k = np.asarray(kernel.gram(x[None], dynamics.Z))[0]
    A = float(dynamics.amplitude[i]) * np.linalg.solve(np.linalg.cholesky(K), k)
    return A @ np.linalg.inv(dynamics.q.prec[i]) @ A


def test_two_inducing_inputs_at_one_place_leave_the_drift_finite():
    """That is what the jitter is for: k(Z, Z) has no inverse there."""
    Z = np.array([[0.3, -0.5], [0.3, -0.5], [1.0, 0.2]])
    transition = small_dynamics(Z=Z, jitter=1e-6).condition()
    assert np.isfinite(transition.drift(jnp.asarray([0.1, 0.2]))).all()
    assert np.all(transition.drift_variance(jnp.asarray([0.1, 0.2])) > 0)


def test_the_order_of_transitions_does_not_matter():
    dynamics, path = small_dynamics(SEPARATE), fixed_path(15)
    order = np.random.default_rng(0).permutation(15)
    mixed = tuple(a[order] for a in path)
    np.testing.assert_allclose(bound(dynamics, *mixed), bound(dynamics, *path), rtol=1e-12)
    for a, b in zip(
        jax.tree.leaves(statistics_of(dynamics, *mixed)), jax.tree.leaves(statistics_of(dynamics, *path)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("unit", [0.01, 60.0])
def test_the_unit_of_time_does_not_matter(unit):
    """dt -> c dt, f -> f / c, lam -> c lam; since Var f = s^2 / lam, the amplitude goes with c^(-1/2)."""
    dynamics, (x, dx, dt) = small_dynamics(SEPARATE), fixed_path(15)
    root = unit**-0.5
    changed = eqx.tree_at(
        lambda d: (d.amplitude, d.mean.weight, d.mean.bias, d.prior.rate, d.q.rate, d.q.shift),
        dynamics,
        (
            dynamics.amplitude * root,
            dynamics.mean.weight / unit,
            dynamics.mean.bias / unit,
            dynamics.prior.rate / unit,
            dynamics.q.rate / unit,
            dynamics.q.shift * root,
        ),
    )
    np.testing.assert_allclose(bound(changed, x, dx, dt * unit), bound(dynamics, x, dx, dt), rtol=1e-9)
    stepped, _ = dynamics.natural_step(statistics_of(dynamics, x, dx, dt), jnp.asarray(0.3))
    other, _ = changed.natural_step(statistics_of(changed, x, dx, dt * unit), jnp.asarray(0.3))
    np.testing.assert_allclose(other.q.rate * unit, stepped.q.rate, rtol=1e-9)
    np.testing.assert_allclose(other.q.shift / root, stepped.q.shift, rtol=1e-9)


def assert_gradient_is_the_slope(value, tree, step=1e-5):
    """Along random directions, so that every leaf takes part."""
    flat, restore = ravel_pytree(tree)
    # One program for both, because compiling is what takes the time.
    both = jax.jit(jax.value_and_grad(lambda v: value(restore(v))))
    gradient = np.asarray(both(flat)[1])
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.normal(size=flat.shape) / np.sqrt(flat.size)
        slope = (both(flat + step * direction)[0] - both(flat - step * direction)[0]) / (2 * step)
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-4, atol=1e-6 * np.linalg.norm(gradient))


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_gradient_of_the_bound_of_a_path_is_its_slope(kernels):
    dynamics, static = eqx.partition(small_dynamics(kernels, jitter=1e-6), eqx.is_inexact_array)
    path = fixed_path(10)
    assert_gradient_is_the_slope(lambda t: bound(eqx.combine(t[0], static), *t[1]), (dynamics, path))


def test_gradient_through_a_linearised_chain_is_its_slope():
    dynamics, static = eqx.partition(
        small_dynamics(SHARED, jitter=1e-6, diffusion_step="scale-free"), eqx.is_inexact_array
    )
    rng = np.random.default_rng(1)
    n = 9
    loading = jnp.asarray(rng.normal(size=(n, 2)))
    potentials = Potentials(2.0 * loading[:, :, None] * loading[:, None, :], loading)
    initial = Gaussian(jnp.zeros(2), jnp.asarray([[1.0, 0.0], [0.3, 0.8]]))
    dt = jnp.asarray(rng.uniform(0.1, 0.5, size=n - 1))
    points = jnp.asarray(rng.normal(size=(n, 2)))

    def elbo(tree):
        part, potentials, initial = tree
        model = eqx.combine(part, static)
        transition = model.condition()
        chain = Linearised()(transition, initial, potentials, dt, points=points, key=jax.random.key(0))
        paths = chain.sample(2, key=jax.random.key(1))
        x, dx = paths.x[:, :-1].reshape(-1, 2), jnp.diff(paths.x, axis=1).reshape(-1, 2)
        fit, _ = transition.path_terms(x, dx, jnp.tile(dt, 2), jnp.full(2 * (n - 1), 0.5))
        seen = jnp.mean(jax.vmap(potentials.log_value)(paths.x))
        return fit + seen - jnp.mean(paths.log_q) - model.kl()

    assert_gradient_is_the_slope(elbo, (dynamics, potentials, initial))


def test_an_equation_in_turned_coordinates_is_the_same_equation():
    """Mean drift, its covariance and the noise, mapped by hand, with one Sigma for both coordinates."""
    dynamics = small_dynamics(diffusion_step="scale-free")
    q = dynamics.q
    q = eqx.tree_at(lambda q: q.prec, q, jnp.broadcast_to(q.prec[0], q.prec.shape))
    dynamics = eqx.tree_at(lambda d: (d.q, d.amplitude), dynamics, (q, jnp.asarray([0.9, 0.9])))
    Q = np.array([[0.5, 0.3], [0.3, 0.8]])
    _, vectors = np.linalg.eigh(Q)
    T = np.diag([2.0, 0.5]) @ vectors.T
    turned = dynamics.turned(jnp.asarray(T), jnp.asarray(Q))
    old, new = dynamics.condition(), turned.condition()
    np.testing.assert_allclose(turned.diffusion, np.diag(T @ Q @ T.T), rtol=1e-12)
    for x in fixed_path(4)[0]:
        np.testing.assert_allclose(new.drift(T @ x), T @ np.asarray(old.drift(x)), rtol=1e-8)
        # Cov f = Q x (P + A Sigma A'), and that is diagonal in the new coordinates
        spread = float(old.drift_variance(x)[0])
        np.testing.assert_allclose(
            new.drift_variance(T @ x) * turned.diffusion, np.diag(T @ Q @ T.T) * spread, rtol=1e-7
        )
    again = turned.turned(jnp.asarray(np.linalg.inv(T)), jnp.diag(turned.diffusion))
    np.testing.assert_allclose(again.axes, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(again.Z, dynamics.Z, rtol=1e-10)


def test_a_turn_without_correlation_keeps_the_spread_of_every_coordinate():
    """Each with a Sigma and an amplitude of its own; scaled and exchanged."""
    dynamics = small_dynamics(diffusion_step="scale-free")
    T = np.array([[0.0, 3.0], [-0.5, 0.0]])
    turned = dynamics.turned(jnp.asarray(T), jnp.diag(dynamics.diffusion))
    old, new = dynamics.condition(), turned.condition()
    for x in fixed_path(3)[0]:
        before = np.asarray(old.drift_variance(x) * dynamics.diffusion)
        np.testing.assert_allclose(new.drift_variance(T @ x) * turned.diffusion, T**2 @ before, rtol=1e-7)
