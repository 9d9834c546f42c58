"""What was once read as something else than was meant, or refused by words that were not ours."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from lamperti._errors import ConfigError, LampertiWarning, SeriesError
from lamperti._numbers import as_count
from lamperti.data import Series, read

# Declared missing values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_number_declared_missing_is_found_in_the_precision_of_its_column(dtype):
    (series,) = read(np.array([1, -999.9, 2], dtype), missing=[-999.9])
    assert series.mask[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]"])
def test_tables_keep_their_precision_until_missing_values_are_found(dtype):
    frame = pd.DataFrame({"a": pd.array([1, -999.9, 2], dtype=dtype)})
    for table in (frame, pl.DataFrame({"a": np.array([1, -999.9, 2], np.float32)})):
        (series,) = read(table, missing=[-999.9])
        assert series.mask[:, 0].tolist() == [True, False, True]


def test_a_long_table_keeps_its_precision_until_missing_values_are_found():
    frame = pd.DataFrame({"t": [0, 1, 2], "what": "a", "v": np.array([1, -999.9, 2], np.float32)})
    (series,) = read(frame, time="t", channel="what", value="v", missing=[-999.9])
    assert series.mask[:, 0].tolist() == [True, False, True]


def test_a_mark_too_large_for_the_column_does_not_stand_for_its_infinities():
    with pytest.raises(SeriesError, match="finite"):
        read(np.array([1, np.inf, 2], np.float16), missing=[1e300])


def test_a_fraction_declared_missing_is_not_cut_to_fit_whole_numbers():
    (series,) = read(np.array([1, -999, 2]), missing=[-999.9])
    assert series.mask.all()


# Dates


def test_only_a_format_with_an_offset_finds_one():
    stamps = ["2024-01-02 10-30", "2024-01-02 10-31", "2024-01-02 10-32"]
    frame = pd.DataFrame({"t": stamps, "a": [1.0, 2.0, 4.0]})
    (series,) = read(frame, time="t", time_format="%Y-%m-%d %H-%M", timezone="Europe/Madrid")
    assert series.times[0] == pd.Timestamp("2024-01-02T09:30Z").timestamp()


def test_dates_with_offsets_in_a_format_of_their_own_cross_a_clock_change():
    stamps = ["31/Mar/2024:01:30:00 +0100", "31/Mar/2024:03:30:00 +0200", "31/Mar/2024:04:30:00 +0200"]
    frame = pd.DataFrame({"t": stamps, "a": [1.0, 2.0, 4.0]})
    (series,) = read(frame, time="t", time_format="%d/%b/%Y:%H:%M:%S %z")
    assert series.steps.tolist() == [3600, 3600]
    assert series.times[0] == pd.Timestamp("2024-03-31T00:30Z").timestamp()


@pytest.mark.parametrize("written", ["%Q", "%s", "%d/%m/%", "%Y-%Y", "%Y-W%W", ""])
def test_a_format_that_describes_no_date_is_refused_in_plain_words(written):
    frame = pd.DataFrame({"t": ["01/02/2024", "02/02/2024", "03/02/2024"], "a": [1.0, 2.0, 4.0]})
    with pytest.raises(ConfigError, match="time_format"):
        read(frame, time="t", time_format=written)


def test_an_empty_time_zone_is_refused():
    frame = pd.DataFrame({"t": ["2024-01-01", "2024-01-02", "2024-01-03"], "a": [1.0, 2.0, 4.0]})
    with pytest.raises(ConfigError, match="timezone"):
        read(frame, time="t", timezone="")


# Packed values


@pytest.fixture
def unpacked():
    """A variable that was stored as whole numbers and unpacked by xarray."""

    def make(packed, dtype="i2", scale=0.1, **attributes):
        stored = xr.Dataset({"x": ("time", np.array(packed, dtype), {"scale_factor": scale, "add_offset": 20.0})})
        stored["x"].attrs |= attributes
        return xr.decode_cf(stored.assign_coords(time=("time", np.arange(float(len(packed))))))

    return make


@pytest.mark.parametrize("limits", [{"valid_range": np.array([0, 700], "i2")}, {"valid_min": 0, "valid_max": 700}])
def test_limits_of_unpacked_values_are_in_packed_units(unpacked, limits):
    data = unpacked([0, -1, 700, 701], **limits)
    with pytest.warns(LampertiWarning, match="2 values of 'x' lie outside its valid range, 0 to 700"):
        (series,) = read(data, missing="nan")
    assert series.mask[:, 0].tolist() == [True, False, True, False]
    assert series.values[2, 0] == pytest.approx(90)


def test_limits_of_unpacked_bytes_have_the_sign_that_is_meant(unpacked):
    data = unpacked([1, -56, -1, 3], "i1", scale=0.5, _Unsigned="true", valid_range=np.array([0, -56], "i1"))
    with pytest.warns(LampertiWarning, match="1 values of 'x' lie outside its valid range, 0 to 200"):
        (series,) = read(data, missing="nan")
    assert series.mask[:, 0].tolist() == [True, True, False, True]


def test_fractions_as_limits_of_unpacked_values_are_refused_as_in_files(unpacked):
    with pytest.raises(SeriesError, match="packed or the unpacked"):
        read(unpacked([0, 1, 2], valid_max=70.5))


# Codes


def test_a_word_declared_missing_is_no_code():
    frame = pd.DataFrame({"valve": ["open", "n.d.", "shut", "open"], "a": [1.0, 2.0, 4.0, 3.0]})
    (series,) = read(frame, codes="valve", missing=["n.d."])
    assert series.mask[:, 0].tolist() == [True, False, True, True]
    assert series.values[[0, 2, 3], 0].tolist() == [0, 1, 0]
    assert series.repairs == (
        "column 'valve' was numbered: open=0, shut=1",
        "1 cells of column 'valve' were declared missing",
    )


def test_a_number_declared_missing_is_no_code():
    frame = pd.DataFrame({"valve": [3, -9, 5, 3], "a": [1.0, 2.0, 4.0, 3.0]})
    for valve in (frame["valve"], frame["valve"].astype(np.float32), frame["valve"].astype(object)):
        (series,) = read(frame.assign(valve=valve), codes="valve", missing=[-9])
        assert series.mask[:, 0].tolist() == [True, False, True, True]


# NPZ


@pytest.mark.parametrize("dt", [np.timedelta64(100, "ms"), "0.1", True])
def test_a_step_in_an_archive_that_is_no_number_is_refused(tmp_path, dt):
    np.savez(tmp_path / "a.npz", x=np.arange(5.0), dt=dt)
    with pytest.raises(SeriesError, match="'dt'"):
        read(tmp_path / "a.npz")


def test_times_beside_the_array_that_was_chosen_are_read(tmp_path):
    times = np.array([0, 1, 3, 4, 7.0])
    np.savez(tmp_path / "a.npz", x=np.arange(5.0), y=np.ones(7), time=times)
    (series,) = read(tmp_path / "a.npz", array="x")
    assert series.times.tolist() == times.tolist() and series.names == ("x",)


def test_times_that_do_not_fit_the_array_that_was_chosen_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(10.0).reshape(2, 5), time=np.arange(4.0))
    with pytest.raises(SeriesError, match="'time'"):
        read(tmp_path / "a.npz", array="x")


def test_times_beside_several_series_of_an_archive_hold_for_each(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(10.0).reshape(2, 5), time=2.0 * np.arange(5))
    for series in read(tmp_path / "a.npz", array="x"):
        assert series.times.tolist() == [0, 2, 4, 6, 8]


# Numbers that are none


def test_a_duration_is_no_number():
    second, values = np.timedelta64(1, "s"), np.arange(5.0)
    with pytest.raises(SeriesError, match="dt must be a positive number"):
        Series(values, dt=second)
    with pytest.raises(SeriesError, match="split at a whole number"):
        Series(values).split(second)
    with pytest.raises(ConfigError, match="horizon must be a whole number"):
        as_count("horizon", second)
    with pytest.raises(ConfigError, match="missing must be"):
        read(values, missing=[second])
    with pytest.raises(ConfigError, match="split_gaps must exceed 1"):
        read(values, split_gaps=np.timedelta64(3, "s"))


def test_a_step_that_leads_beyond_all_numbers_is_refused():
    with pytest.raises(SeriesError, match="dt of 1e\\+308 is too large"):
        Series(np.arange(5.0), dt=1e308)


def test_names_without_an_order_are_refused():
    values = np.arange(10.0).reshape(5, 2)
    with pytest.raises(SeriesError, match="names is a set, which has no order"):
        Series(values, names={"a", "b"})
    with pytest.raises(SeriesError, match="units is a set, which has no order"):
        Series(values, units={"m", "s"})
    with pytest.raises(ConfigError, match="columns is a set, which has no order"):
        read(pd.DataFrame(values, columns=["a", "b"]), columns={"a", "b"})


def test_hidden_cells_of_a_mask_are_not_observed():
    mask = np.ma.array([True, True, False, True], mask=[False, True, False, False])
    assert Series(np.arange(4.0), mask=mask).mask[:, 0].tolist() == [True, False, False, True]


# How text is written


@pytest.mark.parametrize("option", ["decimal", "thousands", "separator"])
@pytest.mark.parametrize("mark", ["5", "e", "é", "²"])
def test_marks_that_are_part_of_numbers_and_words_are_refused(option, mark):
    with pytest.raises(ConfigError, match=f"{option} cannot be {mark!r}"):
        read("a.csv", **{option: mark})


@pytest.mark.parametrize("option", ["decimal", "thousands"])
@pytest.mark.parametrize("mark", ["-", "+"])
def test_signs_are_refused_as_marks_within_numbers(option, mark):
    with pytest.raises(ConfigError, match=f"{option} cannot be"):
        read("a.csv", **{option: mark})


def test_a_separator_beyond_ascii_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a§b\n1§2\n3§4\n5§7\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="separator cannot be '§'"):
        read(tmp_path / "a.csv", separator="§")


# Series told apart by an index


def test_levels_of_an_index_that_hold_a_slash_stay_apart():
    rows = [("a/b", "c", t) for t in range(3)] + [("a", "b/c", t) for t in range(3, 6)]
    frame = pd.DataFrame({"v": np.arange(6.0)}, index=pd.MultiIndex.from_tuples(rows, names=["p", "q", "time"]))
    first, second = read(frame)
    assert (first.label, second.label) == ("a\\/b/c", "a/b\\/c")


# Files


def test_an_encoding_that_cannot_be_a_name_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n2\n3\n")
    with pytest.raises(SeriesError, match="there is no encoding"):
        read(tmp_path / "a.csv", encoding="utf\0")


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(SeriesError, match="is a link"):
        read(tmp_path / "a.csv")
