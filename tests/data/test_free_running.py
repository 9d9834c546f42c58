"""Starts that run freely: laws that are known exactly, and choices that single predictions cannot make."""

import numpy as np
import pytest

import lamperti as lp
from lamperti.data.free_running import Delays, Drift, _crps, _features, free_drift, free_runs, regress
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


def test_a_drift_runs_as_the_autoregression_that_made_the_data():
    y = autoregression(20_000)
    x = np.stack([y[:-1], y[1:]], axis=1)  # older, newer
    law = regress(x[:-1], x[1:], x[:-1, 1:], Drift(16, 4.0))
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
    law = regress(x, after, x, Drift(16, 4.0))
    moved = law.run(np.array([[-3.0], [3.0]]), np.array([1]), rng)[:, :, 0, 0]
    quiet, loud = np.median(np.abs(moved - np.median(moved, axis=1, keepdims=True)), axis=1)
    assert loud > 5 * quiet


def test_no_path_goes_far_beyond_the_data():
    x = np.linspace(-1, 1, 400)[:, None]
    law = regress(x, 3.0 * x, x, Drift(16, 4.0))
    end = law.run(np.array([[0.5]]), np.array([200]), np.random.default_rng(0))
    assert np.abs(end).max() <= 1.5 + 1e-9


def test_crps_is_that_of_the_scores():
    rng = np.random.default_rng(0)
    samples, truth = rng.standard_normal((5, 32, 3, 2)), rng.standard_normal((5, 3, 2))
    assert _crps(samples, truth) == pytest.approx(np.asarray(crps(samples, truth)), abs=1e-12)


def test_a_window_that_holds_the_beat_forecasts_better_than_one_sample():
    y = pulses(120)
    alone, beat = free_runs([y], [Delays(1, 4), Delays(3, 10)])
    gap, se = alone.behind(beat)
    assert beat.error < alone.error and gap > 2 * se
    assert gap == pytest.approx(np.log(alone.error / beat.error))


def test_data_that_is_too_short_has_no_runs():
    assert free_runs([pulses(3)], [Delays(2, 10)]) == []


def test_short_series_are_left_out_and_gaps_are_not_predicted():
    y = pulses(120)
    holed = y.copy()
    holed[1000:1003] = np.nan
    (run,) = free_runs([holed, y[:20]], [Delays(3, 10)])
    (whole,) = free_runs([y], [Delays(3, 10)])
    assert run.error == pytest.approx(whole.error, rel=0.6)


def test_states_that_are_shaken_lead_back_to_where_the_data_went():
    """On a circle in the plane nothing says what happens off it; regressed on shaken states, the drift leads back."""
    angle = 0.2 * np.arange(3000)
    rng = np.random.default_rng(0)
    radius = 1.0 + 0.02 * rng.standard_normal(3001)
    x = radius[:, None] * np.stack([np.cos(np.append(angle, 600.0)), np.sin(np.append(angle, 600.0))], axis=1)
    off = np.array([[1.06, 0.0], [0.0, -1.06], [0.94, 0.0]])
    away = []
    for shake in (0.0, 3.0):
        law = regress(x[:-1], x[1:], x[:-1], Drift(40, 1.0, shake))
        phi, _ = _features(off, law.centres, law.scale)
        away.append(np.abs(np.linalg.norm(off + phi @ law.w, axis=1) - 1.0).max())
    assert away[1] < 0.7 * away[0]


def test_two_scales_of_time_forecast_bursts_that_one_of_them_does_not():
    """Spikes that follow each other fast, in bursts that come slowly: three samples are within a spike, and a few
    functions of a long window within a burst."""
    (series,) = lp.systems.beta_cell(n_series=1, n_samples=24_000, dt=10.0, seed=0).series
    y = (series.values - series.values.mean()) / series.values.std()
    short, long, both = free_runs([y], [Delays(4, 16), Delays(4, 64), Delays(5, 256, 3)])
    for one in (short, long):
        gap, se = both.behind(one)
        assert gap < -0.1 and gap < -2 * se


def test_centres_grow_with_the_data_and_not_beyond_bounds():
    assert [free_drift(n).centres for n in (10, 4_000, 10**6)] == [128, 250, 512]


def test_noise_where_few_states_went_is_that_of_all():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 0.1, 990), [5.0]])[:, None]
    law = regress(x, x + 0.1 * rng.standard_normal(x.shape), x, Drift(16, 4.0))
    alone = int(np.argmax(law.centres[:, 0]))
    assert (law.first[alone], law.count[alone]) == (0, len(x))
    assert np.all(law.count >= 8) and np.all(law.first + law.count <= len(x))
