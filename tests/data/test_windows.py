"""Segments: fixed shapes, honest masks, and never across the border of two series."""

import numpy as np
import pytest

from lamperti._errors import ConfigError
from lamperti.data import Track, segment, whole


def track(length: int, label: float = 0.0, dt: float = 1.0) -> Track:
    """A series that counts its samples from ``label``, so that a segment tells where it came from."""
    y = label + np.arange(length, dtype=float)[:, None]
    return Track(y, np.ones_like(y, dtype=bool), np.full(length - 1, dt))


def test_drawn_segments_never_cross_from_one_series_to_another():
    segments = segment([track(50, 0.0), track(30, 1000.0), track(7, 2000.0)], length=12, lead=4)
    batch = segments.draw(np.random.default_rng(0), 400)
    assert batch.y.shape == (400, 16, 1) and batch.mask.shape == (400, 16, 1)
    assert batch.dt.shape == batch.link.shape == (400, 15)
    jumps = np.diff(batch.y[..., 0], axis=1)
    assert np.all(jumps[batch.link] == 1.0)
    series = np.where(batch.mask[..., 0], batch.y[..., 0] // 1000, np.nan)
    assert np.all(np.nanmax(series, 1) == np.nanmin(series, 1))
    np.testing.assert_array_equal(batch.link, batch.mask[:, 1:, 0] & batch.mask[:, :-1, 0])


@pytest.mark.parametrize("length", [2, 3, 5, 12, 21, 40])
def test_every_transition_has_the_same_chance_to_be_drawn(length):
    """The first and the last of a series too, in series longer and shorter than a segment."""
    lengths = [41, 11, 22, 6, 2]
    segments = segment([track(n, 1000.0 * i) for i, n in enumerate(lengths)], length=length, lead=2)
    assert segments.n_transitions == 40 + 10 + 21 + 5 + 1
    batch = segments.draw(np.random.default_rng(1), 40_000)
    link, y = batch.link[:, 2:], batch.y[:, 2:-1, 0]  # of the chains
    assert link.any(axis=1).all()  # no segment is empty
    drawn = y[link].astype(int)
    counts = np.array([np.sum(drawn == 1000 * i + k) for i, n in enumerate(lengths) for k in range(n - 1)])
    assert counts.sum() == len(drawn)
    expected = len(drawn) / segments.n_transitions
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected)), counts


def test_a_piece_that_ends_within_a_segment_is_as_if_the_series_ended_there():
    batch = segment([track(30)], length=8, lead=3).draw(np.random.default_rng(2), 400)
    seen = batch.mask[..., 0]
    assert np.any(batch.link[:, 3:].sum(axis=1) < 7)
    # links join observed samples, in one run that starts at the first sample of the chain
    np.testing.assert_array_equal(batch.link[:, 3:], seen[:, 3:-1] & seen[:, 4:])
    assert np.all(np.diff(batch.link[:, 3:].astype(int), axis=1) <= 0) and batch.link[:, 3].all()


def test_a_long_series_is_drawn_in_segments_that_are_mostly_full():
    batch = segment([track(400)], length=100, lead=0).draw(np.random.default_rng(3), 2_000)
    assert batch.link.mean() > 0.75
    starts = batch.y[:, 0, 0]
    assert len(np.unique(starts)) > 200  # cuts move


def test_the_lead_is_real_where_the_series_has_it():
    segments = segment([track(30)], length=5, lead=3)
    batch = segments.draw(np.random.default_rng(2), 200)
    late = batch.y[:, 3, 0] >= 3
    assert late.any() and batch.mask[late, :4].all() and batch.link[late, :4].all()
    np.testing.assert_array_equal(batch.y[late, 0, 0], batch.y[late, 3, 0] - 3)


