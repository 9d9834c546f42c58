"""Chains: scans that agree, gaps, products of potentials, and how particles converge."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.interfaces import AffineStep, Potentials
from lamperti.math.gaussian import log_density
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


def particle_paths(transition, initial, potentials, dt):
    points = jnp.zeros_like(potentials.information)
    chain = Particle(50)(transition, initial, potentials, dt, points=points, key=jax.random.key(3))
    return chain.sample(20, key=jax.random.key(4))


def test_where_the_particle_chain_is_the_posterior_no_sampled_path_gives_it_a_gradient():
    problem = linear_problem(LENGTH, seed=4)
    step = jax.vmap(problem.transition.expected_log_density)

    def bound(moving):
        paths = particle_paths(*moving)
        target = jax.vmap(
            lambda x: (
                log_density(x[0], problem.initial.mean, problem.initial.chol)
                + jnp.sum(step(x[:-1], x[1:], problem.dt))
                + problem.potentials.log_value(x)
            )
        )(paths.x)
        return jnp.mean(target - paths.log_q), paths.x

    (_, x), still = jax.jit(jax.value_and_grad(bound, has_aux=True))(problem[:4])
    moves = jax.jit(jax.grad(lambda moving: jnp.sum(particle_paths(*moving).x)))(problem[:4])
    for g, m in zip(jax.tree.leaves(still), jax.tree.leaves(moves), strict=True):
        assert np.abs(m).max() > 1e-3, "the paths do not depend on this parameter: the test says nothing"
        np.testing.assert_allclose(g, 0.0, atol=1e-9 * np.abs(np.asarray(x)).max() * (1 + np.abs(m).max()))


def test_the_derivative_of_a_single_particle_state_is_that_of_its_gaussian():
    problem = linear_problem(LENGTH)
    precision, information = problem.potentials.precision[:1], problem.potentials.information[:1]

    def mean_state(h):
        return jnp.mean(
            particle_paths(problem.transition, problem.initial, Potentials(precision, h), problem.dt[:0]).x[:, 0],
            axis=0,
        )

    exact = np.linalg.inv(np.linalg.inv(np.asarray(problem.initial.cov)) + np.asarray(precision[0]))
    np.testing.assert_allclose(jax.jacobian(mean_state)(information)[:, 0], exact, rtol=1e-8)
