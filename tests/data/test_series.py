"""Series: what is accepted, what is refused, and what the refusal says."""

import numpy as np
import pandas as pd
import pytest

from lamperti._errors import LampertiWarning, SeriesError
from lamperti.data import Series, as_series_list, check_for_training


def test_a_vector_becomes_one_channel_sampled_one_apart():
    series = Series([1.0, 2.0, 4.0])
    assert series.values.shape == (3, 1) and series.mask.all()
    assert series.names == ("y",) and series.dt == 1.0 and series.is_regular
    np.testing.assert_array_equal(series.times, [0.0, 1.0, 2.0])


def test_several_channels_are_numbered_and_dt_spaces_them():
    series = Series(np.arange(6.0).reshape(3, 2), dt=0.5)
    assert series.names == ("y0", "y1") and (series.length, series.n_channels) == (3, 2)
    np.testing.assert_allclose(series.steps, 0.5)


def test_arrays_are_copies_that_cannot_be_written():
    source = np.array([1.0, 2.0])
    series = Series(source)
    source[0] = 9.0
    assert series.values[0, 0] == 1.0
    for array in (series.values, series.mask, series.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        series.names = ("z",)  # pyright: ignore


def test_irregular_times_are_kept_as_they_are():
    series = Series([1, 2, 3, 4], times=[0.0, 1.0, 2.5, 3.5])
    assert not series.is_regular and series.dt == 1.0
    np.testing.assert_allclose(series.steps, [1.0, 1.5, 1.0])


def test_rounding_of_large_times_does_not_make_a_series_irregular():
    assert Series(np.arange(1000.0), times=1.7e9 + np.arange(1000) * 1e-3).is_regular


def test_dates_become_seconds():
    stamps = np.array(["1970-01-02T00:00:00.250", "1970-01-02T00:00:01"], dtype="datetime64[ns]")
    np.testing.assert_allclose(Series([1, 2], times=stamps).times, [86400.25, 86401.0])


def test_undeclared_nan_is_refused_with_counts_by_column():
    values = np.ones((4, 2))
    values[1, 0] = values[1:3, 1] = np.nan
    with pytest.raises(SeriesError, match=r"'a': 1, 'b': 2; the first in row 1, column 'a'.*missing=\"nan\""):
        Series(values, names=["a", "b"])


def test_declared_nan_is_masked_and_still_shows_as_nan():
    series = Series([1.0, np.nan, 3.0], missing="nan")
    np.testing.assert_array_equal(series.mask[:, 0], [True, False, True])
    assert np.isnan(series.values[1, 0])


def test_masked_values_are_hidden_whatever_they_were():
    series = Series([[1.0, 2.0], [np.inf, np.nan], [3.0, 4.0]], mask=[True, False, True])
    assert np.isnan(series.values[1]).all() and series.mask.sum() == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0, np.inf, 2.0]}, r"row 1, column 'y' holds inf"),
        ({"values": [1 + 2j, 2]}, r"not complex numbers"),
        ({"values": [True, False]}, r"not booleans"),
        ({"values": np.array([1.0, "x"], dtype=object)}, r"row 1 holds 'x'"),
        ({"values": np.array([[1.0, 2.0], [3.0, None]], dtype=object)}, r"row 1, column 1 holds None"),
        ({"values": ["1", "2"]}, r"row 0 holds .*'1'"),
        ({"values": [[1, 2], [3]]}, r"unequal length"),
        ({"values": [1.0]}, r"at least 2 samples; got 1"),
        ({"values": []}, r"at least 2 samples; got 0"),
        ({"values": np.ones((3, 0))}, r"no columns"),
        ({"values": np.ones((2, 2, 2))}, r"\[T\] or \[T, P\]; got shape \(2, 2, 2\)"),
        ({"values": [[1.0, np.nan], [2.0, np.nan]], "missing": "nan"}, r"'y1' has no observed value"),
        ({"values": [1, 2], "missing": "zero"}, r"missing must be"),
        ({"values": [1, 2], "times": [0, 1], "dt": 1.0}, r"both times and dt"),
        ({"values": [1, 2], "dt": 0.0}, r"dt must be a positive number; got 0.0"),
        ({"values": [1, 2], "dt": float("nan")}, r"dt must be a positive number"),
        ({"values": [1, 2], "times": [0, 1, 2]}, r"one time a sample"),
        ({"values": [1, 2], "times": [0, np.nan]}, r"row 1 has nan"),
        ({"values": [1, 2, 3], "times": [0, 2, 1]}, r"times must increase; row 2 has 1 after 2. Sort the rows."),
        ({"values": [1, 2, 3], "times": [0, 1, 1]}, r"row 2 has 1 after 1. Drop or merge the duplicate."),
        ({"values": [1, 2], "mask": [1, 0]}, r"mask must be booleans"),
        ({"values": [1, 2], "mask": [True]}, r"mask has shape \(1,\)"),
        ({"values": np.ones((2, 2)), "names": ["a"]}, r"1 entries for 2 channels"),
        ({"values": np.ones((2, 2)), "names": ["a", "a"]}, r"'a' comes twice"),
        ({"values": np.ones((2, 2)), "names": ["a", " "]}, r"channel 1 has the name ' '"),
    ],
)
def test_bad_input_is_refused_with_its_place(arguments, message):
    with pytest.raises(SeriesError, match=message):
        Series(**arguments)


