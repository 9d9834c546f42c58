import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation import kalman, oracles, scores

DT = 0.2
DECAY, FREQUENCY = 0.3, 2.0
SYSTEM = systems.ornstein_uhlenbeck(decay=DECAY, frequency=FREQUENCY).system
ROW = np.array([1.0, 0.0])


def correlation(lag):
    """Autocovariance of the observable of SYSTEM, whose variance is 1."""
    return np.exp(-DECAY * DT * lag) * np.cos(FREQUENCY * DT * lag)


def simulate(n_paths, n_times, noise_sd, seed):
    made = systems.ornstein_uhlenbeck(
        n_paths, n_times, DT, decay=DECAY, frequency=FREQUENCY, observation_noise=0.0, seed=seed
    )
    clean = made.clean[..., 0]
    return clean, clean + noise_sd * np.random.default_rng([seed, 1]).standard_normal(clean.shape)


def exact_forecast(contexts, noise_sd, horizon):
    F, Q = SYSTEM.transition_matrix(DT), SYSTEM.process_covariance(DT)
    return kalman.kalman_forecast(F, Q, ROW, noise_sd**2, contexts, horizon)


def dense_conditioning(context, noise_sd, horizon):
    """Mean and sd of the next values from the joint Gaussian of all samples, by one big solve."""
    n = len(context)
    lag = np.abs(np.subtract.outer(np.arange(n + horizon), np.arange(n + horizon)))
    joint = correlation(lag)
    seen, ahead = np.flatnonzero(np.isfinite(context)), np.arange(n, n + horizon)
    gain = np.linalg.solve(joint[np.ix_(seen, seen)] + noise_sd**2 * np.eye(len(seen)), joint[np.ix_(seen, ahead)]).T
    cov = joint[np.ix_(ahead, ahead)] - gain @ joint[np.ix_(seen, ahead)]
    return gain @ context[seen], np.sqrt(np.diag(cov))


@pytest.mark.parametrize("noise_sd", [0.0, 0.3])
def test_kalman_forecast_is_dense_gaussian_conditioning_with_gaps_too(noise_sd):
    _, contexts = simulate(3, 25, noise_sd, seed=0)
    contexts[1, 5:12] = np.nan
    contexts[2, -1] = np.nan
    forecast = exact_forecast(contexts, noise_sd, 8)
    for r, context in enumerate(contexts):
        mean, sd = dense_conditioning(context, noise_sd, 8)
        np.testing.assert_allclose(forecast.mean[r, :, 0], mean, atol=1e-9)
        np.testing.assert_allclose(forecast.sd[r, :, 0], sd, atol=1e-9)


def test_kalman_forecast_is_calibrated_and_scores_what_it_promises():
    noise_sd = 0.1
    clean, noisy = simulate(3000, 50, noise_sd, seed=1)
    forecast, truth = exact_forecast(noisy[:, :40], noise_sd, 10), clean[:, 40:, None]
    score = scores.horizon_mean(forecast.crps(truth))
    promised = forecast.sd.mean(axis=0) / np.sqrt(np.pi)  # expected CRPS of a calibrated Gaussian
    assert np.all(np.abs(score.mean - promised) < 5 * score.se)
    drawn = scores.horizon_mean(scores.crps(forecast.samples(20, seed=2), truth))
    assert np.all(np.abs(drawn.mean - promised) < 5 * drawn.se)


def test_particle_forecast_of_a_linear_system_agrees_with_kalman():
    noise_sd = 0.1
    _, contexts = simulate(6, 20, noise_sd, seed=3)
    contexts[0, 8:14] = np.nan
    exact = exact_forecast(contexts, noise_sd, 10)
    runs = np.stack(
        [
            oracles.particle_forecast(SYSTEM, contexts, DT, noise_sd, 10, n_particles=800, n_samples=400, seed=s)
            for s in range(40)
        ]
    )
    # the spread over runs is the Monte-Carlo error, filter included
    means = runs.mean(axis=2)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert np.all(np.abs(means.mean(axis=0) - exact.mean) < 5 * error)
    sds = runs.std(axis=2, ddof=1)
    error = sds.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert np.all(np.abs(sds.mean(axis=0) - exact.sd) < 5 * error)


