"""Closed-form expectations against quadrature, Monte Carlo and automatic differentiation."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamperti.kernels
from lamperti._errors import CapabilityError
from lamperti.kernels import (
    Constant,
    Linear,
    Mapped,
    Matern32,
    Periodic,
    SquaredExponential,
    has_expectations,
    prepare,
    prepare_cross,
    require_expectations,
)

expectations = eqx.filter_jit(lamperti.kernels.expectations)
cross_moment = eqx.filter_jit(lambda left, right, mean, cov, z: prepare_cross(left, right, z).second(mean, cov))


def kernels(dim):
    short, long = np.linspace(0.8, 1.2, dim), np.linspace(2.5, 1.5, dim)
    se, se2 = SquaredExponential(short, 1.3), SquaredExponential(long, 0.6)
    linear, constant = Linear(np.linspace(0.4, 0.9, dim)), Constant(0.7)
    return {
        "se": se,
        "se shared": SquaredExponential(1.1, 1.3),
        "linear": linear,
        "constant": constant,
        "scaled": 2.5 * se,
        "se + se": se + se2,
        "se + linear": se + linear,
        "se + constant": se + constant,
        "linear + linear": linear + Linear(0.2),
        "everything": 0.5 * (se + 3.0 * linear + constant) + 2.0 * se2,
        "mapped": Mapped(se + linear, jnp.asarray(np.eye(dim) * 0.8 + 0.5 * np.eye(dim, k=1))),
    }


NAMES = list(kernels(1))


def gaussian(dim, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim)) * 0.4 + 0.4 * np.eye(dim)
    return jnp.asarray(rng.normal(size=dim)), jnp.asarray(root @ root.T + 0.05 * np.eye(dim))


def inducing(m, dim, seed=10):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(m, dim)) * 1.5)


def gauss_hermite(mean, cov, order=80):
    """Nodes and weights of a product rule for N(mean, cov), in plain NumPy."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    dim = len(mean)
    grid = np.array(list(itertools.product(nodes, repeat=dim)))
    weight = np.array([np.prod(w) for w in itertools.product(weights / weights.sum(), repeat=dim)])
    return np.asarray(mean) + grid @ np.linalg.cholesky(cov).T, weight


@eqx.filter_jit
def evaluate(kernel, x, z):
    """k(x, z) and its slope in x, at every node."""
    row = lambda a: kernel.gram(a[None], z)[0]  # noqa: E731
    return jax.vmap(row)(x), jax.vmap(jax.jacfwd(row))(x)


