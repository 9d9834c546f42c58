"""Smoothers on drifts that are not linear: what their approximations are by definition."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.interfaces import Gaussian, Potentials
from lamperti.smoothers import Linearised
from lamperti.smoothers.sigma_point import sigma_point_step
from small_models import small_dynamics


def test_a_square_on_sigma_points_has_the_moments_of_the_points():
    """x' = (x1^2, x2) at four points sqrt(2) sds from m: mean m^2 + s^2, slope 2 m, and a rest of s^4."""
    m, s = np.array([0.7, -0.4]), np.array([0.5, 0.8])
    noise = np.diag([0.01, 0.02])
    step = sigma_point_step(lambda x, dt: jnp.stack([x[0] ** 2, x[1]]), lambda x: jnp.asarray(noise), jnp.asarray(m),
                            jnp.diag(jnp.asarray(s**2)), jnp.asarray(1.0))  # fmt: skip
    np.testing.assert_allclose(step.F, [[2 * m[0], 0.0], [0.0, 1.0]], atol=1e-12)
    np.testing.assert_allclose(step.F @ m + step.b, [m[0] ** 2 + s[0] ** 2, m[1]], rtol=1e-12)
    np.testing.assert_allclose(step.Omega, noise + np.diag([s[0] ** 4, 0.0]), atol=1e-12)


def test_linearising_anew_is_linearising_at_the_smoothed_means():
    transition = small_dynamics().condition()
    rng = np.random.default_rng(1)
    n = 8
    loading = jnp.asarray(rng.normal(size=(n, 2)))
    potentials = Potentials(2.0 * loading[:, :, None] * loading[:, None, :], loading)
    initial = Gaussian(jnp.zeros(2), jnp.asarray([[1.0, 0.0], [0.3, 0.8]]))
    dt = jnp.asarray(rng.uniform(0.1, 0.5, size=n - 1))

    @eqx.filter_jit
    def means(smoother, points):
        return smoother(transition, initial, potentials, dt, points=points, key=jax.random.key(0)).means()

    guess = jnp.asarray(rng.normal(size=(n, 2)))
    first = means(Linearised(), guess)
    second = means(Linearised(), first)
    assert np.abs(second - first).max() > 1e-3  # the test has something to see
    np.testing.assert_allclose(means(Linearised(relinearise=1), guess), second, rtol=1e-10)
    np.testing.assert_allclose(means(Linearised(relinearise=2), guess), means(Linearised(), second), rtol=1e-10)
