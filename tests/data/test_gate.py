"""The gate: layouts, options and what they do to data, from tables on disk and in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from lamperti._errors import ConfigError, LampertiWarning, SeriesError
from lamperti.data import Series, as_series_list, check, read


@pytest.fixture
def table(tmp_path):
    def write(text: str | bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


# Missing values


def test_numbers_and_words_can_be_declared_missing_and_are_counted(table):
    path = table("time,a,b\n0,1,2\n1,-999,3\n2,5,n.d.\n3,7,8\n")
    with pytest.raises(SeriesError, match=r"column 'b', row 2 holds 'n.d.'.*missing="):
        read(path)
    (series,) = read(path, missing=[-999, "n.d."])
    assert (~series.mask).sum() == 2 and not series.mask[1, 0] and not series.mask[2, 1]
    assert series.repairs == (
        "1 cells of column 'a' were declared missing",
        "1 cells of column 'b' were declared missing",
    )


def test_a_number_declared_missing_does_not_declare_nan(table):
    path = table("a\n1\n\n-9\n2\n")
    with pytest.raises(SeriesError, match="NaN"):
        read(path, missing=-9)
    assert read(path, missing=("nan", -9))[0].mask[:, 0].tolist() == [True, False, False, True]


# Order, duplicates, gaps, constants, codes


def test_rows_are_sorted_only_when_asked_and_it_is_recorded(table):
    path = table("time,x\n2,30\n0,10\n1,20\n")
    with pytest.raises(SeriesError, match=r"times must increase; row 1 has 0 after 2.*sort=True"):
        read(path)
    (series,) = read(path, sort=True)
    np.testing.assert_array_equal(series.values[:, 0], [10, 20, 30])
    assert series.repairs == ("rows were sorted by time (3 of 3 moved)",)


@pytest.mark.parametrize(("rule", "kept"), [("first", 20), ("last", 40), ("mean", 30)])
def test_equal_times_are_merged_only_when_asked(table, rule, kept):
    path = table("time,x\n0,10\n1,20\n1,40\n2,50\n")
    with pytest.raises(SeriesError, match=r'row 2 has 1 after 1.*duplicates="first"'):
        read(path)
    (series,) = read(path, duplicates=rule)
    np.testing.assert_array_equal(series.values[:, 0], [10, kept, 50])
    assert "1 rows with a time that came before were merged" in series.repairs[0]


def test_the_mean_of_equal_times_leaves_out_what_is_missing_and_does_not_overflow():
    frame = pd.DataFrame({"x": [1.5e308, 1.5e308, 1.0, np.nan], "t": [0, 0, 1, 1]})
    (series,) = read(frame, duplicates="mean", missing="nan")
    np.testing.assert_array_equal(series.values[:, 0], [1.5e308, 1.0])


def test_a_series_is_cut_at_gaps_only_when_asked(table):
    path = table("time,x\n" + "".join(f"{t},{t % 3}\n" for t in [0, 1, 2, 10, 20, 21, 22]))
    assert len(read(path)) == 1
    first, second = read(path, split_gaps=5)
    assert (first.label, second.label) == ("0", "1")
    np.testing.assert_array_equal(second.times, [20, 21, 22])
    assert first.repairs == (
        "cut at 2 gaps longer than 5 median steps; 1 samples between gaps were left out, too few to use",
    )


def test_constant_channels_are_left_out_only_when_asked(table):
    path = table("a,b,c\n1,5,2\n2,5,2\n4,5,3\n")
    assert read(path)[0].names == ("a", "b", "c")
    (series,) = read(path, drop_constant=True)
    assert series.names == ("a", "c") and series.repairs == ("constant column 'b' was left out",)


def test_words_and_booleans_are_numbered_only_when_declared(table):
    path = table("valve,pump,x\nopen,True,1\nshut,False,2\nopen,True,4\n")
    with pytest.raises(SeriesError, match=r"column 'pump' holds booleans.*codes='pump'"):
        read(path, columns=["pump", "x"])
    (series,) = read(path, codes=["valve", "pump"])
    np.testing.assert_array_equal(series.values[:, :2], [[0, 1], [1, 0], [0, 1]])
    assert series.repairs[0] == "column 'valve' was numbered: open=0, shut=1"


# Numbers and dates as text


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('x,z\n"1,5",1\n"2,5",2\n', {"decimal": ","}),
        ("x;z\n1,5;1\n2,5;2\n", {"decimal": ",", "separator": ";"}),
        ("x;z\n1.001,5;1\n1.002,5;2\n", {"decimal": ",", "thousands": ".", "separator": ";"}),
        ('x,z\n"1,001.5",1\n"1,002.5",2\n', {"thousands": ","}),
        ('x,z\n"1,5",1\n-,9\n"2,5",2\n', {"decimal": ",", "missing": "-"}),
    ],
)
def test_decimal_commas_and_thousands_are_refused_until_they_are_declared(table, text, options):
    with pytest.raises(SeriesError, match=r"decimal|separated by semicolons"):
        read(table(text))
    (series,) = read(table(text), **options)
    assert np.nanmax(series.values[:, 0]) - np.nanmin(series.values[:, 0]) == 1.0


def test_other_encodings_are_named_and_read_when_declared(table):
    path = table("größe\n1\n2\n".encode("latin-1"))
    with pytest.raises(SeriesError, match=r'not UTF-8 text.*encoding="latin-1"'):
        read(path)
    assert read(path, encoding="latin-1")[0].names == ("größe",)
    path = table("größe\n1\n2\n".encode("utf-16"))
    with pytest.raises(SeriesError, match="UTF-16"):
        read(path)
    assert read(path, encoding="utf-16")[0].names == ("größe",)
    with pytest.raises(SeriesError, match="NUL character"):
        read(table(b"a\n1\n\x002\n"))
    with pytest.raises(SeriesError, match="no encoding 'klingon'"):
        read(path, encoding="klingon")


def test_dates_are_placed_in_their_time_zone_and_an_hour_that_comes_twice_is_refused(table):
    path = table("when,x\n2024-07-01 12:00,1\n2024-07-01 13:00,2\n")
    (series,) = read(path, time="when", timezone="Europe/Madrid")
    assert series.times[0] == pd.Timestamp("2024-07-01T10:00Z").timestamp()
    twice = table("when,x\n2024-10-27 02:30,1\n2024-10-27 03:30,2\n")
    with pytest.raises(SeriesError, match="cannot be placed in the time zone 'Europe/Madrid'"):
        read(twice, time="when", timezone="Europe/Madrid")
    with pytest.raises(SeriesError, match="time zone 'Mars'"):
        read(twice, time="when", timezone="Mars")


def test_dates_with_and_without_offset_do_not_mix(table):
    with pytest.raises(SeriesError, match=r"mixes dates with and without an offset.*row 1"):
        read(table("when,x\n2024-07-01T12:00Z,1\n2024-07-01T13:00,2\n"), time="when")


def test_dates_of_other_forms_need_their_format(table):
    path = table("day,x\n01/02/2024,1\n02/02/2024,2\n")
    with pytest.raises(SeriesError, match=r"several ways.*time_format"):
        read(path, time="day")
    (series,) = read(path, time="day", time_format="%d/%m/%Y")
    assert series.dt == 86400.0


def test_subjects_with_leading_zeros_stay_apart(table):
    series = read(table("who,x\n007,1\n7,2\n007,3\n7,5\n"), id="who")
    assert [s.label for s in series] == ["007", "7"]


# Long tables


def test_a_long_table_becomes_wide_and_what_it_lacks_is_missing(table):
    path = table("who,time,what,value\na,0,p,1\na,1,p,2\na,0,q,5\na,2,q,6\nb,0,p,1\nb,3,p,9\nb,3,q,7\n")
    first, second = read(path, id="who", channel="what", value="value")
    assert first.names == ("p", "q") and first.label == "a"
    np.testing.assert_array_equal(first.times, [0, 1, 2])
    np.testing.assert_array_equal(first.values, [[1, 5], [2, np.nan], [np.nan, 6]])
    np.testing.assert_array_equal(second.mask, [[True, False], [True, True]])


def test_a_long_table_with_a_value_twice_is_refused(table):
    path = table("time,what,value\n0,p,1\n1,p,2\n1,p,3\n")
    with pytest.raises(SeriesError, match="p: times must increase"):
        read(path, channel="what", value="value")
    (series,) = read(path, channel="what", value="value", duplicates="mean")
    np.testing.assert_array_equal(series.values[:, 0], [1, 2.5])
    with pytest.raises(ConfigError, match="both channel= and value="):
        read(path, channel="what")
    with pytest.raises(SeriesError, match="needs a column of times"):
        read(table("what,value\np,1\np,2\n"), channel="what", value="value")


# In memory


def test_frames_take_the_options_of_files():
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01", "2024-01-02"]), "x": [1, 2], "who": ["a", "a"]})
    (series,) = read(frame, time="when", id="who", units={"x": "mV"})
    assert series.dt == 86400.0 and series.units == ("mV",) and series.label == "a"
    assert series.time_unit == "s since 1970-01-01 UTC"


def test_a_column_named_time_is_found_where_the_index_only_counts():
    (series,) = as_series_list(pd.DataFrame({"time": [0.0, 2.0, 3.0], "x": [1, 2, 3]}))
    assert series.names == ("x",) and not series.is_regular


def test_nullable_integers_keep_their_digits_or_warn():
    frame = pd.DataFrame({"x": pd.array([2**53 + 1, 0], dtype="Int64")})
    with pytest.warns(LampertiWarning, match=r"above 2\*\*53"):
        read(frame)


def test_polars_frames_are_read_like_any_table():
    frame = pl.DataFrame({"t": [0.0, 0.5, 1.0], "x": [1, None, 3], "s": ["u", "v", "w"]})
    with pytest.raises(SeriesError, match="column 's', row 0 holds 'u'"):
        read(frame)
    (series,) = read(frame, columns="x", missing="nan")
    np.testing.assert_array_equal(series.times, [0, 0.5, 1])
    assert series.mask[:, 0].tolist() == [True, False, True]
    assert as_series_list(pl.DataFrame({"a": [1, 2]}))[0].names == ("a",)
    with pytest.raises(SeriesError, match="holds categories"):
        read(pl.DataFrame({"a": pl.Series(["u", "v"], dtype=pl.Categorical)}))


def test_xarray_objects_have_time_and_id_as_dimensions():
    values = np.arange(12.0).reshape(2, 3, 2)
    data = xr.DataArray(
        values,
        dims=("rat", "time", "electrode"),
        coords={"rat": ["r1", "r2"], "time": [0.0, 0.1, 0.3], "electrode": ["a", "b"]},
        name="v",
        attrs={"units": "mV"},
    )
    first, second = read(data, id="rat")
    assert first.names == ("v_a", "v_b") and second.label == "r2" and first.units == ("mV", "mV")
    np.testing.assert_array_equal(second.values, values[1])
    np.testing.assert_array_equal(first.times, [0, 0.1, 0.3])
    (single,) = as_series_list(xr.DataArray([1.0, 2.0], dims="time"))
    assert single.names == ("y",)
    with pytest.raises(SeriesError, match="which dimension is time"):
        read(xr.DataArray(np.zeros((2, 3)), dims=("a", "b")))
    with pytest.raises(SeriesError, match="may be one more, of channels"):
        read(xr.DataArray(np.zeros((2, 3, 4)), dims=("time", "lat", "lon")))


@pytest.mark.parametrize(
    ("index", "first"),
    [
        (pd.date_range("1970-01-02", periods=2, tz="UTC"), 86400.0),
        (pd.to_timedelta(["1min", "2min"]), 60.0),
        (pd.period_range("1970-01", periods=2, freq="M"), 0.0),
    ],
)
def test_an_index_of_dates_durations_or_periods_is_time(index, first):
    assert as_series_list(pd.DataFrame({"x": [1, 2]}, index=index))[0].times[0] == first


def test_a_path_is_not_taken_for_data():
    with pytest.raises(SeriesError, match=r"path, not data. Read a file first: lamperti.read"):
        as_series_list(["a.csv"])


# Several recordings in a list


def test_masked_cells_are_never_data():
    values = np.ma.masked_less(np.array([1.0, -9.0, 2.0]), 0)
    for data in (values, [np.ones(3), values], [[1.0, 2.0, 3.0], values]):
        with pytest.raises(SeriesError, match="masked array with 1 cells masked"):
            read(data)
        with pytest.raises(SeriesError, match="masked array with 1 cells masked"):
            read(data, axes="RT" if isinstance(data, list) else "T", dt=0.1)
    np.testing.assert_array_equal(read(np.ma.array([1.0, 2.0]))[0].values[:, 0], [1, 2])


def test_each_table_of_a_list_is_read_as_it_would_be_alone():
    frame = pd.DataFrame({"time": [0.0, 2.0, 5.0], "x": [1, 2, 4], "c": [1, 1, 1]})
    other = pl.DataFrame({"time": [1.0, 2.0], "x": [3, 5], "c": [1, 2]})
    for one, alone in zip(read([frame, other]), [*read(frame), *read(other)], strict=True):
        assert one.names == ("x", "c")
        np.testing.assert_array_equal(one.values, alone.values)
        np.testing.assert_array_equal(one.times, alone.times)
    assert read([frame, other], drop_constant=True)[0].names == ("x", "c")  # constant in the first table only
    assert read([frame, frame], drop_constant=True)[1].names == ("x",)
    who = frame.assign(who="p")
    assert [s.label for s in read([who, who], id="who")] == ["0/p", "1/p"]
    with pytest.raises(SeriesError, match=r"series 1: .*NaN.*'x': 1"):
        read([frame, frame.assign(x=[1, np.nan, 2])])
    with pytest.raises(SeriesError, match="same channels"):
        read([frame, frame.drop(columns="x")])
    with pytest.raises(SeriesError, match="one has dates and the other has not"):
        read([frame, frame.assign(time=pd.date_range("2024-01-01", periods=3))])
    with pytest.raises(ConfigError, match="codes= numbers the words of one table"):
        read([frame, frame], codes="x")


def test_arrays_of_a_list_may_differ_in_length():
    first, second = read([np.arange(5.0), [1.0, 3.0, 2.0]], dt=0.5)
    assert (first.length, second.length, second.dt) == (5, 3, 0.5)
    (wide,) = read([np.ones((4, 2))])
    assert wide.names == ("y0", "y1") and wide.length == 4
    assert [s.length for s in check([np.arange(5.0), np.arange(9.0)], dt=0.1).series] == [5, 9]
    with pytest.raises(SeriesError, match="rows of unequal length"):
        read([[1, 2, 3], [1, 2]], axes="RT")
    with pytest.raises(SeriesError, match=r"series 1: .* \[T\] or \[T, P\]; got shape \(1, 2, 2\)"):
        read([np.ones(4), np.ones((1, 2, 2))])


def test_times_beside_a_dimension_that_only_counts_are_the_times():
    (series,) = read(xr.Dataset({"x": ("n", [1.0, 2.0, 4.0])}, coords={"time": ("n", [0.0, 1.0, 5.0])}))
    assert series.names == ("x",) and series.steps.tolist() == [1.0, 4.0]


# Integers that a float cannot hold

BIG = 2**53 + 1


@pytest.mark.parametrize(
    "data",
    [
        f"x\n{BIG}\n\n3\n",
        f"x,z\n{BIG},1\nn.d.,2\n3,4\n",
        f"x\n{2**64 - 1}\n\n3\n",
        f"x\n{2**70}\n\n3\n",
        pd.DataFrame({"x": pd.array([BIG, None, 3], dtype="Int64")}),
        pd.DataFrame({"x": pd.array([2**63 + 1, None, 3], dtype="UInt64")}),
        pl.DataFrame({"x": [BIG, None, 3]}),
        "parquet",
        "netcdf",
    ],
    ids=[
        "CSV",
        "CSV with a word",
        "CSV 64 bits",
        "CSV beyond",
        "pandas",
        "pandas unsigned",
        "polars",
        "Parquet",
        "NetCDF",
    ],
)
def test_large_integers_are_warned_of_beside_cells_that_are_missing(data, table, tmp_path):
    if isinstance(data, str) and data == "parquet":
        pl.DataFrame({"x": [BIG, None, 3]}).write_parquet(data := tmp_path / "a.parquet")
    elif isinstance(data, str) and data == "netcdf":
        x = ("time", np.array([BIG, -1, 3]), {"_FillValue": -1})
        xr.Dataset({"x": x}).to_netcdf(data := tmp_path / "a.nc", engine="h5netcdf")
    elif isinstance(data, str):
        data = table(data)
    with pytest.warns(LampertiWarning, match=r"column 'x' holds integers above 2\*\*53 \(largest magnitude \d*[1-9]\)"):
        (series,) = read(data, columns="x", missing=["nan", "n.d."])
    assert series.mask[:, 0].tolist() == [True, False, True] and series.values[2, 0] == 3


def test_floats_beside_cells_that_are_missing_are_not_taken_for_integers(table):
    (series,) = read(table("x\n1e300\n\n9007199254740994.0\n"), missing="nan")
    assert series.values[0, 0] == 1e300


def test_an_integer_beyond_the_largest_float_is_refused(table):
    with (
        pytest.warns(LampertiWarning, match="2\\*\\*53"),
        pytest.raises(SeriesError, match="row 1, column 'x' holds -inf"),
    ):
        read(table(f"x\n1\n-{10**400}\n"))


@pytest.mark.parametrize("word", ["NA", "null", "nan", "None"])
def test_a_label_that_looks_empty_is_kept_as_it_is_written(table, word):
    series = read(table(f"who,x\n{word},1\n{word},2\nK,3\nK,4\n"), id="who")
    assert [s.label for s in series] == [word, "K"]
    (series,) = read(table(f"time,what,value\n0,{word},1\n1,{word},2\n"), channel="what", value="value")
    assert series.names == (word,)
    with pytest.raises(SeriesError, match="column 'who', row 1 is empty"):
        read(table(f"who,x\n{word},1\n,2\n"), id="who")


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": "x"}, "no option 'colums'. Did you mean 'columns'"),
        ({"duplicates": "any"}, "duplicates must be one of"),
        ({"axes": "XY"}, "axes must be one of"),
        ({"split_gaps": 0.5}, "split_gaps must exceed 1"),
        ({"decimal": ",,"}, "decimal must be one character"),
        ({"thousands": "."}, "cannot both be '.'"),
        ({"missing": [None]}, "missing must be"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"columns": 3}, "columns must be a name or a list of names; got 3"),
        ({"codes": [1]}, "codes must be a name or a list of names"),
        ({"split_gaps": "3"}, "split_gaps must exceed 1 .*; got '3'"),
        ({"axes": 3}, "axes must be text; got 3"),
        ({"separator": 3}, "separator must be text; got 3"),
        ({"time": 0}, "time must be text; got 0"),
        ({"sort": "yes"}, "sort must be True or False"),
        ({"units": "mV"}, "units must be a mapping .*; got 'mV'"),
        ({"units": {"x": 3}}, "units must be a mapping"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_opened(options, message):
    with pytest.raises(ConfigError, match=message):
        read("no such file.csv", **options)


def test_a_unit_of_what_is_no_channel_is_refused(table):
    path = table("time,flow\n0,1\n1,2\n")
    assert read(path, units={"flow": "ml/s"})[0].units == ("ml/s",)
    for name in ("pressure", "time"):
        with pytest.raises(SeriesError, match=f"units names a channel '{name}'; the channels are flow"):
            read(path, units={name: "mmHg"})


FRAME = pd.DataFrame({"time": [0.0, 1.0], "x": [1, 2]})


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (FRAME, {"separator": ";"}, "separator= is for text files, and this is a table in memory"),
        (FRAME, {"encoding": "latin-1"}, "encoding= is for text files"),
        (FRAME, {"axes": "TP"}, "axes= is for bare arrays"),
        (FRAME, {"max_bytes": 10}, "max_bytes= is for files"),
        (FRAME, {"timezone": "Europe/Madrid"}, "timezone= is for dates, but column 'time' holds none"),
        (np.arange(3.0), {"array": "x"}, "array= is for NPZ files, and this is an array in memory"),
        (np.arange(3.0), {"time_format": "%Y"}, "time_format= is for dates, but there are no times here"),
        (xr.DataArray([1.0, 2.0], dims="time"), {"decimal": ","}, "decimal= .* an xarray object"),
        ("a.parquet", {"thousands": ","}, "thousands= .* a Parquet file"),
        ("a.csv", {"axes": "T"}, "axes= .* a text file"),
        ("a.npy", {"array": "x"}, "array= .* an NPY file"),
        ("a.npz", {"axes": "T"}, "axes= is for one array, and this archive holds columns"),
    ],
)
def test_an_option_that_could_do_nothing_is_refused(source, options, message, tmp_path):
    if isinstance(source, str):
        FRAME.to_parquet(tmp_path / "a.parquet")
        FRAME.to_csv(tmp_path / "a.csv", index=False)
        np.save(tmp_path / "a.npy", np.arange(3.0))
        np.savez(tmp_path / "a.npz", x=np.arange(3.0), z=np.arange(3.0))
        source = tmp_path / source
    with pytest.raises(ConfigError, match=message):
        read(source, **options)


def test_a_long_table_of_local_dates_is_read_in_their_zone(table):
    path = table("when,what,value\n2024-07-01 12:00,p,1\n2024-07-01 13:00,p,2\n")
    (series,) = read(path, time="when", channel="what", value="value", timezone="Europe/Madrid")
    assert series.times[0] == pd.Timestamp("2024-07-01T10:00Z").timestamp()


def test_the_cap_on_size_is_named(table):
    with pytest.raises(SeriesError, match=r"more than 5 bytes.*max_bytes="):
        read(table("x\n1\n2\n3\n"), max_bytes=5)


# Series


def test_channels_are_selected_by_name_with_their_units():
    series = Series(np.arange(6.0).reshape(3, 2), names=["a", "b"], units={"b": "mV"})
    assert series.units == ("", "mV")
    part = series.select(["b"])
    assert part.units == ("mV",) and part.values[0, 0] == 1.0
    with pytest.raises(SeriesError, match="no channel 'c'; the series has a, b"):
        series.select("c")
    with pytest.raises(SeriesError, match="units names a channel 'z'"):
        Series([1, 2], units={"z": "m"})


def test_series_in_other_units_do_not_mix():
    with pytest.raises(SeriesError, match="same units"):
        as_series_list([Series([1, 2], units="m"), Series([1, 2], units="mm")])


@pytest.mark.parametrize(
    "cells, said",
    [
        (["2024-03-01 12:30", "2024-03-01 12:31"], r"which is a date.*pass time='the date'"),
        (["01/03/2024 12:30:05", "01/03/2024 12:30:06"], r"looks like a date.*pass time='the date'.*time_format="),
        (["1.3.2024", "2.3.2024"], r"looks like a date.*pass time='the date'"),
        (pd.date_range("2024-03-01", periods=2), r"row 0 holds 2024-03-01.*pass time='the date'"),
        (pd.date_range("2024-03-01", periods=2).date, r"which is a date.*pass time='the date'"),
        (["1.234.567", "2"], r"thousands"),
    ],
)
def test_a_column_of_dates_that_is_read_as_a_channel_is_offered_as_times(cells, said):
    with pytest.raises(SeriesError, match=said):
        read(pd.DataFrame({"the date": cells, "y": [1.0, 2.0]}))


def test_dates_out_of_order_are_told_as_dates():
    stamps = ["2024-03-01T12:00:00.25", "2024-03-01T12:00:00.125"]
    with pytest.raises(SeriesError, match=r"row 1 has 2024-03-01 12:00:00.125 UTC after 2024-03-01 12:00:00.25 UTC"):
        read(pd.DataFrame({"time": stamps, "y": [1.0, 2.0]}))
    with pytest.raises(SeriesError, match=r"y: times must increase; row 1 has 2024-03-01 12:00:00.125 UTC"):
        read(pd.DataFrame({"time": stamps, "what": "y", "v": [1.0, 2.0]}), channel="what", value="v")
    with pytest.raises(SeriesError, match=r"row 1 has 2024-03-01 12:00:00.125 UTC after"):
        Series([1.0, 2.0], times=np.array(stamps, dtype="datetime64[ms]"))


@pytest.mark.parametrize(
    "step, cut, lost",
    [
        ("10s", "min", "seconds"),
        ("1h", "D", "hours"),
        ("100ms", "s", "fractions of a second"),
        (0.25, 1.0, "last digits"),
    ],
)
def test_times_that_most_rows_share_were_cut_short(step, cut, lost):
    if isinstance(cut, str):
        stamps = pd.date_range("2024-03-01", periods=50, freq=step).floor(cut).astype(str)
    else:
        stamps = np.floor(np.arange(50) * step / cut)
    with pytest.raises(SeriesError, match=rf"share their time.*lost their {lost}\..*dt="):
        read(pd.DataFrame({"time": stamps, "y": np.arange(50.0)}))
