"""The start of training and its rates: regressions and averages with answers in plain NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from lamperti._params import realise
from lamperti.data.windows import Track
from lamperti.kernels import SquaredExponential
from lamperti.train.schedule import Schedule
from lamperti.train.start import (
    LinearPicture,
    linear_picture,
    roughness,
    start_dynamics,
    start_emission,
    start_initial,
    start_skip,
)

N, WINDOW, DIM = 400, 4, 2
SLOPE, DRIFT = np.array([[-0.4, 0.7], [-0.6, -0.2]]), np.array([0.1, -0.3])
Z = np.array([[0.5, -0.4], [-0.8, 0.2], [0.1, 0.9]])


def picture(noise: float = 0.0) -> LinearPicture:
    """States and increments of a linear equation over irregular steps; long steps where x1 is large."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM))
    dt = np.where(x[:, 0] > 0, 1.8, 0.4) * rng.uniform(0.8, 1.2, size=N)
    dx = dt[:, None] * (x @ SLOPE.T + DRIFT) + noise * np.sqrt(dt)[:, None] * rng.normal(size=(N, DIM))
    y = x @ np.array([[0.8, 0.3]]).T + 0.5 + 0.1 * rng.normal(size=(N, 1))
    return LinearPicture(np.zeros(WINDOW), np.eye(DIM, WINDOW), x, dx, dt, y, np.ones((N, 1), bool), np.array([0.004]))


def started(of: LinearPicture, **options):
    usual = dict(share=jnp.asarray(1000 / N), linear_mean=True, diffusion_step="natural", jitter=1e-8)
    return realise(start_dynamics(of, jnp.asarray(Z), (SquaredExponential([1.0, 1.5], 0.9),), **(usual | options)))


def test_the_first_drift_is_that_of_a_linear_equation_whatever_the_steps():
    mean = started(picture()).mean
    np.testing.assert_allclose(mean.weight, SLOPE, atol=0.005)  # a ridge of a thousandth
    np.testing.assert_allclose(mean.bias, DRIFT, atol=0.005)


def test_the_first_prior_is_centred_on_the_residuals_per_unit_of_time():
    of = picture(noise=0.5)
    found = started(of)
    residual = of.dx - of.dt[:, None] * (of.x @ np.asarray(found.mean.weight).T + np.asarray(found.mean.bias))
    g = (residual**2 / of.dt[:, None]).mean(axis=0)
    np.testing.assert_allclose(found.prior.rate / found.prior.shape, g, rtol=1e-9)
    np.testing.assert_allclose(found.amplitude**2 * g, (residual / of.dt[:, None]).var(axis=0), rtol=1e-9)


def test_the_first_posterior_is_the_conjugate_one_of_all_transitions():
    """1000 transitions, of which 400 are looked at."""
    of = picture(noise=0.5)
    found, scale = started(of), 1000 / N

    def k(a, b):
        return 0.9 * np.exp(-0.5 * (((a[:, None] - b) / np.array([1.0, 1.5])) ** 2).sum(axis=-1))

    white = k(of.x, Z) @ np.linalg.inv(np.linalg.cholesky(k(Z, Z) + 1e-8 * np.eye(3))).T
    residual = of.dx - of.dt[:, None] * (of.x @ np.asarray(found.mean.weight).T + np.asarray(found.mean.bias))
    for i, s in enumerate(np.asarray(found.amplitude)):
        A = s * white
        np.testing.assert_allclose(found.q.prec[i], np.eye(3) + scale * (of.dt[:, None] * A).T @ A, rtol=1e-6)
        np.testing.assert_allclose(found.q.shift[i], scale * A.T @ residual[:, i], rtol=1e-6)
        assert float(found.q.shape[i]) == pytest.approx(0.5 + 0.5 * 1000)


def test_a_zero_mean_leaves_the_whole_drift_to_the_process():
    found = started(picture(), linear_mean=False)
    assert not np.any(found.mean.weight) and not np.any(found.mean.bias)
    assert found.mean.fixed


def test_roughness_is_the_variance_of_white_noise_with_such_third_differences():
    """One spike has third differences 1, -3, 3, -1, whose squares add up to 20."""
    n = 30
    spike = np.zeros((n, 2))
    spike[10, 0], spike[20, 1] = 1.0, 3.0
    track = Track(spike, np.ones((n, 2), bool), np.ones(n - 1))
    np.testing.assert_allclose(roughness([track]), np.array([1.0, 9.0]) / (n - 3), rtol=1e-12)
    parabola = Track(np.arange(n, dtype=float)[:, None] ** 2, np.ones((n, 1), bool), np.ones(n - 1))
    np.testing.assert_allclose(roughness([parabola]), 0.0, atol=1e-20)


def test_the_first_emission_is_the_least_squares_fit_with_the_noise_that_roughness_allows():
    of = picture()
    fit, residual = np.linalg.lstsq(np.column_stack([of.x, np.ones(N)]), of.y[:, 0], rcond=None)[:2]
    found = start_emission(of)
    np.testing.assert_allclose(found.C[0], fit[:2], rtol=1e-5)
    np.testing.assert_allclose(found.c[0], fit[2], rtol=1e-5)
    assert residual[0] / N > 0.004
    np.testing.assert_allclose(found.noise, 0.004, rtol=1e-4)


def test_states_increments_steps_and_samples_of_the_picture_belong_together():
    """Each state is that of the window that ends at its sample; its increment leads to the next, over its step."""
    rng = np.random.default_rng(3)
    n = 60
    y = np.cumsum(rng.normal(size=(n, 2)), axis=0)
    track = Track(y, np.ones((n, 2), bool), rng.uniform(0.5, 1.5, size=n - 1))
    found = linear_picture([track], dim=DIM, window=WINDOW, n_components=3, rng=rng)
    windows = np.array([y[k - WINDOW + 1 : k + 1].ravel() for k in range(WINDOW - 1, n)])
    x = ((windows - found.offset) @ found.projection.T)[:, :DIM]
    np.testing.assert_allclose(found.x, x[:-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.dx, np.diff(x, axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.y, y[WINDOW - 1 : -1])
    np.testing.assert_array_equal(found.dt, track.dt[WINDOW - 1 :])
    skip = start_skip(found, DIM, WINDOW)
    np.testing.assert_allclose(skip.scores(jnp.asarray(y)) @ skip.weight.T, x, rtol=1e-9, atol=1e-12)
    first = start_initial(found)
    np.testing.assert_allclose(first.mean, x[:-1].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(first.second, x[:-1].T @ x[:-1] / (n - WINDOW), rtol=1e-9)


def test_rates_are_large_at_first_then_constant_then_fall_along_a_cosine():
    schedule = Schedule(rho=0.4, start_rho=0.9, start_iterations=5)
    rho = [float(schedule.at(i, spent).rho) for i, spent in ((4, 0.0), (5, 0.0), (500, 0.5), (750, 0.75), (999, 1.0))]
    assert rho == pytest.approx([0.9, 0.4, 0.4, 0.4 * (0.05 + 0.95 / 2), 0.4 * 0.05])
    learning = [float(schedule.at(5, spent, 0.3).learning) for spent in (0.2, 0.5, 0.75, 1.0)]
    assert learning == pytest.approx([0.3, 0.3, 0.3 * (0.05 + 0.95 / 2), 0.3 * 0.05])
