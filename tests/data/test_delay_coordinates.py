"""Delay coordinates that hold the newest sample, and whether samples show signs of noise."""

import numpy as np
import pytest

import lamperti as lp
from lamperti.data.delay import hankel
from lamperti.data.free_running import Delays, free_drift, regress
from lamperti.data.predictive import newest_directions
from lamperti.data.regressed import coordinates_of, delay_coordinates, is_clean


def channels(n=4000, n_channels=1, seed=0):
    """Autoregressions of second order."""
    rng = np.random.default_rng(seed)
    y = np.zeros((n, n_channels))
    for t in range(2, n):
        y[t] = 1.6 * y[t - 1] - 0.8 * y[t - 2] + rng.normal(size=n_channels)
    return y


def lorenz(noise, seed=0):
    data = lp.systems.lorenz(n_series=10, n_samples=400, dt=0.02, observation_noise=noise, seed=seed)
    return [one.values / 8.0 for one in data.series]


@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_first_coordinates_are_the_newest_sample_and_nothing_else(n_channels):
    h = hankel(channels(n_channels=n_channels), 12)
    past, future = h[:, : 10 * n_channels], h[:, 10 * n_channels :]
    mean, B = newest_directions(past, future, n_channels + 2, n_channels)
    assert np.all(B[:n_channels, :-n_channels] == 0.0)
    x = (past - mean) @ B.T
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(n_channels + 2), atol=0.02)


def test_newest_sample_and_one_more_tell_all_of_an_autoregression_of_second_order():
    y = channels(20_000)
    h = hankel(y, 11)
    past, future = h[:, :10], h[:, 10:]
    mean, B = newest_directions(past, future, 2, 1)
    x = np.concatenate([np.ones((len(past), 1)), (past - mean) @ B.T], axis=1)
    left = future[:, 0] - x @ np.linalg.lstsq(x, future[:, 0], rcond=None)[0]
    assert left.var() == pytest.approx(1.0, rel=0.03)  # the variance of the innovations


def test_as_many_directions_as_channels_are_the_newest_sample_alone():
    h = hankel(channels(n_channels=3), 5)
    _, B = newest_directions(h[:, :12], h[:, 12:], 2, 3)
    assert B.shape == (2, 12) and np.all(B[:, :9] == 0.0)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_newest_samples_are_held_whole_and_the_window_beside_them(n_channels):
    h = hankel(channels(n_channels=n_channels), 24)
    past, future = h[:, : 20 * n_channels], h[:, 20 * n_channels :]
    mean, B = newest_directions(past, future, 3 * n_channels + 2, n_channels, newest=3)
    assert np.all(B[: 3 * n_channels, : -3 * n_channels] == 0.0)
    assert np.all(np.abs(B[3 * n_channels :, : -3 * n_channels]).max(axis=1) > 0.0)
    x = (past - mean) @ B.T
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(3 * n_channels + 2), atol=0.02)
    # whatever the three newest samples are, the first coordinates tell them
    newest = past[:, -3 * n_channels :] - mean[-3 * n_channels :]
    first = x[:, : 3 * n_channels]
    left = newest - first @ np.linalg.lstsq(first, newest, rcond=None)[0]
    assert np.abs(left).max() < 1e-8 * np.abs(newest).max()


def test_what_is_only_rounding_is_not_blown_up():
    """Five samples of a slow sine lie in a plane, but for rounding."""
    t = np.arange(4000)
    h = hankel(np.sin(0.01 * t)[:, None], 12)
    _, B = newest_directions(h[:, :10], h[:, 10:], 5, 1, newest=5)
    assert np.abs(h[:, :10] @ B.T).max() < 1e3 and np.abs(B).max() < 1e7


def test_what_is_given_is_kept_and_found_again():
    y = lorenz(0.0)
    found = delay_coordinates(y, dimension=5, window=16, newest=3)
    assert found is not None and found.delays == Delays(5, 16, 3)
    again = coordinates_of(y, found.delays)
    np.testing.assert_array_equal(again.B, found.B)


def test_the_noise_is_diagonal_in_the_coordinates_that_are_found():
    y = [one[:, :] for one in lorenz(0.0)]
    found = delay_coordinates(y, dimension=3, window=8)
    assert found is not None and (found.dimension, found.window) == (3, 8)
    parts = [(hankel(one, 8) - found.mean) @ found.B.T for one in y]
    x, after = np.concatenate([p[:-1] for p in parts]), np.concatenate([p[1:] for p in parts])
    cov = np.cov(regress(x, after, x, free_drift(len(x))).left.T)
    # Centres are those of turned states and so a little different.
    off = np.abs(cov - np.diag(np.diag(cov))) / np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    assert off.max() < 0.3
    share = np.diag(cov) / x.var(axis=0)
    assert np.all(np.diff(np.log(share)) > -0.2)  # the most predictable first


def test_the_curve_has_the_dimension_that_was_taken():
    found = delay_coordinates(lorenz(0.0))
    assert found is not None
    assert found.dimension in [d for d, _, _ in found.curve]
    assert all(error > 0 and se >= 0 for _, error, se in found.curve)


def test_too_little_data_has_no_coordinates():
    assert delay_coordinates([channels(60)]) is None
    assert not is_clean([channels(8)])


@pytest.mark.parametrize(("noise", "clean"), [(0.0, True), (0.1, False), (0.3, False)])
def test_noise_of_the_observations_is_noticed(noise, clean):
    arrays = lorenz(noise)
    assert is_clean(arrays) is clean
    assert is_clean([1e-3 * one + 5.0 for one in arrays]) is clean


def test_spikes_are_no_noise():
    """Sharp waves have large third differences; in between the trace is smooth."""
    t = np.arange(6000)
    rng = np.random.default_rng(0)
    wander = np.zeros(6000)
    for k in range(1, 6000):
        wander[k] = 0.99 * wander[k - 1] + 0.01 * rng.normal()
    spikes = sum(np.exp(-0.5 * ((t - at) / 1.5) ** 2) for at in np.cumsum(rng.normal(90, 4, size=66)))
    assert is_clean([(spikes + np.convolve(wander, np.ones(8) / 8, mode="same"))[:, None]])
