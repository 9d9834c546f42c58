"""Gaps are crossed in usual steps, or cut."""

import numpy as np

from lamperti.data.bridging import LONGEST_GAP, LONGEST_STEP, bridge
from lamperti.data.windows import Track


def track(dt) -> Track:
    dt = np.asarray(dt, dtype=float)
    y = np.arange(1.0, len(dt) + 2)[:, None]
    return Track(y, np.ones(y.shape, dtype=bool), dt)


def test_a_gap_becomes_samples_that_were_not_observed():
    (piece,) = bridge(track([1.0, 3.0, 1.0]))
    np.testing.assert_array_equal(piece.track.y[:, 0], [1, 2, 0, 0, 3, 4])
    np.testing.assert_array_equal(piece.track.mask[:, 0], [True, True, False, False, True, True])
    np.testing.assert_array_equal(piece.track.dt, np.ones(5))
    np.testing.assert_array_equal(piece.rows, [0, 1, 4, 5])


def test_regular_and_jittered_steps_stay_as_they_are():
    given = track([1.0, 0.2, 1.9, LONGEST_STEP])
    (piece,) = bridge(given)
    for found, wanted in zip(piece.track, given, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_rounding_of_a_whole_number_of_steps_adds_none():
    (piece,) = bridge(track([3.0 * (1.0 + 1e-9)]))
    assert len(piece.track.y) == 4


def test_long_gaps_cut_and_nothing_is_lost():
    rng = np.random.default_rng(0)
    given = track(10.0 ** rng.uniform(-1.0, 2.5, 200))
    pieces = bridge(given)
    assert len(pieces) == 1 + np.sum(given.dt > LONGEST_GAP) > 1
    np.testing.assert_array_equal(np.concatenate([p.track.y[p.rows] for p in pieces]), given.y)
    assert all(p.track.dt.max(initial=0.0) <= LONGEST_STEP for p in pieces)
    crossed = sum(p.track.dt.sum() for p in pieces)
    np.testing.assert_allclose(crossed, given.dt[given.dt <= LONGEST_GAP].sum())
