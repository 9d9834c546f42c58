"""Chains: scans that agree, gaps, products of potentials, and how particles converge."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.interfaces import AffineStep, Potentials
from lamperti.smoothers import Linearised, Particle
from lamperti.testing import dense_path
from lamperti.testing._smoothers import linear_problem

LENGTH = 14


@eqx.filter_jit
def run(smoother, problem):
    chain = smoother(
        problem.transition,
        problem.initial,
        problem.potentials,
        problem.dt,
        points=jnp.zeros_like(problem.potentials.information),
        key=jax.random.key(1),
    )
    paths = chain.sample(5, key=jax.random.key(2))
    return paths, chain.entropy(), chain.log_normaliser(), chain.marginals()


def test_associative_scan_equals_sequential_scan_samples_included():
    problem = linear_problem(LENGTH)
    paths, entropy, log_z, marginals = run(Linearised(), problem)
    paths_2, entropy_2, log_z_2, marginals_2 = run(Linearised(scan="associative"), problem)
    np.testing.assert_allclose(paths_2.x, paths.x, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(paths_2.log_q, paths.log_q, rtol=1e-8)
    np.testing.assert_allclose(entropy_2, entropy, rtol=1e-8)
    np.testing.assert_allclose(log_z_2, log_z, rtol=1e-8)
    np.testing.assert_allclose(marginals_2.mean, marginals.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(marginals_2.cov, marginals.cov, rtol=1e-8, atol=1e-8)


def test_a_gap_in_the_data_widens_the_marginals():
    problem = linear_problem(LENGTH, seed=2)
    loading = jax.random.normal(jax.random.key(0), (LENGTH, 2))
    full = Potentials(2.0 * loading[:, :, None] * loading[:, None, :], loading)
    keep = (jnp.arange(LENGTH) < 5) | (jnp.arange(LENGTH) >= 9)
    whole = run(Linearised(), problem._replace(potentials=full))[-1].cov
    gappy = run(Linearised(), problem._replace(potentials=full.masked(keep)))[-1].cov
    added = np.linalg.eigvalsh(np.asarray(gappy - whole))
    assert added.min() > -1e-12, "losing data made a marginal narrower"
    assert np.all(added[5:9].max(axis=1) > 0.01), "the states of the gap are as sure as if they had been seen"


def test_potentials_are_added_not_averaged():
    problem = linear_problem(LENGTH, seed=3)
    halves = Potentials(0.5 * problem.potentials.precision, 0.5 * problem.potentials.information)
    whole = run(Linearised(), problem)
    product = run(Linearised(), problem._replace(potentials=halves * halves))
    np.testing.assert_allclose(product[-1].mean, whole[-1].mean, rtol=1e-10)


def test_a_path_of_one_state_is_a_gaussian():
    problem = linear_problem(LENGTH)
    first = Potentials(problem.potentials.precision[:1], problem.potentials.information[:1])
    problem = problem._replace(potentials=first, dt=problem.dt[:0])
    exact = dense_path(problem.initial, AffineStep(*(jnp.zeros((0, 2) + (2,) * k) for k in (1, 0, 1))), first)
    paths, entropy, log_z, _ = run(Linearised(), problem)
    np.testing.assert_allclose(entropy, exact.entropy, rtol=1e-8)
    np.testing.assert_allclose(log_z, exact.log_normaliser, rtol=1e-8)
    np.testing.assert_allclose(paths.log_q, exact.log_density(np.asarray(paths.x)), rtol=1e-8)


def test_particle_error_falls_with_the_square_root_of_the_number_of_particles():
    problem = linear_problem(8, 2, seed=1)
    truth = problem.exact().log_normaliser
    keys = jax.random.split(jax.random.key(0), 64)

    @eqx.filter_jit
    def log_normalisers(smoother):
        def one(key):
            points = jnp.zeros_like(problem.potentials.information)
            return smoother(*problem, points=points, key=key).log_normaliser()

        return jax.lax.map(one, keys)

    few, many = (float(np.sqrt(np.mean((np.asarray(log_normalisers(Particle(k))) - truth) ** 2))) for k in (25, 400))
    # Sixteen times the particles: a quarter of the error, give or take its own error of 9 % a side.
    assert many < 0.4 * few, f"root mean square error {few:.3f} with 25 particles, {many:.3f} with 400"
