"""The Normal-Gamma family: divergence, natural steps, and the edge of the cone."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from lamperti.math.normal_gamma import Statistics, kl, natural_step, posterior, prior, weights
from oracles import normal_gamma as oracle
from small_models import random_normal_gamma

D, M = 2, 4
PRIOR = prior(jnp.asarray([2.0, 3.5]), jnp.asarray([1.0, 0.6]), M)


def test_divergence_from_the_prior_to_itself_is_zero():
    assert abs(float(kl(PRIOR, weights(PRIOR), PRIOR))) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_divergence_is_positive_elsewhere_and_equals_simulation(seed):
    q = random_normal_gamma(seed, D, M)
    rng = np.random.default_rng(seed)
    n, total = 20_000, 0.0
    for i in range(D):
        qi = oracle.Posterior(*(np.asarray(a[i]) for a in (q.shape, q.rate, q.shift, q.prec)))
        pi = oracle.Posterior(*(np.asarray(a[i]) for a in (PRIOR.shape, PRIOR.rate, PRIOR.shift, PRIOR.prec)))
        lam = rng.gamma(qi.shape, 1.0 / qi.rate, size=n)
        chol = np.linalg.cholesky(np.linalg.inv(qi.prec))
        v = np.linalg.solve(qi.prec, qi.shift) + rng.normal(size=(n, M)) @ chol.T / np.sqrt(lam)[:, None]
        total = total + oracle.log_density(v, lam, qi) - oracle.log_density(v, lam, pi)
    value = float(kl(q, weights(q), PRIOR))
    assert value > 0
    assert abs(total.mean() - value) < 5 * total.std() / np.sqrt(n)


def test_weights_are_the_moments_of_v():
    q = random_normal_gamma(0, D, M)
    w = weights(q)
    for i in range(D):
        Sigma = np.linalg.inv(q.prec[i])
        np.testing.assert_allclose(w.Sigma[i], Sigma, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(w.mu[i], Sigma @ np.asarray(q.shift[i]), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(w.log_det_prec[i], np.linalg.slogdet(q.prec[i])[1], rtol=1e-10)


def regression(n=25, seed=0):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(D, n, M)), rng.normal(size=(D, n))
    statistics = Statistics(
        jnp.asarray(float(n)),
        jnp.asarray((r**2).sum(axis=1)),
        jnp.asarray(np.einsum("dnm,dn->dm", X, r)),
        jnp.asarray(np.einsum("dnm,dnk->dmk", X, X)),
    )
    return X, r, statistics


def test_posterior_is_the_conjugate_one():
    X, r, statistics = regression()
    q = posterior(PRIOR, statistics)
    for i in range(D):
        exact = oracle.posterior(X[i], r[i], float(PRIOR.shape[i]), float(PRIOR.rate[i]))
        for name, value in exact._asdict().items():
            np.testing.assert_allclose(getattr(q, name)[i], value, rtol=1e-9, atol=1e-10, err_msg=name)


def test_a_step_of_size_zero_stays_and_the_posterior_is_a_fixed_point():
    _, _, statistics = regression()
    q = random_normal_gamma(2, D, M)
    stayed, halvings = natural_step(q, PRIOR, statistics, jnp.asarray(0.0))
    best = posterior(PRIOR, statistics)
    fixed, _ = natural_step(best, PRIOR, statistics, jnp.asarray(0.37))
    assert int(halvings) == 0
    for name in ("shape", "rate", "shift", "prec"):
        np.testing.assert_allclose(getattr(stayed, name), getattr(q, name), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(getattr(fixed, name), getattr(best, name), rtol=1e-9, atol=1e-12)


def inconsistent(size):
    """A slope without the squares that it implies: no data have these statistics."""
    return Statistics(jnp.asarray(4.0), jnp.zeros(D), jnp.full((D, M), size), jnp.zeros((D, M, M)))


def test_a_step_out_of_the_cone_is_halved_and_counted():
    statistics = inconsistent(2.0)
    q, halvings = natural_step(PRIOR, PRIOR, statistics, jnp.asarray(1.0))
    # From the prior, a step r has rate b - r^2 |shift|^2 / 2: the first r = 2^-j that keeps it positive.
    b, energy = float(PRIOR.rate.min()), 4 * 2.0**2
    expected = next(j for j in range(20) if b - 0.5 * energy * 4.0**-j > 0)
    assert expected > 0
    assert int(halvings) == expected
    np.testing.assert_allclose(q.rate, PRIOR.rate - 0.5 * energy * 4.0**-expected, rtol=1e-10)
    np.testing.assert_allclose(q.shift, 2.0 * 2.0**-expected, rtol=1e-10)


@pytest.mark.parametrize("size", [1e9, np.nan, np.inf])
def test_a_step_that_cannot_be_mended_is_not_taken(size):
    q, halvings = natural_step(PRIOR, PRIOR, inconsistent(size), jnp.asarray(1.0))
    assert int(halvings) == 12
    for name in ("shape", "rate", "shift", "prec"):
        np.testing.assert_allclose(getattr(q, name), getattr(PRIOR, name), rtol=1e-10)


def test_a_step_to_a_precision_that_is_not_positive_definite_is_halved():
    statistics = eqx.tree_at(lambda t: t.gram, regression()[2], jnp.full((D, M, M), -3.0))
    q, halvings = natural_step(PRIOR, PRIOR, statistics, jnp.asarray(1.0))
    assert int(halvings) > 0
    assert np.linalg.eigvalsh(q.prec).min() > 0
