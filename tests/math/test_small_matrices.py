"""Unrolled linear algebra against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamperti.math import gaussian, small


def positive_definite(*shape, d, seed=0):
    a = np.random.default_rng(seed).normal(size=(*shape, d, d))
    return a @ np.swapaxes(a, -1, -2) + np.eye(d)


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_cholesky_inverse_and_determinant_agree_with_lapack(d):
    a = positive_definite(3, 2, d=d)
    np.testing.assert_allclose(small.cholesky(jnp.asarray(a)), np.linalg.cholesky(a), rtol=1e-10, atol=1e-12)
    inverse, log_det = small.inverse_pd(jnp.asarray(a))
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(a)[1], rtol=1e-9, atol=1e-12)
    lower = np.linalg.cholesky(a)
    np.testing.assert_allclose(small.lower_inverse(jnp.asarray(lower)), np.linalg.inv(lower), rtol=1e-8, atol=1e-11)


def test_products_broadcast_like_matmul():
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(4, 1, 3, 2)), rng.normal(size=(5, 2, 6)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(small.matmul(jnp.asarray(a), jnp.asarray(b)), a @ b, rtol=1e-10, atol=1e-12)
    expected = np.einsum("abij,bj->abi", np.broadcast_to(a, (4, 5, 3, 2)), v)
    np.testing.assert_allclose(small.matvec(jnp.asarray(a), jnp.asarray(v)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("d", [3, 20])
def test_only_the_lower_triangle_is_read_and_the_rest_of_the_factor_is_zero(d):
    a = positive_definite(d=d)
    spoilt = np.tril(a) + np.triu(np.full((d, d), 7.0), 1)
    found = np.asarray(small.cholesky(jnp.asarray(spoilt)))
    np.testing.assert_allclose(found, np.linalg.cholesky(a), rtol=1e-10, atol=1e-12)
    assert not np.triu(found, 1).any()


@pytest.mark.parametrize("d", [3, 20])
def test_gradient_of_the_inverse_agrees_with_lapack(d):
    a = jnp.asarray(positive_definite(d=d))
    ours = jax.grad(lambda m: jnp.sum(small.inverse_pd(small.symmetrise(m))[0] ** 2))(a)
    theirs = jax.grad(lambda m: jnp.sum(jnp.linalg.inv(small.symmetrise(m)) ** 2))(a)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("d", [2, 20])
def test_a_matrix_that_is_not_positive_definite_gives_nan(d):
    assert np.isnan(small.cholesky(-jnp.eye(d))).any()


def test_gaussian_density_is_that_of_scipy():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    cov, mean, x = positive_definite(d=3), rng.normal(size=3), rng.normal(size=(4, 3))
    found = gaussian.log_density(jnp.asarray(x), jnp.asarray(mean), jnp.asarray(np.linalg.cholesky(cov)))
    np.testing.assert_allclose(found, multivariate_normal(mean, cov).logpdf(x), rtol=1e-10)