def test_integers_beyond_float_precision_warn():
    with pytest.warns(LampertiWarning, match=r"above 2\*\*53"):
        Series(np.array([2**53 + 1, 0]))


def test_slices_and_splits_keep_times_and_names():
    series = Series(np.arange(10.0), dt=2.0, names="x")
    part = series[3:5]
    np.testing.assert_array_equal(part.times, [6.0, 8.0])
    assert part.names == ("x",)
    past, future = series.split(-1)
    assert (past.length, future.length) == (9, 1) and future.values[0, 0] == 9.0
    with pytest.raises(SeriesError, match="one sample has no step"):
        _ = future.dt
    with pytest.raises(SeriesError, match="empty; the series has 10 samples"):
        series[20:]
    with pytest.raises(SeriesError, match="slice"):
        series[3]  # pyright: ignore


def test_repr_tells_length_names_sampling_and_gaps():
    text = repr(Series([1.0, np.nan, 3.0], dt=0.1, missing="nan"))
    assert text == "Series(3 samples of y; t=0..0.2, dt=0.1, 1 of 3 values missing)"


def test_arrays_of_one_two_and_three_axes_are_time_then_series_then_channels():
    assert [s.values.shape for s in as_series_list(np.arange(5.0))] == [(5, 1)]
    assert [s.values.shape for s in as_series_list(np.zeros((3, 5)))] == [(5, 1)] * 3
    assert [s.values.shape for s in as_series_list(np.zeros((3, 5, 2)))] == [(5, 2)] * 3
    assert [s.values.shape for s in as_series_list([1.0, 2.0, 3.0])] == [(3, 1)]


def test_lists_may_be_ragged_and_mixed():
    series = as_series_list([Series([1, 2, 3], dt=0.1), np.arange(7.0)])
    assert [s.length for s in series] == [3, 7] and series[0].dt == pytest.approx(0.1)


def test_series_with_other_channels_are_refused():
    with pytest.raises(SeriesError, match=r"series 0 has \(a\), series 1 has \(b\)"):
        as_series_list([Series([1, 2], names="a"), Series([1, 2], names="b")])


@pytest.mark.parametrize("nothing", [[], np.zeros((0, 5))])
def test_no_series_at_all_is_refused(nothing):
    with pytest.raises(SeriesError, match="no series"):
        as_series_list(nothing)


def test_an_error_in_a_list_names_the_series():
    with pytest.raises(SeriesError, match=r"series 1: .*row 0"):
        as_series_list([[1.0, 2.0], [np.inf, 2.0]])


