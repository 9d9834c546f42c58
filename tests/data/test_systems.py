"""Simulated systems against what is known of them in closed form or from the literature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import solve_continuous_lyapunov

from lamperti._errors import CapabilityError, ConfigError
from lamperti.data import systems

SMALL = {
    "lorenz": {"substeps": 2},
    "rossler": {"substeps": 20, "dt": 0.5},
    "lotka_volterra": {"substeps": 2},
    "excited_oscillator": {},
    "ornstein_uhlenbeck": {},
    "double_well": {"substeps": 10},
    "van_der_pol": {"substeps": 20},
    "fitzhugh_nagumo": {"substeps": 10},
    "duffing": {"substeps": 10},
    "hindmarsh_rose": {"substeps": 20, "rate": 0.1},
    "brusselator": {"substeps": 20},
    "morris_lecar": {"substeps": 10},
    "beta_cell": {"substeps": 10, "slow_time": 1000.0},
    "electrocardiogram": {"substeps": 4},
    "saturated_double_well": {"substeps": 10},
    "lorenz_transient": {"substeps": 10},
}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_system_keeps_the_same_contract(name):
    make = getattr(systems, name)
    clean = make(n_series=3, n_samples=20, seed=1, **SMALL[name])
    noisy = make(n_series=3, n_samples=20, seed=1, observation_noise=0.1, **SMALL[name])
    other = make(n_series=3, n_samples=20, seed=2, **SMALL[name])
    assert clean.system.name == name and clean.system.parameters
    assert clean.states.shape == (3, 20, clean.system.dimension) and clean.clean.shape == (3, 20, 1)
    np.testing.assert_array_equal(np.stack([s.values for s in clean.series]), clean.clean)
    np.testing.assert_array_equal(clean.clean, clean.system.observe(clean.states))
    np.testing.assert_array_equal(noisy.states, clean.states)
    np.testing.assert_allclose(noisy.noise_sd, 0.1 * clean.clean.std())
    assert not np.array_equal(noisy.series[0].values, clean.series[0].values)
    again = make(n_series=3, n_samples=20, seed=1, **SMALL[name])
    np.testing.assert_array_equal(again.states, clean.states)
    assert not np.any(other.states[:, 0] == clean.states[:, 0])
    x = clean.states[:, -1].copy()
    assert clean.system.drift(x).shape == x.shape
    assert clean.system.diffusion(x).shape in (x.shape, (*x.shape, x.shape[1]))
    stepped = clean.system.step(x, 0.001, np.random.default_rng(0))
    assert stepped.shape == x.shape and np.isfinite(stepped).all()
    np.testing.assert_array_equal(x, clean.states[:, -1])  # stepping leaves its input alone


def test_the_contract_is_asked_of_every_system():
    assert set(SMALL) == {name for name in systems.__all__ if name.islower()}


@pytest.mark.parametrize("name", sorted(set(SMALL) - {"saturated_double_well"}))
def test_the_first_coordinate_is_observed(name):
    states = np.random.default_rng(0).standard_normal((2, 5, 5))
    np.testing.assert_array_equal(getattr(systems, name)(n_samples=2, **SMALL[name]).system.observe(states),
                                  states[..., :1])  # fmt: skip


def test_ornstein_uhlenbeck_has_its_exact_covariance_in_time():
    recording = systems.ornstein_uhlenbeck(4000, 6, dt=0.1, seed=5)
    x0, x5 = recording.states[:, 0], recording.states[:, 5]
    tolerance = 5 * np.sqrt(2 / 4000)
    np.testing.assert_allclose(x0.T @ x0 / 4000, np.eye(2), atol=tolerance)
    decay, angle = np.exp(-0.15), 1.5
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    np.testing.assert_allclose(x5.T @ x0 / 4000, decay * rotation, atol=tolerance)


def test_ornstein_uhlenbeck_gives_its_transition_in_closed_form():
    system = systems.ornstein_uhlenbeck(n_samples=2).system
    np.testing.assert_allclose(np.linalg.eigvals(system.matrix).real, -0.3)
    np.testing.assert_allclose(sorted(np.linalg.eigvals(system.matrix).imag), [-3.0, 3.0])
    np.testing.assert_allclose(system.process_covariance(0.7), (1 - np.exp(-0.6 * 0.7)) * np.eye(2), atol=1e-12)
    F = system.transition_matrix(0.7)
    np.testing.assert_allclose(F @ F.T, np.exp(-0.6 * 0.7) * np.eye(2), atol=1e-12)


def test_systems_that_are_not_linear_refuse_a_transition_matrix():
    with pytest.raises(CapabilityError, match=r"double_well is not linear.*step\(\)"):
        systems.double_well(n_samples=2).system.transition_matrix(0.1)


def test_the_excited_oscillator_follows_its_formula():
    recording = systems.excited_oscillator(2, 500, seed=3)
    t = recording.series[0].times
    np.testing.assert_array_equal(t, np.arange(1, 501))
    z = recording.states[..., 0] + 1j * recording.states[..., 1]
    phase = np.angle(z[:, :1]) - 2 * np.pi / 100
    expected = np.sqrt(2) * np.exp(0.002 * t) * np.cos(2 * np.pi * t / 100 + phase)
    np.testing.assert_allclose(recording.clean[..., 0], expected, rtol=1e-9, atol=1e-9)


def test_the_double_well_keeps_its_stationary_law():
    n = 3000
    recording = systems.double_well(n, 6, dt=1.0, substeps=100, seed=2)
    density = lambda x: np.exp(-(x**4 / 4 - x**2 / 2) / 0.25)  # noqa: E731
    norm = quad(density, -4, 4)[0]
    moment = lambda k: quad(lambda x: x**k * density(x), -4, 4)[0] / norm  # noqa: E731
    for states in (recording.states[:, 0], recording.states[:, -1]):
        place, speed = states.T
        # The Euler step adds at most 1 % of bias to the five standard errors.
        assert abs(np.mean(place**2) - moment(2)) < 0.01 + 5 * np.sqrt((moment(4) - moment(2) ** 2) / n)
        assert abs(np.mean(speed**2) - 0.25) < 0.0025 + 5 * 0.25 * np.sqrt(2 / n)
        assert abs(np.mean(place)) < 5 * np.sqrt(moment(2) / n)


def test_euler_steps_of_a_linear_system_tend_to_the_exact_ones():
    exact = systems.ornstein_uhlenbeck(n_samples=2).system
    euler = systems.System("ou", 2, exact.drift, exact.diffusion, exact.initial, exact.parameters, max_step=0.0005)
    x = np.tile([1.0, -2.0], (4000, 1))
    stepped = euler.step(x, 0.1, np.random.default_rng(0))
    F, Q = exact.transition_matrix(0.1), exact.process_covariance(0.1)
    np.testing.assert_allclose(stepped.mean(0), F @ x[0], atol=5 * np.sqrt(Q[0, 0] / 4000) + 1e-3)
    np.testing.assert_allclose(np.cov(stepped.T), Q, atol=5 * Q[0, 0] * np.sqrt(2 / 4000) + 1e-4)


def test_lorenz_has_the_size_and_symmetry_of_the_attractor():
    states = systems.lorenz(100, 100, dt=0.1, substeps=100, seed=4).states
    x1, x3 = states[..., 0], states[..., 2]
    assert x1.std() == pytest.approx(7.93, abs=0.15)
    assert x3.mean() == pytest.approx(23.6, abs=0.4)
    path_means = x1.mean(axis=1)
    assert abs(path_means.mean()) < 5 * path_means.std() / 10


def test_rossler_with_its_reflection_never_escapes():
    states = systems.rossler(100, 201, dt=0.5, substeps=100, seed=6).states  # 100 time units
    assert np.isfinite(states).all() and np.abs(states[..., :2]).max() < 20 and states[..., 2].max() < 60
    assert states[..., 2].min() >= 0
    assert states[..., 0].std() == pytest.approx(5.1, abs=0.3)


def test_lotka_volterra_noise_is_the_square_root_of_the_reaction_rates():
    system = systems.lotka_volterra(n_samples=2).system
    x1, x2 = 80.0, 120.0
    root = system.diffusion(np.array([[x1, x2]]))[0]
    rates = [[30 * x1 + 0.2 * x1 * x2, -0.2 * x1 * x2], [-0.2 * x1 * x2, 0.2 * x1 * x2 + 18 * x2]]
    np.testing.assert_allclose(root @ root, rates, rtol=1e-12)
    assert np.all(np.linalg.eigvalsh(root) > 0)
    np.testing.assert_allclose(system.drift(np.array([[90.0, 150.0]])), 0.0, atol=1e-9)


def test_an_extinct_species_stays_extinct():
    system = systems.lotka_volterra(n_samples=2).system
    x = system.step(np.array([[0.0, 100.0], [0.0, 0.0], [50.0, 0.0]]), 0.01, np.random.default_rng(0))
    assert x[0, 0] == 0 and x[0, 1] > 0 and np.all(x[1] == 0) and x[2, 1] == 0


def test_lotka_volterra_survives_the_length_of_its_default_recording():
    states = systems.lotka_volterra(200, 121, dt=0.005, substeps=50, seed=7).states
    assert (states >= 0).all()
    assert np.mean(states[:, -1].min(axis=1) == 0) < 0.03
    assert states[..., 0].std() > 20


def test_van_der_pol_cycles_with_its_known_amplitude_and_period():
    x = systems.van_der_pol(20, 400, seed=8, noise=0.05).clean[..., 0]
    assert np.abs(x).max() == pytest.approx(2.02, abs=0.1)
    rises = np.sum((x[:, 1:] > 0) & (x[:, :-1] <= 0))
    assert 20 * 399 * 0.2 / rises == pytest.approx(7.63, abs=0.25)


def test_fitzhugh_nagumo_spikes_repeatedly_and_irregularly():
    v = systems.fitzhugh_nagumo(20, 1000, seed=9).clean[..., 0]
    gaps = np.concatenate([np.diff(np.flatnonzero((path[1:] > 1) & (path[:-1] <= 1))) for path in v])
    gaps = gaps[gaps > 10]  # noise may cross the threshold twice in one spike
    assert 30 < gaps.mean() < 50 and gaps.std() > 1


STEPS = {
    # state, drift and noise covariance a time unit, worked out by hand from the docstrings
    "duffing": (
        [0.5, -0.2, 0.6, 0.8],
        [-0.2, 0.5 - 0.125 + 0.06 + 0.3, -0.96, 0.72],
        # on the circle the noise acts along the tangent (-0.8, 0.6) only
        [[0, 0, 0, 0], [0, 0.01, 0, 0], [0, 0, 0.0016, -0.0012], [0, 0, -0.0012, 0.0009]],
    ),
    "hindmarsh_rose": (
        [0.5, -2.0, 2.5],
        [-2.0 + 0.75 - 0.125 - 2.5 + 2.5, 1.0 - 1.25 + 2.0, 0.01 * (8.4 - 2.5)],
        [[0.01, 0, 0], [0, 0, 0], [0, 0, 0]],
    ),
    "brusselator": ([2.0, 1.5], [1 - 2 - 6 + 6, 6 - 6], [[0.015, -0.012], [-0.012, 0.012]]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_short_step_has_the_mean_and_the_covariance_of_the_equation(name):
    system = getattr(systems, name)(n_samples=2).system
    start, drift, covariance = (np.array(v, dtype=float) for v in STEPS[name])
    n, dt = 40_000, 1e-3
    moved = system.step(np.tile(start, (n, 1)), dt, np.random.default_rng(1), substeps=2) - start
    variance = np.diag(covariance)
    # the drift changes by a few units a time unit, so over the step by a few thousandths
    np.testing.assert_array_less(np.abs(moved.mean(0) / dt - drift), 0.02 + 5 * np.sqrt(variance / dt / n))
    error = 5 * np.sqrt(2 / n) * np.sqrt(np.outer(variance, variance))
    np.testing.assert_array_less(np.abs(np.cov(moved.T) / dt - covariance), 5e-5 + error)


def test_the_force_on_duffings_beam_turns_with_its_frequency_and_forgets_its_phase():
    system = systems.duffing(n_samples=2, phase_noise=0.4).system
    n, t = 4000, 2.0
    x = system.step(np.tile([0.0, 0.0, 1.0, 0.0], (n, 1)), t, np.random.default_rng(2), substeps=400)
    np.testing.assert_allclose(np.hypot(x[:, 2], x[:, 3]), 1.0, rtol=1e-12)
    expected = np.exp(-0.5 * 0.16 * t) * np.array([np.cos(1.2 * t), np.sin(1.2 * t)])
    np.testing.assert_allclose(x[:, 2:].mean(0), expected, atol=5 * np.sqrt(0.5 / n))


def test_duffings_beam_without_force_has_the_speeds_of_its_temperature():
    n = 2000
    states = systems.duffing(n, 2, dt=1.0, substeps=50, damping=0.5, noise=0.5, force=0.0, seed=3).states[:, -1]
    assert np.mean(states[:, 1] ** 2) == pytest.approx(0.25, abs=5 * 0.25 * np.sqrt(2 / n) + 0.01)
    assert abs(np.corrcoef(states[:, 0], states[:, 1])[0, 1]) < 5 / np.sqrt(n)


def test_the_force_makes_duffings_beam_change_wells():
    driven, still = (systems.duffing(20, 200, seed=4, substeps=25, force=f).clean[..., 0] for f in (0.5, 0.0))
    changes = [np.mean(np.diff(np.sign(x), axis=1) != 0) for x in (driven, still)]
    assert changes[0] > 5 * changes[1] and changes[0] > 0.01


def test_hindmarsh_and_roses_neuron_fires_in_bursts():
    v = systems.hindmarsh_rose(20, 800, seed=5, substeps=50).clean[..., 0]
    fired = [np.flatnonzero((path[1:] > 1) & (path[:-1] <= 1)) * 0.5 for path in v]
    gaps = np.concatenate([np.diff(times) for times in fired])
    within, between = gaps[gaps < 40], gaps[gaps > 60]
    assert len(within) > 0.5 * len(gaps) and len(between) > 0.2 * len(gaps)
    assert len(within) + len(between) > 0.95 * len(gaps), "intervals of two kinds, and hardly any between them"


def test_the_brusselator_at_rest_fluctuates_as_its_rates_say():
    a, b, volume, n = 1.0, 1.5, 2e4, 3000
    states = systems.brusselator(n, 2, dt=1.0, substeps=100, a=a, b=b, volume=volume, seed=6).states[:, -1]
    slope = np.array([[b - 1, a**2], [-b, -(a**2)]])  # of the drift at rest
    rates = np.array([[2 * a + 2 * a * b, -2 * a * b], [-2 * a * b, 2 * a * b]]) / volume
    covariance = solve_continuous_lyapunov(slope, -rates)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(states.mean(0), [a, b / a], atol=5 * sd.max() / np.sqrt(n) + 2e-3 * sd.max())
    np.testing.assert_allclose(np.cov(states.T), covariance, atol=(5 * np.sqrt(2 / n) + 0.04) * sd.max() ** 2)


def test_the_brusselator_cycles_beyond_its_threshold_and_stays_positive():
    recording = systems.brusselator(20, 200, seed=7)
    x = recording.clean[..., 0]
    rises = np.sum((x[:, 1:] > 1) & (x[:, :-1] <= 1))
    assert 20 * 199 * 0.2 / rises == pytest.approx(7.2, abs=0.3)
    assert x.min() > 0.2 and x.max() > 3.0


@pytest.mark.parametrize(
    "arguments", [{"n_series": 0}, {"n_samples": 1}, {"observation_noise": -0.1}, {"dt": 0.0}, {"substeps": 0}]
)
def test_impossible_simulations_are_refused(arguments):
    with pytest.raises(ConfigError):
        systems.double_well(**arguments)
