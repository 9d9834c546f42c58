"""Standardisation, in ordinary and in extreme units."""

import numpy as np
import pytest

from lamperti._errors import SeriesError
from lamperti.data import Scaler, Series


def test_scaled_values_have_zero_mean_and_unit_sd_over_observed_entries():
    rng = np.random.default_rng(0)
    a = rng.normal([5.0, -2.0], [3.0, 0.1], size=(40, 2))
    b = rng.normal([5.0, -2.0], [3.0, 0.1], size=(70, 2))
    mask = rng.uniform(size=(70, 2)) < 0.7
    series = [Series(a, dt=0.5), Series(b, dt=0.5, mask=mask)]
    scaler = Scaler.from_series(series)
    scaled = np.concatenate([scaler.values(s.values) for s in series])
    np.testing.assert_allclose(np.nanmean(scaled, 0), 0.0, atol=1e-13)
    np.testing.assert_allclose(np.nanstd(scaled, 0), 1.0, rtol=1e-13)


def test_scaling_round_trips():
    y = np.random.default_rng(1).normal(3.0, 2.0, size=(30, 2))
    scaler = Scaler.from_series([Series(y)])
    np.testing.assert_allclose(scaler.unscale_values(scaler.values(y)), y, rtol=1e-14)
    np.testing.assert_allclose(scaler.unscale_sd(np.ones((4, 2))), np.tile(y.std(0), (4, 1)))


def test_time_unit_is_the_median_step_of_all_series():
    short, long = Series([1, 2, 4], dt=7.0), Series(np.arange(9.0), dt=0.25)
    scaler = Scaler.from_series([short, long])
    assert scaler.time_unit == 0.25
    np.testing.assert_allclose(scaler.steps(short.steps), 28.0)


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1.0])
def test_extreme_units_neither_overflow_nor_vanish(unit):
    signal = np.sin(np.arange(100.0))
    scaler = Scaler.from_series([Series(unit * signal)])
    np.testing.assert_allclose(scaler.scale / unit, signal.std(), rtol=1e-12)
    np.testing.assert_allclose(scaler.values(unit * signal[:, None])[:, 0].std(), 1.0, rtol=1e-12)


def test_a_small_signal_on_a_large_offset_keeps_its_digits():
    signal = 2.0**-10 * np.random.default_rng(2).integers(-8, 9, size=1000)  # exact in float64 on top of 1e9
    scaler = Scaler.from_series([Series(1e9 + signal)])
    np.testing.assert_allclose(scaler.scale, signal.std(), rtol=1e-9)
    np.testing.assert_allclose(
        scaler.values(1e9 + signal[:, None])[:, 0], (signal - signal.mean()) / signal.std(), atol=1e-4
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.5e308, -1.5e308], "overflow"), ([1e-320, 3e-320], "underflow"), ([2.0, 2.0], "constant")],
)
def test_what_cannot_be_scaled_is_refused_by_name(values, message):
    with pytest.raises(SeriesError, match=f"'y' .*{message}"):
        Scaler.from_series([Series(values)])
