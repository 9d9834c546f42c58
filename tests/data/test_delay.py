"""Delays, windows, dimension and the principal components of delay vectors, where the answer is known."""

import numpy as np
import pytest
from scipy.signal import lfilter

from lamperti._errors import ConfigError, SeriesError
from lamperti.data import (
    HankelBasis,
    Series,
    autocorrelation,
    average_mutual_information,
    e_folding_time,
    first_minimum_lag,
    hankel,
    suggest_delays,
    window_length,
)
from lamperti.data.correlation import mutual_information
from lamperti.data.systems import lorenz, ornstein_uhlenbeck


def autoregression(phi: float, n_series: int, length: int, seed: int = 0) -> list[np.ndarray]:
    kicks = np.random.default_rng(seed).normal(size=(n_series, length + 200))
    return list(lfilter([1.0], [1.0, -phi], kicks, axis=1)[:, 200:])


def sines(period: float, noise: float, n_series: int = 10, length: int = 600) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    phases = rng.uniform(0, 2 * np.pi, n_series)
    time = np.arange(length)
    return [np.sin(2 * np.pi * time / period + p) + noise * rng.normal(size=length) for p in phases]


def test_mutual_information_of_gaussians_is_the_known_value():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 100_000))
    rho = 0.8
    expected = -0.5 * np.log(1 - rho**2)
    assert mutual_information(x, rho * x + np.sqrt(1 - rho**2) * z, bins=32) == pytest.approx(expected, rel=0.05)
    assert abs(mutual_information(x, z, bins=32)) < 2e-3


@pytest.mark.parametrize("noise", [0.02, 0.1])
@pytest.mark.parametrize("period", [20, 60])
def test_the_delay_of_a_sine_is_a_quarter_of_its_period(period, noise):
    choice = first_minimum_lag(sines(period, noise))
    assert abs(choice.lag - period / 4) <= max(1, 0.1 * period)
    assert "mutual information" in choice.rule


def test_without_a_minimum_the_delay_is_where_the_autocorrelation_decays():
    choice = first_minimum_lag(autoregression(0.9, 10, 4000), max_lag=40)
    assert choice.rule == "autocorrelation below 1/e" and 9 <= choice.lag <= 11


def test_white_noise_has_a_delay_of_one():
    assert first_minimum_lag([np.random.default_rng(0).normal(size=5000)]).lag == 1


def test_information_is_pooled_over_ragged_series_without_crossing_them():
    y = sines(40, 0.1, n_series=1, length=2000)[0]
    parts = [y[:900], y[900:1000], y[1000:]]
    np.testing.assert_allclose(
        average_mutual_information(parts, [3, 10]), average_mutual_information([y], [3, 10]), rtol=0.05
    )


def test_autocorrelation_agrees_with_the_plain_sum():
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=30), rng.normal(size=17)]
    arrays[0][[3, 11]] = np.nan
    mean = np.nanmean(np.concatenate(arrays))
    pooled = [np.nanmean(np.concatenate([(a[: len(a) - k] - mean) * (a[k:] - mean) for a in arrays])) for k in range(6)]
    np.testing.assert_allclose(autocorrelation(arrays, 5)[:, 0], np.array(pooled) / pooled[0], rtol=1e-12)


@pytest.mark.parametrize("phi", [0.5, 0.8, 0.95])
def test_e_folding_time_of_an_autoregression_is_known(phi):
    # Interpolation between lags is linear, hence the slack at short times.
    assert e_folding_time(autoregression(phi, 50, 2000)) == pytest.approx(-1 / np.log(phi), rel=0.06)


def test_missing_values_do_not_shift_the_e_folding_time():
    arrays = autoregression(0.9, 50, 2000)
    rng = np.random.default_rng(3)
    series = [Series(np.where(rng.uniform(size=len(a)) < 0.3, np.nan, a), missing="nan") for a in arrays]
    assert e_folding_time(series) == pytest.approx(-1 / np.log(0.9), rel=0.06)


def test_a_trend_is_capped_by_the_length_of_the_series():
    assert e_folding_time([np.arange(20.0)]) <= 10


def test_windows_follow_the_e_folding_time_within_their_limits():
    assert window_length(autoregression(0.9, 20, 1000)) == pytest.approx(2.5 * 9.49, abs=2)
    assert window_length([np.random.default_rng(0).normal(size=500)]) == 5
    assert window_length(autoregression(0.99, 20, 2000)) == 64


def test_scraps_among_long_series_do_not_shorten_the_window():
    long = autoregression(0.99, 20, 2000)
    assert window_length([*long, np.arange(30.0), np.arange(2.0)]) == 64
    assert window_length([long[0][:100], *(y[:30] for y in long)]) == 10


