"""Fixed paths: the posterior of drift and precision, and its evidence, are known exactly."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import normal_gamma as oracle
from small_models import SEPARATE, SHARED, bound, fixed_path, random_normal_gamma, small_dynamics, statistics_of

KERNELS = {"shared": SHARED, "separate": SEPARATE}


def whitened_inputs(dynamics, x):
    """A(x) of each coordinate, from its definition."""
    features = []
    for i in range(2):
        kernel = dynamics.kernels[i % len(dynamics.kernels)]
        K = np.asarray(kernel.gram(dynamics.Z, dynamics.Z)) + float(dynamics.jitter) * np.eye(len(dynamics.Z))
        k = np.asarray(kernel.gram(x, dynamics.Z))
        features.append(float(dynamics.amplitude[i]) * np.linalg.solve(np.linalg.cholesky(K), k.T).T)
    return features


def exact_posterior(dynamics, x, dx, dt):
    root = np.sqrt(np.asarray(dt))
    centred = np.asarray(dx) - np.asarray(dt)[:, None] * np.asarray(dynamics.mean(x))
    return [
        oracle.posterior(root[:, None] * A, centred[:, i] / root, float(dynamics.prior.shape[i]), float(b))
        for i, (A, b) in enumerate(zip(whitened_inputs(dynamics, x), dynamics.prior.rate, strict=True))
    ]


def assert_is_posterior(q, exact, atol=1e-5):
    for i, e in enumerate(exact):
        np.testing.assert_allclose(q.shape[i], e.shape, atol=atol)
        np.testing.assert_allclose(q.rate[i], e.rate, atol=atol)
        np.testing.assert_allclose(q.shift[i], e.shift, atol=atol)
        np.testing.assert_allclose(q.prec[i], e.prec, atol=atol)


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_natural_step_of_size_one_is_the_exact_posterior(kernels):
    dynamics, path = small_dynamics(kernels), fixed_path(30)
    stepped, halvings = dynamics.natural_step(statistics_of(dynamics, *path), jnp.asarray(1.0))
    assert int(halvings) == 0
    assert_is_posterior(stepped.q, exact_posterior(dynamics, *path))


def test_small_natural_steps_converge_to_the_exact_posterior():
    dynamics, path = small_dynamics(SEPARATE), fixed_path(30)
    step = eqx.filter_jit(lambda d: d.natural_step(statistics_of(d, *path), jnp.asarray(0.4))[0])
    exact = exact_posterior(dynamics, *path)
    for _ in range(40):
        dynamics = step(dynamics)
    assert_is_posterior(dynamics.q, exact)


def test_a_scale_free_diffusion_is_left_alone_by_the_natural_step():
    dynamics, path = small_dynamics(diffusion_step="scale-free"), fixed_path(30)
    stepped, _ = dynamics.natural_step(statistics_of(dynamics, *path), jnp.asarray(1.0))
    np.testing.assert_allclose(1.0 / stepped.posterior().mean_precision, dynamics.diffusion)
    exact = exact_posterior(dynamics, *path)
    np.testing.assert_allclose(stepped.q.prec, np.stack([e.prec for e in exact]), atol=1e-5)


def exact_gp(kernels):
    """Inducing inputs at the points themselves: the sparse process is the full one."""
    rng = np.random.default_rng(8)
    x = jnp.asarray(rng.permutation(np.stack(np.meshgrid([-2.0, 0.0, 2.0], [-1.5, 0.0, 1.5]), -1).reshape(-1, 2)))
    _, dx, dt = fixed_path(len(x))
    dynamics = small_dynamics(kernels, Z=x, jitter=1e-11)
    evidence = 0.0
    centred = np.asarray(dx) - np.asarray(dt)[:, None] * np.asarray(dynamics.mean(x))
    for i in range(2):
        K = float(dynamics.amplitude[i]) ** 2 * np.asarray(kernels[i % len(kernels)].gram(x, x))
        a, b = float(dynamics.prior.shape[i]), float(dynamics.prior.rate[i])
        evidence += oracle.path_log_evidence(K, centred[:, i], np.asarray(dt), a, b)
    return dynamics, (x, dx, dt), evidence


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_bound_at_the_posterior_is_the_evidence_of_the_path(kernels):
    dynamics, path, evidence = exact_gp(kernels)
    best, _ = dynamics.natural_step(statistics_of(dynamics, *path), jnp.asarray(1.0))
    np.testing.assert_allclose(bound(best, *path), evidence, rtol=1e-6)


def test_bound_never_exceeds_the_evidence():
    dynamics, path, evidence = exact_gp(SHARED)
    for seed in range(20):
        q = random_normal_gamma(seed, 2, len(dynamics.Z))
        assert bound(eqx.tree_at(lambda d: d.q, dynamics, q), *path) < evidence


def test_fewer_inducing_inputs_lower_the_bound():
    dynamics, path, evidence = exact_gp(SHARED)
    sparse = small_dynamics(SHARED, Z=dynamics.Z[:4], jitter=1e-11)
    best, _ = sparse.natural_step(statistics_of(sparse, *path), jnp.asarray(1.0))
    assert bound(best, *path) < evidence - 0.01
