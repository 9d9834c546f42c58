"""The factorisation and its hand-written derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from lamperti.math.factor import factorise


def positive_definite(n, seed=0):
    a = np.random.default_rng(seed).normal(size=(n, n))
    return jnp.asarray(a @ a.T + n * np.eye(n))


def test_factor_holds_cholesky_inverse_and_log_determinant():
    K = positive_definite(6)
    factor = factorise(K)
    np.testing.assert_allclose(factor.chol, np.linalg.cholesky(K), rtol=1e-12)
    np.testing.assert_allclose(factor.chol_inv @ factor.chol, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(factor.inverse, np.linalg.inv(K), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(factor.log_det, np.linalg.slogdet(K)[1], rtol=1e-12)


def test_derivative_of_the_factor_is_that_of_jax_cholesky():
    K, dK = positive_definite(6), positive_definite(6, seed=1)
    factor, tangent = jax.jvp(factorise, (K,), (dK,))
    chol, dchol = jax.jvp(jnp.linalg.cholesky, (K,), (dK,))
    np.testing.assert_allclose(factor.chol, chol, rtol=1e-12)
    np.testing.assert_allclose(tangent.chol, dchol, rtol=1e-9, atol=1e-12)
    inverse = solve_triangular(chol, np.eye(6), lower=True)
    np.testing.assert_allclose(tangent.chol_inv, -inverse @ np.asarray(dchol) @ inverse, rtol=1e-9, atol=1e-12)


def test_gradient_of_the_log_determinant_is_the_inverse():
    K = positive_definite(5)
    gradient = jax.grad(lambda k: factorise(k).log_det)(K)
    np.testing.assert_allclose(gradient, np.linalg.inv(K), rtol=1e-9, atol=1e-12)


def test_second_derivatives_pass_through_the_factor():
    K, dK = positive_definite(4), positive_definite(4, seed=1)

    def curvature(f):
        return jax.jvp(jax.grad(f), (K,), (dK,))[1]

    found = curvature(lambda k: factorise(k).log_det)
    inverse = np.linalg.inv(K)
    np.testing.assert_allclose(found, -inverse @ np.asarray(dK) @ inverse, rtol=1e-8, atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_gives_nan():
    assert np.isnan(factorise(-jnp.eye(3)).chol).any()
