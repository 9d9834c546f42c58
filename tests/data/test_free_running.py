"""Starts that run freely: laws that are known exactly, and choices that single predictions cannot make."""

import numpy as np
import pytest

from lamperti.data.coordinates import Candidate
from lamperti.data.free_running import LINEAR_DRIFT, _crps, better_start, regress
from lamperti.data.starts import choose_start
from lamperti.evaluation.scores import crps

PHI, SD = np.array([1.6, -0.8]), 0.5  # y[t+1] = 1.6 y[t] - 0.8 y[t-1] + noise


def autoregression(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y = np.zeros(n + 200)
    for t in range(2, len(y)):
        y[t] = PHI[0] * y[t - 1] + PHI[1] * y[t - 2] + SD * rng.standard_normal()
    return y[200:]


def pulses(n_beats: int, seed: int = 0) -> np.ndarray:
    """Sharp beats with rests between them, whose lengths differ by a little."""
    rng = np.random.default_rng(seed)
    phase, y = 0.0, []
    for _ in range(n_beats):
        step = 1.0 / (40.0 + 2.0 * rng.standard_normal())
        while phase < 1.0:
            y.append(np.exp(-0.5 * ((phase - 0.5) / 0.05) ** 2) - 0.4 * np.exp(-0.5 * ((phase - 0.7) / 0.06) ** 2))
            phase += step
        phase -= 1.0
    y = np.array(y)
    return ((y - y.mean()) / y.std())[:, None]


def start(window: int, dimension: int = 2, *, linear: bool = False) -> Candidate:
    return Candidate(dimension, window, "predictive", linear, np.ones((4, 3)))


def test_a_linear_start_runs_as_the_autoregression_that_made_the_data():
    y = autoregression(20_000)
    x = np.stack([y[:-1], y[1:]], axis=1)  # older, newer
    law = regress(x[:-1], x[1:], x[:-1, 1:], LINEAR_DRIFT)
    ahead = np.array([1, 3, 8])
    began = np.array([[1.0, 2.0]])
    samples = np.concatenate([law.run(began, ahead, np.random.default_rng(k))[0, :, :, 0] for k in range(200)])

    step, kick = np.array([[0.0, 1.0], PHI[::-1]]), np.diag([0.0, SD**2])
    mean, cov = began[0], np.zeros((2, 2))
    for h in range(1, 9):
        mean, cov = step @ mean, step @ cov @ step.T + kick
        if h in ahead:
            got = samples[:, list(ahead).index(h)]
            sd = np.sqrt(cov[1, 1])
            # Residuals near a centre are some 300, whose mean is not quite zero.
            assert got.mean() == pytest.approx(mean[1], abs=0.15 * sd)
            assert got.std() == pytest.approx(sd, rel=0.12)


def test_the_noise_is_that_near_the_state():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 0.1, 500), rng.normal(3, 0.1, 500)])[:, None]
    after = x + np.where(x < 0, 0.01, 0.2) * rng.standard_normal(x.shape)
    law = regress(x, after, x, LINEAR_DRIFT)
    moved = law.run(np.array([[-3.0], [3.0]]), np.array([1]), rng)[:, :, 0, 0]
    quiet, loud = np.median(np.abs(moved - np.median(moved, axis=1, keepdims=True)), axis=1)
    assert loud > 5 * quiet


def test_no_path_goes_far_beyond_the_data():
    x = np.linspace(-1, 1, 400)[:, None]
    law = regress(x, 3.0 * x, x, LINEAR_DRIFT)
    end = law.run(np.array([[0.5]]), np.array([200]), np.random.default_rng(0))
    assert np.abs(end).max() <= 1.5 + 1e-9


def test_crps_is_that_of_the_scores():
    rng = np.random.default_rng(0)
    samples, truth = rng.standard_normal((5, 32, 3, 2)), rng.standard_normal((5, 3, 2))
    assert _crps(samples, truth) == pytest.approx(np.asarray(crps(samples, truth)), abs=1e-12)


def test_a_start_that_runs_away_from_the_beat_is_left_for_one_that_does_not():
    """More coordinates of a long window hold as much of each horizon by itself, but a drift in them is thin."""
    y = pulses(120)
    taken, gain = better_start(start(40, 4), [start(4)], [y])
    assert taken.window == 4
    assert gain > 0.1


def test_among_equals_the_fewest_coordinates_are_taken():
    y = pulses(120)
    taken, _ = better_start(start(40, 4), [start(4, 3), start(4, 2)], [y])
    assert taken.dimension == 2


def test_a_start_is_kept_unless_another_is_clearly_better():
    y = autoregression(4_000)[:, None]
    chosen = start(2, linear=True)
    assert better_start(chosen, [start(2), start(8, linear=True)], [y]) == (chosen, 0.0)


def test_too_little_data_keeps_the_start():
    chosen = start(10)
    assert better_start(chosen, [start(20)], [pulses(3)]) == (chosen, 0.0)


def test_short_series_are_left_out_and_gaps_are_not_predicted():
    y = pulses(120)
    holed = y.copy()
    holed[1000:1003] = np.nan
    taken, gain = better_start(start(40, 4), [start(4)], [holed, y[:20]])
    assert taken.window == 4
    assert np.isfinite(gain)


def test_the_reason_says_what_running_freely_gained():
    choice, again = (choose_start([pulses(200)]) for _ in range(2))
    assert (choice.dimension, choice.window, choice.free_gain) == (again.dimension, again.window, again.free_gain)
    assert ("runs freely" in choice.reason()) == (choice.free_gain > 0)