def test_particle_forecast_without_noise_is_at_the_limit_and_well_fed():
    clean, _ = simulate(100, 45, 0.0, seed=4)
    contexts, truth = clean[:, :40], clean[:, 40:, None]
    samples = oracles.particle_forecast(SYSTEM, contexts, DT, 0.0, 5, n_particles=1000, n_samples=200)
    limit = exact_forecast(contexts, 0.0, 5).crps(truth)
    gap = scores.horizon_mean(scores.crps(samples, truth) - limit)
    assert np.all(np.abs(gap.mean) < 5 * gap.se)
    assert np.all(gap.se < 0.02 * limit.mean(axis=0))
    filtered = oracles.particle_filter(SYSTEM, contexts, DT, 0.0, n_particles=250, rng=np.random.default_rng(0))
    assert np.median(filtered.ess) > 125


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_kalman_without_any_noise_is_right_in_every_unit(unit):
    made = systems.excited_oscillator(4, 120, seed=14)
    F, Q = made.system.transition_matrix(1.0), made.system.process_covariance(1.0)
    forecast = kalman.kalman_forecast(
        F, Q, ROW, 0.0, unit * made.clean[:, :20, 0], 100, initial_cov=unit**2 * np.eye(2)
    )
    np.testing.assert_allclose(forecast.mean / unit, made.clean[:, 20:], atol=1e-11)
    assert np.all(forecast.sd < 1e-6 * unit)
    _, contexts = simulate(3, 25, 0.0, seed=0)
    small = kalman.kalman_forecast(
        SYSTEM.transition_matrix(DT), unit**2 * SYSTEM.process_covariance(DT), ROW, 0.0, unit * contexts, 8
    )
    usual = exact_forecast(contexts, 0.0, 8)
    np.testing.assert_allclose(small.mean / unit, usual.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small.sd / unit, usual.sd, rtol=1e-9)


def test_filtered_covariances_stay_covariances_without_noise():
    made = systems.excited_oscillator(3, 200, seed=15)
    F, Q = made.system.transition_matrix(1.0), made.system.process_covariance(1.0)
    for contexts, law in (
        (made.clean[..., 0], (F, Q)),
        (simulate(3, 200, 0.0, seed=16)[0], (SYSTEM.transition_matrix(DT), SYSTEM.process_covariance(DT))),
    ):
        found = kalman.kalman_filter(*law, ROW, 0.0, contexts, initial_cov=np.eye(2))
        np.testing.assert_array_equal(found.cov, found.cov.transpose(0, 2, 1))
        assert np.linalg.eigvalsh(found.cov).min() > -1e-16
        np.testing.assert_allclose(found.means @ ROW, contexts, atol=1e-12)


def test_filtered_means_of_the_particles_are_those_of_kalman():
    noise_sd = 0.3
    _, contexts = simulate(20, 30, noise_sd, seed=11)
    F, Q = SYSTEM.transition_matrix(DT), SYSTEM.process_covariance(DT)
    exact = kalman.kalman_filter(F, Q, ROW, noise_sd**2, contexts)
    assert exact.means.shape == (20, 30, 2)
    np.testing.assert_array_equal(exact.means[:, -1], exact.mean)
    found = oracles.particle_filter(
        SYSTEM, contexts, DT, noise_sd, n_particles=1000, rng=np.random.default_rng(12)
    ).mean
    sd = np.sqrt(np.diag(exact.cov[0]))
    # resampling adds to the error of a thousand independent draws; three times is ample, and far below sd itself
    assert np.all(np.abs(found - exact.means).mean(axis=(0, 1)) < 3 * sd / np.sqrt(1000))


def test_kalman_follows_a_growing_oscillation_from_its_law_of_starts():
    made = systems.excited_oscillator(4, 60, observation_noise=0.05, seed=13)
    F, Q = made.system.transition_matrix(1.0), made.system.process_covariance(1.0)
    contexts, truth = np.stack([s.values[:50, 0] for s in made.series]), made.clean[:, 50:]
    with pytest.raises(LampertiError, match="initial_cov"):
        kalman.kalman_forecast(F, Q, ROW, made.noise_sd[0] ** 2, contexts, 10)
    forecast = kalman.kalman_forecast(F, Q, ROW, made.noise_sd[0] ** 2, contexts, 10, initial_cov=np.eye(2))
    assert np.all(np.abs(forecast.mean - truth) < 5 * forecast.sd)
    assert np.all(forecast.sd < made.noise_sd[0])
    exact = kalman.kalman_forecast(F, Q, ROW, 0.0, made.clean[:, :50, 0], 10, initial_cov=np.eye(2))
    np.testing.assert_allclose(exact.mean, truth, atol=1e-6)


