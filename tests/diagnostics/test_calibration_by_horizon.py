"""Calibration by horizon, and what may be claimed of an exponent."""

from types import SimpleNamespace

import numpy as np
import pytest

from lamperti.diagnostics.calibration import calibration
from lamperti.diagnostics.claims import exponent_claim, linear_exponent
from lamperti.diagnostics.origins import UnseenForecasts
from lamperti.evaluation.lyapunov import Exponent


def made(scale=1.0, shift=0.0, seed=0, n=40, spacing=5, channels=1):
    """Futures from a normal law beside truths from N(0, 1), independent over origins."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, 3, channels))
    samples = shift + scale * rng.normal(size=(n, 200, 3, channels))
    place = np.stack([np.zeros(n, int), spacing * np.arange(n)], axis=1)
    return UnseenForecasts(None, (), place, (), samples, truth, (), 0)


def test_a_calibrated_forecast_passes():
    for row in calibration(made(), [1, 2, 3]):
        assert row.p_uniform > 0.01 and abs(row.coverage - 0.9) < row.coverage_margin
        assert row.mean_pit == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 40))


def test_p_values_of_calibrated_forecasts_are_no_smaller_than_uniform_ones():
    found = [calibration(made(seed=s, n=20, channels=3), [1])[0].p_uniform for s in range(150)]
    assert np.mean(np.array(found) < 0.2) < 0.2 + 5 * np.sqrt(0.16 / 150)


def test_forecasts_that_are_too_sharp_or_off_are_caught():
    sharp, off = calibration(made(scale=0.3), [1])[0], calibration(made(shift=1.0), [1])[0]
    assert sharp.p_uniform < 0.01 and sharp.coverage < 0.9 - sharp.coverage_margin
    assert off.p_uniform < 1e-4 and off.mean_pit < 0.4  # the truth lies low


def test_origins_that_overlap_count_once():
    (near,) = calibration(made(scale=0.3, spacing=1), [3])  # 14 blocks of 40 origins
    (apart,) = calibration(made(scale=0.3, spacing=5), [3])
    assert near.p_uniform > apart.p_uniform and near.coverage_margin > apart.coverage_margin
    (few,) = calibration(made(n=12, spacing=1), [2])
    assert np.isnan(few.p_uniform)  # 6 blocks


def test_chaos_is_claimed_only_where_the_data_stays_and_a_linear_system_would_not_do():
    stays, moves = SimpleNamespace(stationary=True), SimpleNamespace(stationary=False)

    def claim(mean, se, linear=-0.5, law=stays):
        return exponent_claim(Exponent(mean, se, np.full(2, mean)), linear, law)

    assert claim(0.9, 0.05) == "chaotic" and claim(-0.9, 0.05) == "not chaotic"
    assert claim(0.9, 0.05, law=moves) == "none" and claim(np.inf, np.inf) == "none"
    assert claim(0.1, 0.06) == "open"
    assert claim(-0.5, 0.001) == claim(-0.6, 0.06) == claim(0.3, 0.01, linear=0.3) == "linear"


def test_the_exponent_of_the_nearest_linear_system_is_that_of_continuous_time():
    step, rate = 0.5, -0.7
    states = np.random.default_rng(0).normal(size=(50, 2))
    slopes = (np.exp(np.array([rate, -3.0]) * step) - 1) / step
    result = SimpleNamespace(states=states, step=step, drift=lambda x: (x * slopes + 1.0, np.zeros_like(x)))
    assert linear_exponent(result) == pytest.approx(rate)
