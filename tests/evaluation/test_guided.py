"""The filter without observation noise, against exact answers."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from lamperti.data import systems
from lamperti.data.systems import System
from lamperti.evaluation import kalman, oracles, scores

DT, SUBSTEPS = 0.3, 6
ROW = np.array([1.0, 0.0])
ROTATION = np.array([[-0.3, -2.0], [2.0, -0.3]])
PENDULUM = np.array([[0.0, 1.0], [-2.0, -0.6]])
KICKS = {"observable": (ROTATION, [0.7, 0.7]), "speed": (PENDULUM, [0.0, 0.8])}


def chain(matrix, gains):
    """A linear system that does not know that it is one, and the exact law of its Euler steps."""
    h = DT / SUBSTEPS
    step, Q = np.eye(2) + h * matrix, np.zeros((2, 2))
    for _ in range(SUBSTEPS):
        Q = step @ Q @ step.T + h * np.diag(np.square(gains))
    F = np.linalg.matrix_power(step, SUBSTEPS)
    start = stats.multivariate_normal(cov=kalman.solve_discrete_lyapunov(F, Q))
    system = System(
        "chain", 2, lambda x: x @ matrix.T, lambda x: np.broadcast_to(np.array(gains), x.shape),
        lambda n, rng: start.rvs(n, random_state=rng), {}, max_step=1.0,
    )  # fmt: skip
    return system, F, Q


def contexts_of(system, n_series, n_times, seed):
    rng, x = np.random.default_rng(seed), system.initial(n_series, np.random.default_rng([seed, 1]))
    seen = [x[:, 0]]
    for _ in range(n_times - 1):
        x = system.step(x, DT, rng, SUBSTEPS)
        seen.append(x[:, 0])
    return np.stack(seen, axis=1)


@pytest.mark.parametrize("kicked", sorted(KICKS))
def test_weights_of_linear_steps_are_the_density_of_the_observation(kicked):
    system, F, Q = chain(*KICKS[kicked])
    x = np.broadcast_to([0.4, -1.1], (3, 50, 2)).copy()
    y = F[0] @ x[0, 0] + np.sqrt(Q[0, 0]) * np.array([-1.0, 0.3, 2.5])
    move = oracles.guided_move(system, DT, 1e-6, SUBSTEPS)
    moved, log_w = move(x, y, 0.0, np.random.default_rng(0))
    exact = stats.norm.logpdf(y, F[0] @ x[0, 0], np.sqrt(Q[0, 0]))
    np.testing.assert_allclose(log_w, np.broadcast_to(exact[:, None], log_w.shape), atol=1e-6)
    np.testing.assert_allclose(moved[..., 0], np.broadcast_to(y[:, None], log_w.shape), atol=1e-9)
    assert moved[..., 1].std(axis=1).min() > 0.1


def test_weights_average_to_the_density_where_noise_depends_on_the_state():
    growth = System(
        "growth", 1, lambda x: x * (2.0 - x), lambda x: 0.5 * x, lambda n, rng: np.ones((n, 1)), {}, max_step=1.0
    )
    start, y, h = 0.5, 0.9, 0.2

    def law(x):
        return stats.norm(x + h * x * (2 - x), np.sqrt(h) * 0.5 * x)

    exact = quad(lambda middle: law(start).pdf(middle) * law(middle).pdf(y), 0.01, 2.0)[0]
    move = oracles.guided_move(growth, 2 * h, 1e-6, 2)
    _, log_w = move(np.full((1, 40_000, 1), start), np.array([y]), 0.0, np.random.default_rng(1))
    w = np.exp(log_w)
    assert w.std() > 0.01 * w.mean(), "steps that depend on the state do not have equal weights"
    assert abs(w.mean() - exact) < 5 * w.std() / np.sqrt(w.size)


@pytest.mark.parametrize("kicked", sorted(KICKS))
def test_without_noise_the_particles_follow_the_exact_filter(kicked):
    system, F, Q = chain(*KICKS[kicked])
    contexts = contexts_of(system, 4, 24, seed=2)
    contexts[1, 18:20] = np.nan
    exact = kalman.kalman_forecast(F, Q, ROW, 0.0, contexts, 3)
    runs = np.stack(
        [
            oracles.particle_forecast(
                system, contexts, DT, 0.0, 3, n_particles=800, n_samples=200, seed=s, substeps=SUBSTEPS
            )
            for s in range(30)
        ]
    )
    for found, truth in ((runs.mean(axis=2), exact.mean), (runs.std(axis=2, ddof=1), exact.sd)):
        error = found.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert np.all(np.abs(found.mean(axis=0) - truth) < 5 * error)


def test_without_noise_a_particle_lies_on_the_observation_and_few_are_lost():
    for name, dt in (("van_der_pol", 0.2), ("rossler", 0.2), ("lotka_volterra", 0.01), ("fitzhugh_nagumo", 1.0)):
        made = getattr(systems, name)(8, 25, dt=dt, seed=3)
        y = made.clean[..., 0]
        found = oracles.particle_filter(made.system, y, dt, 0.0, n_particles=100, rng=np.random.default_rng(4))
        np.testing.assert_allclose(found.x[..., 0], np.repeat(y[:, -1:], 100, axis=1), atol=1e-8 * y.std())
        assert np.median(found.ess[:, 5:]) > 40, name


def test_a_nonlinear_filter_is_the_limit_of_bootstrap_filters_with_less_and_less_noise():
    made = systems.double_well(3, 9, dt=0.6, noise=1.0, substeps=8, seed=5)
    y = made.clean[..., 0]

    def hidden(noise, proposal, n_particles, n_runs):
        runs = [
            oracles.particle_filter(
                made.system, y, 0.6, noise * y.std(), n_particles=n_particles, substeps=8, proposal=proposal,
                rng=np.random.default_rng([6, s]),
            ).mean[:, -1, 1]
            for s in range(n_runs)
        ]  # fmt: skip
        return np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(n_runs)

    led, led_error = hidden(0.0, "guided", 2000, 10)
    rough, _ = hidden(0.08, "bootstrap", 10_000, 4)
    fine, fine_error = hidden(0.02, "bootstrap", 10_000, 10)
    # a quarter of the noise leaves less than a quarter of its effect
    allowed = 0.25 * np.abs(rough - fine) + 5 * np.hypot(led_error, fine_error)
    assert np.all(np.abs(led - fine) < allowed)
    assert allowed.max() < 0.12 < np.abs(led - hidden(0.5, "bootstrap", 2000, 4)[0]).max(), "noise matters here"


def test_forecasts_one_step_ahead_without_noise_are_calibrated():
    made = systems.van_der_pol(300, 25, dt=0.2, seed=7)
    contexts, truth = made.clean[:, :24, 0], made.clean[:, 24:]
    samples = oracles.particle_forecast(made.system, contexts, 0.2, 0.0, 1, n_particles=240, n_samples=60)
    assert abs(scores.covered(samples, truth, 0.5).mean() - 0.5) < 5 * np.sqrt(0.25 / 300)
    assert scores.pit_uniformity(scores.pit(samples, truth)).p_value > 1e-3


def test_who_knows_that_there_is_no_noise_forecasts_better_than_who_assumes_a_little():
    made = systems.double_well(250, 19, dt=0.2, noise=0.3, substeps=5, seed=15)
    contexts, truth = made.clean[:, :18, 0], made.clean[:, 18:]

    def next_step(proposal, noise_sd, n_particles):
        rng = np.random.default_rng(16)
        cloud = oracles.particle_filter(
            made.system, contexts, 0.2, noise_sd, n_particles=n_particles, substeps=5, proposal=proposal, rng=rng
        ).x
        ahead = made.system.step(cloud.reshape(-1, 2), 0.2, rng, 5).reshape(cloud.shape)
        return scores.crps(ahead[..., None, :1], truth)

    gain = scores.horizon_mean(next_step("bootstrap", 0.02 * contexts.std(), 400) - next_step("guided", 0.0, 100))
    assert gain.mean.item() > 5 * gain.se.item()


def test_a_species_that_was_seen_to_die_out_is_dead_in_every_particle():
    made = systems.lotka_volterra(120, 60, dt=0.02, seed=8)
    y = made.clean[..., 0]
    dead = np.flatnonzero((y[:, -1] == 0) & (y[:, 20] > 0))[:4]
    assert len(dead) == 4
    found = oracles.particle_filter(made.system, y[dead], 0.02, 0.0, n_particles=200, rng=np.random.default_rng(9))
    assert np.all(found.x[..., 0] == 0) and np.all(found.x[..., 1] >= 0)


def test_a_rare_start_is_found_among_the_draws_of_the_stationary_law():
    made = systems.rossler(100, 30, dt=0.2, seed=7)
    burst = [made.states[:, 0, 2].argmax()]  # x3 is near 0 nearly always
    found = [
        oracles.particle_filter(
            made.system, made.clean[burst, :, 0], 0.2, 0.0, n_particles=100, rng=np.random.default_rng([17, s])
        ).mean[0]
        for s in range(3)
    ]
    assert made.states[burst[0], 0, 2] > 10
    np.testing.assert_allclose(np.array(found)[:, -1, 1:], np.tile(made.states[burst[0], -1, 1:], (3, 1)), atol=0.6)


def test_a_filter_that_cannot_explain_a_sample_says_so_and_goes_on():
    system = System(
        "still", 2, lambda x: np.zeros_like(x), lambda x: np.broadcast_to([0.0, 1.0], x.shape),
        lambda n, rng: rng.normal(size=(n, 2)), {}, max_step=1.0,
    )  # fmt: skip
    contexts = np.array([[0.1, 0.1, 0.5, 0.5]])
    found = oracles.particle_filter(system, contexts, 0.1, 0.0, n_particles=20, rng=np.random.default_rng(10))
    assert found.ess[0, 2] == 0 and np.isfinite(found.x).all()


def test_little_noise_is_guided_too_and_much_is_not():
    contexts = contexts_of(chain(*KICKS["observable"])[0], 20, 10, seed=11)
    sd = contexts.std()
    assert oracles.proposal_for(contexts, 0.0) == oracles.proposal_for(contexts, 0.01 * sd) == "guided"
    assert oracles.proposal_for(contexts, 0.1 * sd) == "bootstrap"
    assert oracles.enough_particles(contexts, 0.0, 2000) == 500
    assert oracles.enough_particles(contexts, 0.0, 100, least=60) == 60
    assert oracles.enough_particles(contexts, 0.1 * sd, 2000) == 2000


def test_guided_and_bootstrap_filters_agree_where_both_can_be_used():
    system, F, Q = chain(*KICKS["speed"])
    contexts = contexts_of(system, 5, 20, seed=12)
    noise = 0.3 * contexts.std()
    contexts = contexts + noise * np.random.default_rng(13).normal(size=contexts.shape)
    exact = kalman.kalman_filter(F, Q, ROW, noise**2, contexts)
    for proposal in ("guided", "bootstrap"):
        runs = np.stack(
            [
                oracles.particle_filter(
                    system, contexts, DT, noise, n_particles=300, substeps=SUBSTEPS, proposal=proposal,
                    rng=np.random.default_rng([14, s]),
                ).mean[:, -1]
                for s in range(30)
            ]
        )  # fmt: skip
        error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert np.all(np.abs(runs.mean(axis=0) - exact.mean) < 5 * error), proposal
