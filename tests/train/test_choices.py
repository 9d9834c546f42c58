"""What is chosen from the data before training: window, dimension, and what is held out. No program is compiled."""

import numpy as np
import pytest

import lamperti as lp
from lamperti.data import Track
from lamperti.data.holding import held_out_from, hold_out
from lamperti.train.build import choose


def track(length, n_channels=1, seed=0):
    y = np.random.default_rng(seed).normal(size=(length, n_channels))
    return Track(y, np.ones(y.shape, bool), np.ones(length - 1))


def lengths(tracks):
    return [len(t.y) for t in tracks]


def held(tracks, fraction, window=5, seed=0):
    first = held_out_from([t.mask for t in tracks], fraction, window, np.random.default_rng(seed))
    training, judged = hold_out(tracks, first)
    for t in [*training, *(one.track for one in judged)]:
        assert len(t.mask) == len(t.y) == len(t.dt) + 1
    return lengths(training), [len(one.track.y) - one.first for one in judged]


def test_whole_series_are_held_out_where_the_share_comes_to_one():
    assert held([track(50)] * 20, 0.1) == ([50] * 18, [50] * 2)


def test_of_two_recordings_a_tenth_is_held_out_and_not_half():
    assert held([track(300), track(500)], 0.1) == ([300, 420], [80])


def test_of_one_recording_the_end_is_held_out():
    assert held([track(200)], 0.1) == ([180], [20])


@pytest.mark.parametrize("fraction", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n_series", [1, 2, 5])
def test_something_is_left_to_train_on_whatever_the_share(fraction, n_series):
    training, _ = held([track(60)] * n_series, fraction)
    assert training and max(training) > 5


@pytest.mark.parametrize("seed", range(4))
def test_the_only_long_series_is_never_held_out_whole(seed):
    training, held_out = held([track(4), track(400), track(4)], 0.3, window=10, seed=seed)
    assert max(training) >= 200
    assert held_out == [] or max(held_out) <= 200


@pytest.mark.parametrize("seed", range(4))
def test_the_only_series_with_a_channel_is_never_held_out_whole(seed):
    y, mask, dt = track(60, 2)
    lacking = Track(y, mask & [True, False], dt)
    tracks = [lacking, lacking, Track(y, mask, dt)]
    training, _ = hold_out(tracks, held_out_from([t.mask for t in tracks], 0.3, 5, np.random.default_rng(seed)))
    assert np.any([t.mask.any(axis=0) for t in training], axis=0).all()


def test_short_series_get_as_many_dimensions_as_their_windows_have():
    chosen, _ = choose(lp.ModelConfig(window=2), [track(300)])
    assert chosen.latent_dim in (1, 2) and chosen.n_components == 2


def test_window_and_components_grow_with_the_latent_dimension():
    chosen, _ = choose(lp.ModelConfig(latent_dim=12), [track(300)])
    assert chosen.window is not None and chosen.window >= 12
    assert chosen.n_components == 12


def test_window_that_is_too_short_for_the_latent_dimension_is_refused():
    with pytest.raises(lp.ConfigError, match="latent_dim is 4, but a window of 3 samples has only 3 components"):
        choose(lp.ModelConfig(latent_dim=4, window=3), [track(300)])