def test_frames_are_read_with_their_index_as_time():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 0.1, 0.2]}, index=[0.0, 0.5, 2.0])
    (series,) = as_series_list(frame)
    assert series.names == ("a", "b")
    np.testing.assert_array_equal(series.times, [0.0, 0.5, 2.0])
    dates = pd.date_range("2024-01-01", periods=3, freq="min", tz="Europe/Madrid")
    (series,) = as_series_list(pd.Series([1.0, 2.0, 3.0], index=dates, name="v"))
    assert series.names == ("v",) and series.times[0] == 1704063600.0 and series.dt == 60.0


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["1", "2"], "column 'a', row 0 holds '1'"),
        ([True, False], "column 'a' holds booleans"),
        (pd.Categorical(["x", "y"]), "column 'a' holds categories"),
        ([1.0, "x"], "column 'a', row 1 holds 'x'"),
    ],
)
def test_frames_with_anything_but_numbers_are_refused(column, message):
    with pytest.raises(SeriesError, match=message):
        as_series_list(pd.DataFrame({"a": column}))


def test_a_frame_indexed_by_text_is_refused():
    with pytest.raises(SeriesError, match="reset_index"):
        as_series_list(pd.DataFrame({"a": [1, 2]}, index=["r", "s"]))


def test_training_refuses_a_channel_constant_over_all_series_but_not_over_one():
    varied = np.random.default_rng(0).normal(size=20)
    check_for_training([Series(np.ones(20)), Series(varied)])
    with pytest.raises(SeriesError, match=r"'y1' is constant \(3 in all 40 observed samples\)"):
        check_for_training([Series(np.stack([varied, np.full(20, 3.0)], 1))] * 2)


def test_training_warns_of_a_tiny_signal_on_a_large_offset():
    signal = Series(1e9 + np.sin(np.arange(50.0)))
    with pytest.warns(LampertiWarning, match="'y' is nearly constant: its sd is 0.7.* around 10000"):
        check_for_training([signal])


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_training_takes_extreme_units(size):
    check_for_training([Series(size * np.sin(np.arange(50.0)))])


def test_training_states_the_length_it_needs():
    with pytest.raises(SeriesError, match="3 transitions between samples; learning needs at least 10"):
        check_for_training([Series([1, 2, 3, 4])])
    with pytest.raises(SeriesError, match="at least 30 samples"):
        check_for_training([Series(np.arange(20.0))], window=30)


def test_an_array_with_more_series_than_samples_is_doubted():
    with pytest.warns(
        LampertiWarning, match=r"\(300, 2\) is \[R, T\].*300 samples and 2 channels .*lamperti.Series\(array\)"
    ):
        assert len(as_series_list(np.zeros((300, 2)))) == 300
    with pytest.raises(SeriesError, match=r"\(300, 1\).*lamperti.Series\(array\)"):
        as_series_list(np.zeros((300, 1)))
    assert len(as_series_list(np.zeros((300, 20)))) == 300  # warnings are errors here


def test_the_index_of_a_pandas_object_is_its_time():
    dates = pd.date_range("2024-01-01", periods=4, freq="h", tz="Europe/Berlin")
    series = Series(pd.Series([1.0, 2.0, 1.5, 3.0], index=dates))
    np.testing.assert_array_equal(series.steps, 3600.0)
    assert series.times[0] == pd.Timestamp("2023-12-31 23:00").timestamp()
    np.testing.assert_array_equal(Series(pd.Series([1.0, 2.0, 3.0], index=[0.0, 0.5, 2.0])).times, [0.0, 0.5, 2.0])
    np.testing.assert_array_equal(Series(pd.Series([1.0, 2.0], index=["a", "b"])).times, [0.0, 1.0])
    np.testing.assert_array_equal(Series(pd.Series([1.0, 2.0], index=dates[:2]), dt=0.5).steps, 0.5)
