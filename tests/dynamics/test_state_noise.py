"""Noise of the motion that depends on the state: its value, its law in paths, and filters beside an exact one on a
grid."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.small_models import SEPARATE, SHARED, small_dynamics

from lamperti._errors import CapabilityError
from lamperti.dynamics.noise_field import FURTHEST
from lamperti.forecasting import roll_out
from lamperti.interfaces import Gaussian, Potentials
from lamperti.kernels import by_name
from lamperti.smoothers import Linearised, Particle, SigmaPoint
from lamperti.smoothers.particle import Cloud, draw_noise, move_particles, proposals
from lamperti.smoothers.sigma_point import sigma_point_step
from lamperti.testing import LinearTransition, check_transition


def with_field(dynamics, scale=1.0, seed=8):
    a = scale * np.random.default_rng(seed).normal(size=dynamics.q.shift.shape)
    return eqx.tree_at(lambda d: d.noise, dynamics, jnp.asarray(a), is_leaf=lambda leaf: leaf is None)


@pytest.mark.parametrize("kernels", [SHARED, SEPARATE], ids=["shared", "separate"])
def test_the_variance_of_a_step_is_the_constant_one_times_the_bounded_exponential_of_the_field(kernels):
    dynamics = with_field(small_dynamics(kernels), scale=3.0)
    x, dt = np.array([0.4, -0.7]), 0.3
    q, Z = dynamics.q, np.asarray(dynamics.Z)
    expected = []
    for d in range(2):
        kernel = kernels[0] if len(kernels) == 1 else kernels[d]
        K = np.array([[float(kernel(jnp.asarray(a), jnp.asarray(b))) for b in Z] for a in Z])
        L = np.linalg.cholesky(K + float(dynamics.jitter) * np.eye(len(Z)))
        k = np.array([float(kernel(jnp.asarray(x), jnp.asarray(z))) for z in Z])
        s = np.linalg.solve(L, k) @ np.asarray(dynamics.noise)[d]
        g = float(q.rate[d] / q.shape[d])
        expected.append(dt * g * np.exp(FURTHEST * np.tanh(s / FURTHEST)))
    found = dynamics.condition().variance(jnp.asarray(x), jnp.asarray(dt))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert abs(np.log(found[0] / found[1])) > 0.1  # the field does something here


def test_a_field_of_zero_is_constant_noise():
    plain = small_dynamics()
    zero = with_field(plain, scale=0.0)
    x, dt = jnp.asarray([0.4, -0.7]), jnp.asarray(0.3)
    np.testing.assert_array_equal(plain.condition().variance(x, dt), zero.condition().variance(x, dt))
    assert plain.condition().constant_noise and not zero.condition().constant_noise


def test_a_transition_with_a_field_keeps_the_contract_and_refuses_the_closed_form():
    check_transition(with_field(small_dynamics((by_name("matern52", 2, 1.0),))).condition(), 2)
    with pytest.raises(CapabilityError, match="Use SigmaPoint"):
        with_field(small_dynamics()).condition().pusher()


def test_a_step_of_a_free_path_has_the_noise_of_the_place_it_starts_from():
    dynamics = with_field(small_dynamics())
    n = 40_000
    places = jnp.asarray([[0.4, -0.7], [-1.0, 0.5]])
    draws = dynamics.central(n)
    for x in places:
        steps = np.asarray(roll_out(draws, jnp.tile(x, (n, 1)), n_steps=1, key=jax.random.key(1)))[:, 0] - np.asarray(x)
        expected = np.asarray(dynamics.condition().variance(x, jnp.asarray(1.0)))
        np.testing.assert_allclose(steps.var(axis=0), expected, rtol=5 * np.sqrt(2 / n))


def test_noise_is_averaged_over_sigma_points():
    mean, cov = jnp.asarray([0.3, -0.2]), jnp.asarray([[0.4, 0.1], [0.1, 0.3]])
    step = sigma_point_step(lambda x, dt: x, lambda x: jnp.diag(x**2), mean, cov, jnp.asarray(1.0))
    np.testing.assert_allclose(jnp.diagonal(step.Omega), mean**2 + jnp.diagonal(cov), rtol=1e-12)  # E[x^2], exactly


class Growing(LinearTransition):
    """One coordinate whose noise is larger to the right."""

    def variance(self, x, dt):
        return dt * self.diffusion * jnp.exp(1.5 * jnp.tanh(x))

    @property
    def constant_noise(self) -> bool:
        return False

    def linearise(self, x, dt):
        step = super().linearise(x, dt)
        return eqx.tree_at(lambda s: s.Omega, step, jnp.diag(self.variance(x, dt)))


LAW = Growing(jnp.asarray([[-0.3]]), jnp.asarray([0.1]), jnp.asarray([0.2]))
GRID = np.linspace(-8.0, 10.0, 1801)


@pytest.fixture(scope="module")
def seen():
    """Thirty samples with noise of 1, and the exact answer on a grid: log of the normaliser, smoothed means."""
    rng = np.random.default_rng(4)
    x, y = np.zeros(30), np.zeros(30)
    for k in range(30):
        if k:
            sd = np.sqrt(0.2 * np.exp(1.5 * np.tanh(x[k - 1])))
            x[k] = 0.7 * x[k - 1] + 0.1 + sd * rng.normal()
        y[k] = x[k] + rng.normal()
    precision, information = np.ones(30), y
    width = GRID[1] - GRID[0]
    sd = np.sqrt(0.2 * np.exp(1.5 * np.tanh(GRID)))
    to = np.exp(-0.5 * ((GRID[:, None] - (0.7 * GRID + 0.1)) / sd) ** 2) / (np.sqrt(2 * np.pi) * sd)  # [next, from]
    psi = np.exp(-0.5 * precision[:, None] * GRID**2 + information[:, None] * GRID)
    forward = [np.exp(-0.5 * GRID**2) / np.sqrt(2 * np.pi) * psi[0]]
    log_z = 0.0
    for k in range(1, 30):
        total = forward[-1].sum() * width
        log_z += np.log(total)
        forward.append(to @ (forward[-1] / total) * width * psi[k])
    log_z += np.log(forward[-1].sum() * width)
    back = [np.ones_like(GRID)]
    for k in range(29, 0, -1):
        one = to.T @ (psi[k] * back[0]) * width
        back.insert(0, one / one.max())
    weights = np.stack([f * b for f, b in zip(forward, back, strict=True)])
    means = weights @ GRID / weights.sum(axis=1)
    potentials = Potentials(jnp.asarray(precision)[:, None, None], jnp.asarray(information)[:, None])
    return potentials, log_z, means


def smoothed(smoother, potentials, law=LAW):
    initial = Gaussian(jnp.zeros(1), jnp.eye(1))
    points = potentials.information / potentials.precision[:, :, 0]

    @eqx.filter_jit
    def run(key):
        chain = smoother(law, initial, potentials, jnp.ones(29), points=points, key=key)
        return chain.log_normaliser(), chain.marginals().mean[:, 0]

    log_z, means = zip(*(run(key) for key in jax.random.split(jax.random.key(0), 4)), strict=True)
    return np.asarray(log_z), np.asarray(means)


def test_the_particle_filter_with_noise_of_the_state_is_that_of_a_grid(seen):
    potentials, log_z, means = seen
    found, paths = smoothed(Particle(2000), potentials)
    np.testing.assert_allclose(found.mean(), log_z, atol=0.1)
    np.testing.assert_allclose(paths.mean(axis=0), means, atol=0.03)
    constant, _ = smoothed(Particle(2000), potentials, LinearTransition(LAW.weight, LAW.bias, LAW.diffusion))
    assert log_z - constant.mean() > 0.25  # .345 on the grid: the noise of the place matters here


def test_a_resampled_particle_moves_with_the_noise_of_the_place_it_came_from():
    """Half of the particles are at the left, where noise is small, and weigh nothing."""
    n = 4000
    x = jnp.repeat(jnp.asarray([[-5.0], [5.0]]), n // 2, axis=0)
    cloud = Cloud(x, jnp.where(x[:, 0] < 0, -60.0, -jnp.log(n / 2)))
    silent = Potentials(jnp.zeros((2, 1, 1)), jnp.zeros((2, 1)))
    step = jax.tree.map(lambda a: a[0], proposals(LAW, silent, jnp.ones(1), jnp.ones(1, dtype=bool)))
    moved = move_particles(LAW, cloud, step, draw_noise(jax.random.key(3), x.shape)).cloud.x
    expected = 0.2 * np.exp(1.5 * np.tanh(5.0))
    np.testing.assert_allclose(np.var(moved), expected, rtol=5 * np.sqrt(2 / n))


@pytest.mark.parametrize("smoother", [SigmaPoint(), Linearised(relinearise=2)], ids=["sigma point", "linearised"])
def test_gaussian_chains_with_noise_of_the_state_come_near_it(smoother, seen):
    potentials, log_z, means = seen
    found, paths = smoothed(smoother, potentials)
    np.testing.assert_allclose(found[0], log_z, atol=1.0)
    np.testing.assert_allclose(paths[0], means, atol=0.2)
