"""On a linear model every smoother is the Kalman smoother."""

import cuthbert
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cuthbert.gaussian import kalman as cuthbert_kalman

from lamperti.interfaces import Gaussian, Potentials
from lamperti.smoothers import Linearised, MomentMatching, Particle, SigmaPoint
from lamperti.testing import LinearTransition, check_smoother, check_transition
from oracles import kalman

GAUSSIAN = {
    "sequential": Linearised(),
    "associative": Linearised(scan="associative"),
    "relinearised": Linearised(relinearise=2),
    "moment matching": MomentMatching(),
    "sigma point": SigmaPoint(),
}
WEIGHT = np.array([[-0.5, 1.2, 0.0], [-1.2, -0.4, 0.3], [0.2, 0.0, -0.8]])
BIAS = np.array([0.3, -0.2, 0.1])
DIFFUSION = np.array([0.4, 0.7, 0.2])


@pytest.fixture(scope="module")
def model() -> kalman.LinearModel:
    """Two channels of three coordinates, so that no potential has full rank; channels and spans are missing."""
    rng = np.random.default_rng(5)
    dt = rng.uniform(0.05, 0.5, size=15)
    H, c, r = rng.normal(size=(2, 3)), np.array([0.4, -0.3]), np.array([0.2, 0.05])
    observed = rng.random((16, 2)) < 0.7
    observed[0], observed[7:10] = False, False
    return kalman.simulate(WEIGHT, BIAS, DIFFUSION, dt, H, c, r, observed, rng)


@pytest.fixture(scope="module")
def exact(model):
    return kalman.smooth(model)


def smoothed_by(smoother, model: kalman.LinearModel, key):
    dt = jnp.asarray((model.F[:, 0, 0] - 1.0) / WEIGHT[0, 0])
    weight = np.where(model.mask, 1.0 / model.r, 0.0)
    potentials = Potentials(
        jnp.asarray(np.einsum("tp,pi,pj->tij", weight, model.H, model.H)),
        jnp.asarray((weight * (model.y - model.c)) @ model.H),
    )
    transition = LinearTransition(*map(jnp.asarray, (WEIGHT, BIAS, DIFFUSION)))
    initial = Gaussian(jnp.asarray(model.m0), jnp.asarray(np.linalg.cholesky(model.P0)))
    points = jnp.asarray(np.random.default_rng(0).normal(size=(len(model.y), 3)))

    @eqx.filter_jit
    def run(key):
        chain = smoother(transition, initial, potentials, dt, points=points, key=key)
        return chain.marginals(), chain.last(), chain.log_normaliser(), chain.entropy()

    return run(key)


def log_scale(model: kalman.LinearModel) -> float:
    """What the likelihood has and the potentials lack."""
    each = (model.y - model.c) ** 2 / model.r + np.log(2 * np.pi * model.r)
    return -0.5 * np.sum(each[model.mask])


def test_the_linear_transition_keeps_its_contract():
    check_transition(LinearTransition(*map(jnp.asarray, (WEIGHT, BIAS, DIFFUSION))), 3)


@pytest.mark.parametrize("smoother", [*GAUSSIAN.values(), Particle()], ids=[*GAUSSIAN, "particle"])
def test_smoother_keeps_its_contract(smoother):
    check_smoother(smoother)


@pytest.mark.parametrize("smoother", GAUSSIAN.values(), ids=GAUSSIAN)
def test_gaussian_smoother_is_the_kalman_smoother(smoother, model, exact):
    marginals, last, log_normaliser, entropy = smoothed_by(smoother, model, jax.random.key(0))
    np.testing.assert_allclose(marginals.mean, exact.ms, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(marginals.cov, exact.Ps, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(last.mean, exact.m[-1], rtol=1e-6)
    np.testing.assert_allclose(last.cov, exact.P[-1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(float(log_normaliser) + log_scale(model), exact.log_likelihood, rtol=1e-6)
    np.testing.assert_allclose(entropy, exact.entropy, rtol=1e-6)


def test_cuthbert_gives_the_same_means_covariances_and_likelihood(model):
    # Its first state is not observed: a first step that stands still brings in the first sample.
    n, d = model.y.shape[0], 3
    F = jnp.concatenate([jnp.eye(d)[None], jnp.asarray(model.F)])
    b = jnp.concatenate([jnp.zeros((1, d)), jnp.asarray(model.b)])
    chol_Q = jnp.concatenate([jnp.zeros((1, d, d)), jnp.sqrt(jnp.asarray(model.Q))])
    y = jnp.asarray(np.where(model.mask, model.y, np.nan))

    def dynamics(k):
        return F[k], b[k], chol_Q[k]

    def observation(k):
        return jnp.asarray(model.H), jnp.asarray(model.c), jnp.diag(jnp.sqrt(jnp.asarray(model.r))), y[k]

    start = jnp.asarray(np.linalg.cholesky(model.P0))
    kalman_filter = cuthbert_kalman.build_filter(jnp.asarray(model.m0), start, dynamics, observation)
    steps = jnp.arange(n)

    @jax.jit
    def run():
        filtered = cuthbert.filter(kalman_filter, steps, kalman_filter.init_prepare())
        return filtered, cuthbert.smoother(cuthbert_kalman.build_smoother(dynamics), filtered)

    filtered, smoothed = run()
    marginals, last, log_normaliser, _ = smoothed_by(Linearised(), model, jax.random.key(0))
    np.testing.assert_allclose(marginals.mean, smoothed.mean[1:], rtol=1e-6, atol=1e-8)
    theirs = smoothed.chol_cov @ jnp.swapaxes(smoothed.chol_cov, 1, 2)
    np.testing.assert_allclose(marginals.cov, theirs[1:], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(last.mean, filtered.mean[-1], rtol=1e-6)
    likelihood = filtered.log_normalizing_constant[-1]
    np.testing.assert_allclose(float(log_normaliser) + log_scale(model), likelihood, rtol=1e-6)