@pytest.mark.parametrize(("name", "dim"), [*((name, 2) for name in NAMES), ("se", 1), ("everything", 1)])
def test_moments_agree_with_gauss_hermite_quadrature(name, dim):
    kernel, z, (mean, cov) = kernels(dim)[name], inducing(4, dim), gaussian(dim)
    x, weight = gauss_hermite(mean, cov)
    values, slopes = evaluate(kernel, jnp.asarray(x), z)

    moments = expectations(kernel, mean, cov, z)

    np.testing.assert_allclose(moments.first, weight @ values, rtol=1e-6)
    np.testing.assert_allclose(moments.gradient, np.einsum("n,nmd->md", weight, slopes), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(moments.second, (weight * values.T) @ values, rtol=1e-6)


@pytest.mark.parametrize("name", ["se", "everything"])
def test_moments_agree_with_monte_carlo(name):
    dim, n = 3, 200_000
    kernel, z, (mean, cov) = kernels(dim)[name], inducing(4, dim), gaussian(dim)
    x = np.random.default_rng(1).multivariate_normal(mean, cov, size=n)
    values = np.asarray(kernel.gram(jnp.asarray(x), z))
    moments = expectations(kernel, mean, cov, z)

    def within_five_standard_errors(samples, expected):
        error = np.abs(samples.mean(axis=0) - np.asarray(expected))
        assert np.all(error < 5 * samples.std(axis=0) / np.sqrt(n))

    within_five_standard_errors(values, moments.first)
    within_five_standard_errors(values[:, :, None] * values[:, None, :], moments.second)
    centred = (x - np.asarray(mean))[:, :, None] * values[:, None, :]
    within_five_standard_errors(centred, cov @ moments.gradient.T)


@pytest.mark.parametrize("name", ["se", "linear", "everything"])
def test_mean_gradient_is_the_derivative_of_the_mean(name):
    kernel, z, (mean, cov) = kernels(2)[name], inducing(4, 2), gaussian(2)
    slope = jax.jit(jax.jacfwd(lambda m: lamperti.kernels.expectations(kernel, m, cov, z).first))(mean)
    np.testing.assert_allclose(expectations(kernel, mean, cov, z).gradient, slope, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_a_certain_input_gives_the_kernel_itself(name):
    kernel, z, (mean, _) = kernels(2)[name], inducing(4, 2), gaussian(2)
    moments = expectations(kernel, mean, 1e-20 * jnp.eye(2), z)
    row = kernel.gram(mean[None], z)[0]
    np.testing.assert_allclose(moments.first, row, rtol=1e-10)
    np.testing.assert_allclose(moments.second, jnp.outer(row, row), rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["se", "se + se", "everything"]))
def test_covariance_of_the_kernel_vector_is_positive_semidefinite(seed, name):
    kernel, z, (mean, cov) = kernels(2)[name], inducing(4, 2, seed), gaussian(2, seed)
    moments = expectations(kernel, mean, cov, z)
    spread = np.asarray(moments.second - jnp.outer(moments.first, moments.first))
    # Given cov, x carries part of it already: what is left after regression on x is a covariance, too.
    left = spread - np.asarray(moments.gradient @ cov @ moments.gradient.T)
    assert np.linalg.eigvalsh(left)[0] > -1e-10 * np.abs(moments.second).max()
    np.testing.assert_allclose(moments.second, moments.second.T, rtol=1e-12)


def test_scaling_a_sum_scales_every_moment():
    parts, z, (mean, cov) = kernels(2), inducing(4, 2), gaussian(2)
    whole = expectations(3.0 * parts["se + linear"], mean, cov, z)
    plain = expectations(parts["se + linear"], mean, cov, z)
    np.testing.assert_allclose(whole.first, 3.0 * plain.first, rtol=1e-12)
    np.testing.assert_allclose(whole.gradient, 3.0 * plain.gradient, rtol=1e-12)
    np.testing.assert_allclose(whole.second, 9.0 * plain.second, rtol=1e-12)


@pytest.mark.parametrize("name", ["se", "linear", "everything"])
def test_cross_moment_of_a_kernel_with_itself_is_its_second_moment(name):
    kernel, z, (mean, cov) = kernels(2)[name], inducing(4, 2), gaussian(2)
    cross = cross_moment(kernel, kernel, mean, cov, z)
    np.testing.assert_allclose(cross, expectations(kernel, mean, cov, z).second, rtol=1e-10)


@pytest.mark.parametrize("right", ["linear", "se + se"])
def test_cross_moment_of_two_kernels_agrees_with_quadrature(right):
    left, right = kernels(2)["se + constant"], kernels(2)[right]
    z, (mean, cov) = inducing(4, 2), gaussian(2)
    x, weight = gauss_hermite(mean, cov)
    expected = (weight * np.asarray(left.gram(jnp.asarray(x), z)).T) @ right.gram(jnp.asarray(x), z)
    np.testing.assert_allclose(cross_moment(left, right, mean, cov, z), expected, rtol=1e-6)
    np.testing.assert_allclose(cross_moment(right, left, mean, cov, z), expected.T, rtol=1e-6)


def test_prepared_moments_run_in_a_scan_under_vmap_and_grad():
    kernel, z, (mean, cov) = kernels(2)["se + linear"], inducing(4, 2), gaussian(2)

    def loss(kernel, means):
        prepared = prepare(kernel, z)

        def step(total, scale):
            moments = jax.vmap(lambda m: prepared.moments(m, scale * cov))(means)
            return total + jnp.mean(moments.second) + jnp.mean(moments.first), None

        return jax.lax.scan(step, jnp.zeros(()), jnp.linspace(0.5, 1.5, 3))[0]

    means = mean + inducing(4, 2, seed=3)
    run = eqx.filter_jit(eqx.filter_value_and_grad(loss))
    value, gradient = run(kernel, means)
    single = [expectations(kernel, m, s * cov, z) for s in (0.5, 1.0, 1.5) for m in means]
    expected = sum(jnp.mean(s.second) + jnp.mean(s.first) for s in single) / 4
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    bigger = eqx.tree_at(lambda k: k.left.variance, kernel, kernel.left.variance + 1e-5)
    smaller = eqx.tree_at(lambda k: k.left.variance, kernel, kernel.left.variance - 1e-5)
    numeric = (run(bigger, means)[0] - run(smaller, means)[0]) / 2e-5
    np.testing.assert_allclose(gradient.left.variance, numeric, rtol=1e-7)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", ["se", "everything"])
def test_moments_and_their_gradients_never_call_lapack(name):
    kernel, z, (mean, cov) = kernels(3)[name], inducing(4, 3), gaussian(3)

    def loss(m):
        return jnp.sum(expectations(kernel, m, cov, z).second)

    program = str(jax.make_jaxpr(jax.vmap(jax.grad(loss)))(jnp.stack([mean, mean])))
    assert "dot_general" in program
    assert not any(call in program for call in ("cholesky", "triangular_solve", "lu[", "eigh"))


@pytest.mark.parametrize("name", NAMES)
def test_kernels_with_closed_forms_say_so(name):
    assert has_expectations(kernels(2)[name])
    require_expectations(kernels(2)[name])


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Matern32(1.0), "Matern32"),
        (SquaredExponential(1.0) + 2.0 * Matern32(1.0), "Matern32"),
        (Periodic(1.0, 1.0) + Linear(1.0), "Periodic"),
        (SquaredExponential(1.0) * Linear(1.0), "Product"),
    ],
)
def test_kernels_without_closed_forms_are_refused_with_the_way_out(kernel, name):
    assert not has_expectations(kernel)
    expected = f"kernel expectations, which {name} does not have. Use Linearised\\(\\) or SigmaPoint\\(\\)"
    with pytest.raises(CapabilityError, match=expected):
        prepare(kernel, inducing(3, 2))