def test_delay_vectors_run_from_old_to_new_with_channels_fastest():
    y = np.array([[0, 10], [1, 11], [2, 12], [3, 13]], dtype=float)
    np.testing.assert_array_equal(hankel(y, 3), [[0, 10, 1, 11, 2, 12], [1, 11, 2, 12, 3, 13]])
    with pytest.raises(SeriesError, match=r"window of 5 samples needs .* got 4"):
        hankel(y, 5)


def test_scores_are_white_and_components_orthonormal():
    y = [a[:, None] for a in autoregression(0.9, 8, 300)]
    basis = HankelBasis.from_series(y, window=12, n_components=4, rng=np.random.default_rng(0))
    h = np.concatenate([hankel(a, 12) for a in y])
    scores = basis.project(h)
    np.testing.assert_allclose(scores.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.cov(scores, rowvar=False), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(basis.components @ basis.components.T, np.eye(4), atol=1e-12)
    assert basis.n_components == 4 and np.all(np.diff(basis.sd) < 0)


def test_the_basis_does_not_depend_on_rounding_or_sign_conventions():
    y = [a[:, None] for a in autoregression(0.9, 8, 300)]
    basis = HankelBasis.from_series(y, 12, 3, np.random.default_rng(0))
    nudged = HankelBasis.from_series([a * (1 + 1e-13) for a in y], 12, 3, np.random.default_rng(0))
    np.testing.assert_allclose(nudged.components, basis.components, atol=1e-9)
    mirrored = HankelBasis.from_series([-a for a in y], 12, 3, np.random.default_rng(0))
    np.testing.assert_allclose(mirrored.components, basis.components, atol=1e-9)


def test_the_basis_of_many_rows_is_that_of_a_subsample():
    y = [a[:, None] for a in autoregression(0.9, 20, 1000)]
    full = HankelBasis.from_series(y, 8, 2, np.random.default_rng(0))
    part = HankelBasis.from_series(y, 8, 2, np.random.default_rng(0), max_rows=4000)
    np.testing.assert_allclose(part.sd, full.sd, rtol=0.1)
    assert not np.array_equal(part.mean, full.mean)


def test_empty_directions_of_smooth_data_are_not_blown_up():
    y = np.sin(np.arange(400.0) / 10)[:, None]
    basis = HankelBasis.from_series([y], 20, 6, np.random.default_rng(0))
    assert np.abs(basis.project(hankel(y, 20))).max() < 5


def test_windows_unlike_smooth_data_have_scores_like_the_others():
    """The odd reflection before the start of a noise-free sine has a kink that no window of the sine has."""
    t = np.arange(400.0)
    series = [np.sin(0.2 * t + phase)[:, None] for phase in (0.3, 1.1, 2.0)]
    basis = HankelBasis.from_series(series, 20, 8, np.random.default_rng(0))
    y = series[0]
    kinked = np.concatenate([2.0 * y[0] - y[10:0:-1], y[:10]]).ravel()
    assert np.abs(basis.project(kinked)).max() < 30.0
    np.testing.assert_allclose(basis.project(hankel(y, 20))[:, :2].std(axis=0), 1.0, rtol=0.05)


def test_a_basis_that_cannot_be_had_is_refused():
    y = [np.random.default_rng(0).normal(size=(10, 1))]
    with pytest.raises(ConfigError, match="has 4 components; asked for 5"):
        HankelBasis.from_series(y, 4, 5, np.random.default_rng(0))
    with pytest.raises(SeriesError, match="at least 21 samples"):
        HankelBasis.from_series(y, 20, 2, np.random.default_rng(0))
    gappy = [np.where(np.arange(10) % 3 == 0, np.nan, 1.0)[:, None]]
    with pytest.raises(SeriesError, match="free of gaps"):
        HankelBasis.from_series(gappy, 4, 2, np.random.default_rng(0))


def test_the_delays_of_known_systems_are_found():
    assert suggest_delays(sines(60, 0.0), lag=15) == 2
    assert suggest_delays(ornstein_uhlenbeck(40, 400, seed=1).series, lag=5) == 2
    assert suggest_delays(autoregression(0.9, 20, 500), lag=5) == 1


@pytest.mark.parametrize("observation_noise", [0.0, 0.1])
def test_lorenz_needs_three_delays_with_and_without_noise(observation_noise):
    recording = lorenz(40, 400, observation_noise=observation_noise, seed=3)
    assert suggest_delays(recording.series, lag=16) == 3


def test_very_short_series_get_one_delay():
    assert suggest_delays([np.arange(6.0)], lag=3) == 1