def test_the_lead_before_the_start_is_the_odd_reflection_and_not_observed():
    y = np.array([[1.0], [3.0], [4.0], [9.0]])
    batch = whole(y, np.ones_like(y, dtype=bool), np.array([0.5, 1.0, 2.0]), lead=5, multiple=4)
    # 2 y[0] - y[k] for k = 5..1, where the series ends at k = 3
    np.testing.assert_array_equal(batch.y[0, :5, 0], [-7.0, -7.0, -7.0, -2.0, -1.0])
    np.testing.assert_array_equal(batch.dt[0, :5], [2.0, 2.0, 2.0, 1.0, 0.5])
    assert not batch.mask[0, :5].any() and not batch.link[0, :5].any()
    np.testing.assert_array_equal(batch.y[0, 5:], y)
    assert batch.link[0, 5:].all()


def test_the_tail_repeats_the_last_value_and_is_not_observed():
    segments = segment([track(4, 10.0, dt=0.5)], length=7, lead=0)
    batch = segments.draw(np.random.default_rng(3), 2)
    np.testing.assert_array_equal(batch.y[0, :, 0], [10, 11, 12, 13, 13, 13, 13])
    np.testing.assert_array_equal(batch.mask[0, :, 0], [True] * 4 + [False] * 3)
    np.testing.assert_array_equal(batch.link[0], [True] * 3 + [False] * 3)
    np.testing.assert_array_equal(batch.dt[0], [0.5] * 3 + [1.0] * 3)


def test_missing_samples_are_interpolated_in_time_but_stay_masked():
    y = np.array([[np.nan], [2.0], [np.nan], [8.0], [np.nan]])
    batch = whole(y, ~np.isnan(y), np.array([1.0, 1.0, 2.0, 1.0]), lead=0, multiple=1)
    np.testing.assert_allclose(batch.y[0, :, 0], [2.0, 2.0, 4.0, 8.0, 8.0])
    np.testing.assert_array_equal(batch.mask[0], ~np.isnan(y))
    assert batch.link.all()  # time goes on through a gap


def test_a_channel_without_any_value_is_filled_with_the_mean():
    y = np.array([[1.0, np.nan], [2.0, np.nan]])
    np.testing.assert_array_equal(whole(y, ~np.isnan(y), np.ones(1), 0, 1).y[0, :, 1], [0.0, 0.0])


def test_the_cover_shows_every_sample_once():
    segments = segment([track(23, 0.0), track(10, 1000.0), track(3, 2000.0)], length=5, lead=2)
    batch = segments.cover()
    assert batch.y.shape == (5 + 2 + 1, 7, 1)
    seen = batch.y[:, 2:][batch.mask[:, 2:]]
    expected = np.concatenate([np.arange(23), 1000 + np.arange(10), 2000 + np.arange(3)])
    np.testing.assert_array_equal(seen, expected)


def test_a_limited_cover_is_a_deterministic_part_of_the_whole():
    segments = segment([track(100)], length=5, lead=0)
    few = segments.cover(max_segments=4)
    np.testing.assert_array_equal(few.y[:, 0, 0], [0, 30, 65, 95])
    np.testing.assert_array_equal(few.y, segments.cover(max_segments=4).y)
    assert len(segments.cover(max_segments=500).y) == 20


@pytest.mark.parametrize(("length", "padded"), [(1, 8), (7, 8), (8, 8), (9, 16)])
def test_whole_series_share_few_lengths(length, padded):
    batch = whole(*track(length), lead=3, multiple=8)
    assert batch.y.shape == (1, 3 + padded, 1) and batch.dt.shape == (1, 2 + padded)
    assert batch.mask.sum() == length and batch.link.sum() == length - 1
    assert np.isfinite(batch.y).all() and (batch.dt > 0).all()


@pytest.mark.parametrize("arguments", [([], 5, 0), ([track(9)], 1, 0), ([track(9)], 5, -1)])
def test_impossible_segments_are_refused(arguments):
    with pytest.raises(ConfigError, match="segments need"):
        segment(*arguments)
