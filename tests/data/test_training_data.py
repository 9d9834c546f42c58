"""What was trained on is known again: whole, in part, and at the beginning of something longer."""

import dataclasses

import numpy as np
import pytest

from lamperti.data.series import Series
from lamperti.data.training_data import Seen, record_training_data, rows_seen

NEW, HELD_OUT, TRAINING = Seen.NEW, Seen.HELD_OUT, Seen.TRAINING


def walk(n, channels=1, seed=0, **parts):
    return Series(np.random.default_rng(seed).normal(size=(n, channels)).cumsum(axis=0), **parts)


def kinds(record, *series):
    """Runs of equal kind: (kind, length)."""
    found = []
    for seen in rows_seen(record, series):
        edges = np.flatnonzero(np.diff(seen)) + 1
        found.append([(int(part[0]), len(part)) for part in np.split(seen, edges)])
    return found


def test_the_training_data_itself_is_known_row_by_row():
    a, b = walk(100), walk(50, seed=1)
    record = record_training_data([a, b], {0: ((80, 100),)})
    assert kinds(record, b, a) == [[(TRAINING, 50)], [(TRAINING, 80), (HELD_OUT, 20)]]
    assert [one.length for one in record.series] == [100, 50] and record.n_rows == 150
    assert record.series[0].last_time == 99.0 and record.last_training_time == 79.0


def test_other_data_is_new():
    record = record_training_data([walk(100)], {})
    assert kinds(record, walk(100, seed=5), walk(7)) == [[(NEW, 100)], [(NEW, 7)]]


def test_a_longer_recording_is_new_from_where_training_ended():
    whole = walk(150)
    record = record_training_data([whole[:100]], {0: ((90, 100),)})
    assert kinds(record, whole) == [[(TRAINING, 90), (HELD_OUT, 10), (NEW, 50)]]


def test_a_part_is_known_wherever_it_was_cut_and_whatever_its_clock_says():
    whole = walk(100, channels=2)
    record = record_training_data([whole], {0: ((60, 100),)})
    part = Series(whole.values[40:75], dt=0.01)
    assert kinds(record, part) == [[(TRAINING, 20), (HELD_OUT, 15)]]


def test_what_was_replaced_since_is_new():
    whole, other = walk(100), walk(100, seed=4)
    record = record_training_data([whole], {})
    mixed = Series(np.concatenate([whole.values[:30], other.values[30:]]))
    assert kinds(record, mixed) == [[(TRAINING, 30), (NEW, 70)]]


def test_two_series_joined_into_one_are_known():
    a, b = walk(60), walk(60, seed=1)
    record = record_training_data([a, b], {1: ((0, 60),)})
    joined = Series(np.concatenate([a.values, b.values, walk(30, seed=2).values]))
    assert kinds(record, joined) == [[(TRAINING, 60), (HELD_OUT, 60), (NEW, 30)]]


def test_a_value_that_was_mended_since_does_not_hide_the_rest():
    whole = walk(100)
    values = whole.values.copy()
    values[50] = 0.0
    assert kinds(record_training_data([whole], {}), Series(values)) == [[(TRAINING, 100)]]


def test_missing_values_and_either_zero_are_compared_by_what_they_mean():
    values = np.round(walk(60).values)
    values[[7, 20]] = 0.0
    mask = np.arange(60) != 30
    record = record_training_data([Series(values, mask=mask)], {})
    values[[7, 20]] = -0.0
    values[30] = np.nan
    assert kinds(record, Series(values[:50], missing="nan")) == [[(TRAINING, 50)]]


def test_flat_stretches_are_not_taken_for_training_data():
    flat = Series(np.concatenate([walk(50).values[:, 0], np.zeros(200)]))
    record = record_training_data([flat], {})
    other = Series(np.concatenate([np.zeros(100), walk(50, seed=3).values[:, 0]]))
    assert kinds(record, other) == [[(NEW, 150)]]
    assert kinds(record, flat) == [[(TRAINING, 250)]]


def test_the_record_of_long_data_stays_small_and_still_finds_a_part():
    whole = walk(200_000)
    record = record_training_data([whole], {0: ((180_000, 200_000),)})
    assert len(record.marks) < 25_000 and record.one_of > 1
    assert kinds(record, whole[150_000:190_000]) == [[(TRAINING, 30_000), (HELD_OUT, 10_000)]]
    assert kinds(record, walk(40_000, seed=9)) == [[(NEW, 40_000)]]


@pytest.mark.parametrize(
    "change", [{"series": ()}, {"one_of": 0}, {"marks": "AAAA"}, {"marks": "?"}, {"marks": "A" * 4 * 10_000}]
)
def test_a_record_that_makes_no_sense_is_refused(change):
    record = record_training_data([walk(30)], {})
    with pytest.raises(ValueError):
        dataclasses.replace(record, **change)


@pytest.mark.parametrize("spans", [((0, 31),), ((5, 2),), ((4, 9), (3, 20)), ((-1, 3),)])
def test_held_out_rows_lie_within_the_series_in_order(spans):
    with pytest.raises(ValueError, match="are not rows of 30"):
        dataclasses.replace(record_training_data([walk(30)], {}).series[0], held_out=spans)
