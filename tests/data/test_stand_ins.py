"""Stand-ins for recordings: cells, a heart, a sensor that saturates, a long transient; beside what is known of them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from lamperti.data import systems
from lamperti.evaluation.invariants import half_cycles

QUIET = {
    # how to take the noise away; a start; the time of a step
    "morris_lecar": ({"noise": 0.0}, [-20.0, 0.1, 30.0], 1.0),
    "beta_cell": ({"noise": 0.0}, [-45.0, 0.01, 0.15, 0.4], 10.0),
    "electrocardiogram": ({"noise": 0.0, "rate_sd": 0.0, "wander": 0.0}, [0.2, 0.6, -0.7, 0.1, 0.05], 0.008),
    "saturated_double_well": ({"noise": 1e-9}, [0.3, 0.4], 0.1),
    "lorenz_transient": ({"noise": 0.0}, [60.0, 3.3, 30.4], 0.02),
}

EQUATIONS = {
    # written down from the docstrings, coordinate by coordinate
    "morris_lecar": lambda t, x: [
        (80 + x[2] - 4.4 * 0.5 * (1 + np.tanh((x[0] + 1.2) / 18)) * (x[0] - 120) - 8 * x[1] * (x[0] + 84)
         - 2 * (x[0] + 60)) / 20,
        0.04 * (0.5 * (1 + np.tanh((x[0] - 2) / 30)) - x[1]) * np.cosh((x[0] - 2) / 60),
        -x[2] / 10,
    ],
    "beta_cell": lambda t, x: [
        (x[3] - 3.6 / (1 + np.exp((-20 - x[0]) / 12)) * (x[0] - 25) - (10 * x[1] + 4 * x[2]) * (x[0] + 75)) / 20,
        (1 / (1 + np.exp((-17 - x[0]) / 5.6)) - x[1]) / 20,
        (1 / (1 + np.exp((-35 - x[0]) / 10)) - x[2]) / 10_000,
        -x[3] / 100,
    ],
    "electrocardiogram": lambda t, x: [
        x[4] - x[0] - 25 * sum(
            a * d * np.exp(-(d**2) / (2 * b**2))
            for angle, a, b in ((-60, 1.2, 0.25), (-15, -5, 0.1), (0, 30, 0.1), (15, -7.5, 0.1), (90, 0.75, 0.4))
            for d in [np.angle(np.exp(1j * (np.arctan2(x[2], x[1]) - np.deg2rad(angle))))]
        ),
        (1 - np.hypot(x[1], x[2])) * x[1] - 2 * np.pi * 1.1 * (1 + x[3]) * x[2],
        (1 - np.hypot(x[1], x[2])) * x[2] + 2 * np.pi * 1.1 * (1 + x[3]) * x[1],
        -x[3] / 6,
        -x[4] / 6,
    ],
    "saturated_double_well": lambda t, x: [x[1], x[0] - x[0] ** 3 - 0.5 * x[1]],
    "lorenz_transient": lambda t, x: [
        10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(QUIET))
def test_without_noise_the_path_is_that_of_the_differential_equation(name):
    options, start, dt = QUIET[name]
    system = getattr(systems, name)(n_samples=2, substeps=10, **options).system
    advance, x, path = system.stepper(dt, 80), np.array([start]), [start]
    for _ in range(60):
        x = advance(x, np.random.default_rng(0))
        path.append(x[0])
    exact = solve_ivp(EQUATIONS[name], (0, 60 * dt), start, t_eval=np.arange(61) * dt, rtol=1e-9, atol=1e-11).y.T
    sizes = np.abs(exact).max(axis=0)
    allowed = 0.005 if name == "saturated_double_well" else 2e-3  # the wells take Euler's steps
    np.testing.assert_array_less(np.abs(np.array(path) - exact) / sizes, allowed)


@pytest.mark.parametrize("name", sorted(QUIET))
def test_the_observed_channel_is_smooth(name):
    recording = getattr(systems, name)(n_samples=2, substeps=10)
    gains = recording.system.diffusion(recording.states[0])
    assert np.all(gains[:, 0] == 0) and np.any(gains > 0), "noise acts inside, never on what is seen"
    np.testing.assert_array_equal(recording.noise_sd, 0.0)


def test_midpoint_steps_keep_the_radius_of_a_turn_that_eulers_let_grow():
    def turn(x: np.ndarray) -> np.ndarray:
        return np.stack([-10.0 * x[:, 1], 10.0 * x[:, 0]], axis=1)

    def radius(midpoint: bool) -> float:
        system = systems.System("turn", 2, turn, np.zeros_like, lambda n, rng: np.ones((n, 2)), {}, 0.001,
                                midpoint=midpoint)  # fmt: skip
        return float(np.hypot(*system.step(np.array([[1.0, 0.0]]), 1.0, np.random.default_rng(0))[0]))

    assert radius(False) == pytest.approx(np.exp(0.05), rel=1e-3)  # grows at the rate h frequency²/2
    assert radius(True) == pytest.approx(1.0, abs=1e-4)


def test_morris_and_lecars_fibre_rests_where_its_currents_balance():
    drift = EQUATIONS["morris_lecar"]

    def at_rest(v: float) -> list[float]:
        return [v, 0.5 * (1 + np.tanh((v - 2) / 30)), 0.0]

    quiet = systems.morris_lecar(n_samples=2, current=0.0, noise=0.0).states[0, -1]
    np.testing.assert_allclose(quiet, [-60.855, 0.014915, 0.0], rtol=1e-3, atol=1e-5)
    rest = brentq(lambda v: drift(0, at_rest(v))[0], -60, -10)
    excited = systems.morris_lecar(n_samples=2, noise=0.0, dt=500.0).states[0, -1]
    np.testing.assert_allclose(excited, at_rest(rest), rtol=1e-3, atol=1e-3)


def test_noise_makes_morris_and_lecars_fibre_spike_irregularly():
    v = systems.morris_lecar(20, 1500, seed=3, substeps=10).clean[..., 0]
    gaps = np.concatenate([np.diff(np.flatnonzero((path[1:] > 0) & (path[:-1] <= 0))) for path in v])
    assert 140 < gaps.mean() < 220 and gaps.std() > 40
    assert gaps.min() > 50, "a spike is followed by a refractory time"


def test_the_heart_beats_at_its_rate_and_the_rate_wanders_as_told():
    n, dt, rate = 60, 0.02, 1.3
    states = systems.electrocardiogram(n, 1001, dt=dt, rate=rate, seed=4, substeps=10).states
    turns = np.unwrap(np.arctan2(states[..., 2], states[..., 1]), axis=1) / (2 * np.pi)
    beats = (turns[:, -1] - turns[:, 0]) / 20.0
    # sd of the mean over 20 s of a process that forgets in 6 s, and of the noise on the angle
    lag = 20.0 / 6.0
    sd = rate * 0.06 * np.sqrt(2 / lag**2 * (lag - 1 + np.exp(-lag)))
    assert beats.mean() == pytest.approx(rate, abs=5 * sd / np.sqrt(n))
    assert beats.std() == pytest.approx(sd, rel=0.35)
    assert states[:, 0, 3].std() == pytest.approx(0.06, rel=5 / np.sqrt(2 * n))
    assert states[:, 0, 4].std() == pytest.approx(0.1, rel=5 / np.sqrt(2 * n))


def test_a_steady_heart_draws_the_same_beat_again_and_again_with_its_five_waves():
    z = systems.electrocardiogram(
        1, 501, dt=0.01, rate=1.0, rate_sd=0.0, noise=0.0, wander=0.0, seed=5, substeps=5
    ).clean[0, :, 0]
    np.testing.assert_allclose(z[100:], z[:-100], atol=2e-3)
    beat = np.roll(z[:100], 50 - int(np.argmax(z[:100])))
    slope = np.sign(np.diff(beat))
    tops, dips = (np.flatnonzero(np.diff(slope) * sign > 0) + 1 for sign in (-1, 1))
    p, r, t = tops
    assert r == 50 and 0.9 < beat[r] < 1.3 and 0.1 < beat[p] < 0.4 and 0.2 < beat[t] < 0.6
    assert abs(p - (50 - 100 / 6)) <= 2 and abs(t - 75) <= 2
    q, s = (min(dips, key=lambda d: abs(d - near)) for near in (46, 54))
    assert abs(q - 46) <= 1 and abs(s - 54) <= 1 and max(beat[q], beat[s]) < -0.1


def test_the_sensor_keeps_the_law_of_the_particle_and_saturates():
    n = 2000
    recording = systems.saturated_double_well(n, 2, dt=0.5, substeps=50, gain=2.0, seed=6)
    place, speed = recording.states[:, -1].T
    np.testing.assert_allclose(recording.clean[:, -1, 0], np.tanh(2.0 * place))
    assert np.abs(recording.clean).max() < 1
    assert np.mean(speed**2) == pytest.approx(0.32**2, abs=5 * 0.32**2 * np.sqrt(2 / n) + 0.002)
    assert np.mean(np.abs(recording.clean[:, -1, 0]) > 0.9) > 0.6, "most of the time close to a limit"


def test_the_particle_stays_in_its_wells_for_long():
    y = systems.saturated_double_well(30, 3000, seed=7, substeps=10).clean[..., 0]
    stays = 0.1 * half_cycles(y, 0.0, 0.5)
    assert 30 < stays.mean() < 90


def test_the_beta_cell_fires_in_bursts():
    v = systems.beta_cell(20, 1200, seed=8, substeps=10).clean[..., 0]
    gaps = np.concatenate([np.diff(np.flatnonzero((path[1:] > -40) & (path[:-1] <= -40))) for path in v])
    within, between = gaps[gaps < 50], gaps[gaps > 150]
    assert len(within) + len(between) > 0.99 * len(gaps), "intervals of two kinds, and hardly any between them"
    assert 5 < len(within) / len(between) < 20 and np.median(within) < 25


def test_the_transient_comes_from_far_circles_one_lobe_and_ends_on_the_attractor():
    x = systems.lorenz_transient(20, 4500, seed=9, substeps=10).clean[..., 0]
    attractor = systems.lorenz(20, 500, seed=9, substeps=10).clean[..., 0]
    assert x[:, 0].min() > 3 * np.abs(attractor).max()
    first = np.argmax(x < 0, axis=1) * 0.02
    assert first.min() > 25 and first.max() < 80, "one lobe for 40 turns and more"
    assert np.all(np.abs(x[:, 100:500] - np.sqrt(72)) < 1.0)
    late = x[:, 3800:]
    assert late.std() == pytest.approx(7.93, abs=0.3) and np.abs(late).max() < 21


def test_turns_of_the_transient_grow_as_the_eigenvalue_at_rest_says():
    x = systems.lorenz_transient(1, 1500, noise=0.0, seed=10).clean[0, :, 0]
    rest = np.sqrt(72.0)
    slope = np.array([[-10, 10, 0], [1, -1, -rest], [rest, rest, -8 / 3]])
    growth = np.linalg.eigvals(slope).real.max()
    turns = np.array([np.abs(x[k : k + 62] - rest).max() for k in range(100, 800, 62)])
    found = np.diff(np.log(turns)) / (62 * 0.02)
    assert growth == pytest.approx(0.094, abs=1e-3)
    assert np.mean(found) == pytest.approx(growth, abs=0.005)