def test_particle_paths_hang_together_in_time():
    _, contexts = simulate(4, 20, 0.1, seed=5)
    samples = oracles.particle_forecast(SYSTEM, contexts, DT, 0.1, 50, n_particles=2000, n_samples=1000)[..., 0]
    late, later = samples[:, :, -2], samples[:, :, -1]
    late, later = (v - v.mean(axis=1, keepdims=True) for v in (late, later))
    assert np.sum(late * later) / np.sum(late**2) == pytest.approx(correlation(1), abs=5 / np.sqrt(4 * 1000))


def test_a_seed_gives_the_same_forecast_again():
    _, contexts = simulate(2, 10, 0.1, seed=6)
    first, again, other = (
        oracles.particle_forecast(SYSTEM, contexts, DT, 0.1, 3, n_particles=50, n_samples=10, seed=s) for s in (1, 1, 2)
    )
    assert first.shape == (2, 10, 3, 1)
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_contexts_far_from_every_particle_do_not_break_the_weights():
    contexts = np.full((2, 5), 1e3)
    samples = oracles.particle_forecast(SYSTEM, contexts, DT, 0.01, 2, n_particles=50, n_samples=10)
    assert np.isfinite(samples).all()


def test_oracles_refuse_what_they_cannot_do():
    _, contexts = simulate(2, 10, 0.1, seed=7)
    with pytest.raises(LampertiError, match="stationary law"):
        kalman.kalman_forecast(np.eye(2), np.eye(2), ROW, 0.1, contexts, 3)
    with pytest.raises(LampertiError, match="Take one channel"):
        oracles.particle_forecast(SYSTEM, contexts[..., None], DT, 0.1, 3)
    with pytest.raises(LampertiError, match="horizon"):
        oracles.particle_forecast(SYSTEM, contexts, DT, 0.1, 0)
    with pytest.raises(LampertiError, match="n_samples"):
        oracles.particle_forecast(SYSTEM, contexts, DT, 0.1, 3, n_particles=10, n_samples=20)


def test_stationary_draws_of_a_system_that_must_be_run_in_follow_its_long_run():
    made = systems.van_der_pol(200, 200, 0.2, seed=8)
    draws = oracles.stationary_draws(made.system, 3000, 0.2, np.random.default_rng(9))
    assert draws.shape == (3000, 2)
    per_path = made.states.std(axis=1)  # one sd a recording, all of one law
    error = per_path.std(axis=0) / np.sqrt(len(per_path)) + draws.std(axis=0) / np.sqrt(2 * oracles.POOL_PATHS)
    assert np.all(np.abs(draws.std(axis=0) - made.states.std(axis=(0, 1))) < 5 * error)


def test_particle_forecast_of_a_nonlinear_system_is_calibrated():
    made = systems.van_der_pol(150, 40, 0.2, observation_noise=0.1, seed=10)
    contexts = np.stack([s.values[:30, 0] for s in made.series])
    samples = oracles.particle_forecast(
        made.system, contexts, 0.2, made.noise_sd[0], 10, n_particles=400, n_samples=99, substeps=10
    )
    truth = made.clean[:, 30:]
    hits = scores.horizon_mean(scores.covered(samples, truth, 0.9)).mean
    assert np.all(np.abs(hits - 0.9) < 5 * np.sqrt(0.9 * 0.1 / 150))
    assert scores.crps(samples, truth)[:, 0].mean() < 0.1 * made.clean.std()


def test_what_nobody_can_foresee_is_the_noise_of_a_first_order_process_in_any_coordinates():
    F, Q = np.array([[0.9, 0.2], [0.0, 0.5]]), np.diag([0.3, 0.2])
    assert kalman.innovation_variance(F[:1, :1], Q[:1, :1], np.array([2.0])) == pytest.approx(4 * 0.3, rel=1e-6)
    T = np.array([[1.0, 0.4], [-0.3, 2.0]])
    inverse = np.linalg.inv(T)
    turned = kalman.innovation_variance(T @ F @ inverse, T @ Q @ T.T, inverse.T @ np.array([1.0, 0.0]))
    assert turned == pytest.approx(kalman.innovation_variance(F, Q, np.array([1.0, 0.0])), rel=1e-6)
    # the second state is seen only through the first, which leaves more than its own noise open
    assert turned > 0.3
