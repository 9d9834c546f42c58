"""Conventions of climate and forecast files, in NetCDF, Zarr and xarray alike: honoured, or refused by name."""

import datetime as dt
import warnings

import cftime
import numpy as np
import pytest
import xarray as xr

from lamperti._errors import LampertiWarning, SeriesError
from lamperti.data import check, read

Y = np.arange(4.0)


@pytest.fixture(params=["netcdf4", "netcdf3", "zarr", "memory"])
def source(request, tmp_path, in_this_process):
    """A file (or object in memory) of a variable x with attributes, at times with attributes."""

    def make(x=Y, times=Y, time_attributes=(), **attributes):
        times = np.asarray(times, "i4" if isinstance(times, list) else None)  # all that NetCDF 3 has
        data = xr.Dataset(
            {"x": ("time", np.asarray(x), attributes)},
            coords={"time": ("time", times, dict(time_attributes))},
        )
        for variable in data.variables.values():
            variable.encoding["_FillValue"] = None
        if request.param == "memory":
            return data
        path = tmp_path / f"a.{request.param}"
        # As they are: xarray would take some attributes for its own to write.
        kept = {name: dict(variable.attrs) for name, variable in data.variables.items()}
        for variable in data.variables.values():
            variable.attrs = {}
        if request.param == "zarr":
            import json

            data.to_zarr(path, mode="w", zarr_format=2, consolidated=False)
            for name, own in kept.items():
                about = json.loads((path / name / ".zattrs").read_text())
                plain = {key: np.asarray(value).tolist() for key, value in own.items()}
                (path / name / ".zattrs").write_text(json.dumps(about | plain))
        elif request.param == "netcdf4":
            import h5py

            data.to_netcdf(path, engine="h5netcdf")
            with h5py.File(path, "a") as file:
                for name, own in kept.items():
                    file[name].attrs.update(own)
        else:
            from scipy.io import netcdf_file

            with netcdf_file(path, "w") as file:
                file.createDimension("time", len(data["time"]))
                for name, variable in data.variables.items():
                    own = file.createVariable(name, variable.dtype, ("time",))
                    own[:] = variable.values
                    for key, value in kept[name].items():
                        setattr(own, key, value)
        return path

    return make


def since(epoch, unit="days", **more):
    return {"units": f"{unit} since {epoch}", **more}


def seconds(year, month, day, hour=0, calendar="proleptic_gregorian"):
    days = cftime.datetime(year, month, day, calendar=calendar).toordinal() - cftime.datetime(1970, 1, 1).toordinal()
    return float(days * 86400 + hour * 3600)


# Epochs and calendars


@pytest.mark.parametrize(("epoch", "year"), [("1-1-1", 1), ("1-01-01 00:00:0.0", 1), ("70-01-01", 70), ("99-1-1", 99)])
def test_a_short_year_is_the_year_that_is_written_and_is_warned_of(source, epoch, year):
    data = source(times=[0, 1, 2, 3], time_attributes=since(epoch, calendar="proleptic_gregorian"))
    with pytest.warns(LampertiWarning, match=rf"'time' counts days since {epoch}, .*taken as the year {year}\."):
        (series,) = read(data)
    assert series.times[0] == seconds(year, 1, 1) and series.dt == 86400
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LampertiWarning)
        assert any(f"year {year}" in problem.message for problem in check(data).problems)


@pytest.mark.parametrize(
    ("epoch", "moment"),
    [
        ("1970-1-1", dt.datetime(1970, 1, 1)),
        ("0001-01-01", dt.datetime(1, 1, 1)),
        ("2000-01-01 06:30:15.5", dt.datetime(2000, 1, 1, 6, 30, 15, 500000)),
        ("2000-01-01T06:30Z", dt.datetime(2000, 1, 1, 6, 30)),
        ("2000-01-01 06:30 UTC", dt.datetime(2000, 1, 1, 6, 30)),
        ("2000-01-01 06:30:00 +02:00", dt.datetime(2000, 1, 1, 4, 30)),
        ("2000-01-01 06:30 -3", dt.datetime(2000, 1, 1, 9, 30)),
        ("20000101", None),
        ("2000-02-30", None),
        ("2000-13-01", None),
        ("yesterday", None),
        ("2000-01-01 25:00", None),
    ],
)
def test_an_epoch_is_the_moment_that_is_written_or_refused(source, epoch, moment):
    data = source(times=[0, 1, 2, 3], time_attributes=since(epoch, calendar="proleptic_gregorian"))
    if moment is None:
        with pytest.raises(SeriesError, match=rf"'time' counts time since '{epoch}', which is not a date"):
            read(data)
    else:
        assert read(data)[0].times[0] == (moment - dt.datetime(1970, 1, 1)).total_seconds()


@pytest.mark.parametrize("calendar", ["standard", "gregorian", "julian", "proleptic_gregorian", None])
@pytest.mark.parametrize("year", [100, 1582, 1583, 1900])
def test_old_calendars_are_converted(source, calendar, year):
    if calendar is None:
        attributes = since(f"{year:04d}-03-01")
    else:
        attributes = since(f"{year:04d}-03-01", calendar=calendar)
    (series,) = read(source(times=[0, 1, 2, 700000], time_attributes=attributes))
    assert series.times[0] == seconds(year, 3, 1, calendar=calendar or "standard")
    assert series.times[3] - series.times[0] == 700000 * 86400


@pytest.mark.parametrize("calendar", ["noleap", "365_day", "all_leap", "366_day", "360_day", "none"])
def test_a_calendar_of_no_real_days_is_refused_as_time(source, calendar):
    data = source(times=[0, 1, 2, 3], time_attributes=since("2000-01-01", calendar=calendar))
    with pytest.raises(SeriesError, match=rf"'time' should be the times but it uses the calendar '{calendar}'.*dt="):
        read(data)
    assert read(data, columns="x", dt=1.0)[0].dt == 1.0


@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian", "julian", "noleap", "360_day"])
def test_dates_of_cftime_are_converted_or_refused(calendar):
    stamps = [cftime.datetime(1500, 2, day, calendar=calendar) for day in (26, 27, 28)]
    data = xr.Dataset({"x": ("time", [1.0, 2.0, 4.0])}, coords={"time": stamps})
    if calendar in ("noleap", "360_day"):
        with pytest.raises(SeriesError, match=f"it uses the calendar '{calendar}'"):
            read(data)
    else:
        assert read(data)[0].times[0] == seconds(1500, 2, 26, calendar=calendar)


def test_there_is_no_year_0_but_in_the_calendar_that_has_it(source):
    with pytest.raises(SeriesError, match="'0000-01-01', which is not a date"):
        read(source(times=[0, 1, 2, 3], time_attributes=since("0000-01-01")))
    data = source(
        times=[730000, 730001, 730002, 730003], time_attributes=since("0000-01-01", calendar="proleptic_gregorian")
    )
    assert read(data)[0].times[0] == seconds(0, 1, 1) + 730000 * 86400


def test_nanoseconds_are_read_and_times_beyond_all_dates_refused(source):
    (series,) = read(source(times=np.arange(4) * 5e8, time_attributes=since("2000-01-01", "nanoseconds")))
    assert series.steps.tolist() == [0.5] * 3
    with pytest.raises(SeriesError, match="'time' holds times that are no dates since 2000-01-01"):
        read(source(times=np.array([0.0, 1.0, 1e300, 2.0]), time_attributes=since("2000-01-01")))


def test_months_and_years_have_no_length(source):
    with pytest.raises(SeriesError, match="counts time in 'months', whose length varies"):
        read(source(time_attributes=since("2000-01-01", "months")))


# Packed and marked values


def test_values_are_unpacked_alike(source):
    data = source(np.array([1, 2, -9, 4], "i2"), scale_factor=0.5, add_offset=10.0, _FillValue=np.int16(-9))
    np.testing.assert_array_equal(read(data, missing="nan")[0].values[:, 0], [10.5, 11.0, np.nan, 12.0])


def test_unsigned_integers_that_were_stored_as_signed_are_unsigned(source):
    stored = np.array([1, -1, -128, 127], "i1")
    (series,) = read(source(stored, _Unsigned="true"))
    assert series.values[:, 0].tolist() == [1, 255, 128, 127]
    (series,) = read(source(stored, _Unsigned="true", _FillValue=np.int8(-1), scale_factor=2.0), missing="nan")
    np.testing.assert_array_equal(series.values[:, 0], [2, np.nan, 256, 254])
    assert read(source(stored, _Unsigned="false"))[0].values[1, 0] == -1
    with pytest.raises(SeriesError, match="'x' has the attribute _Unsigned 'perhaps'"):
        read(source(stored, _Unsigned="perhaps"))


@pytest.mark.parametrize("limits", [{"valid_min": 1.0, "valid_max": 5.0}, {"valid_range": np.array([1.0, 5.0])}])
def test_values_outside_their_valid_range_are_missing(source, limits):
    data = source(np.array([1.0, 0.5, 7.0, 5.0]), **limits)
    said = r"2 values of 'x' lie outside its valid range, 1 to 5.*missing"
    with pytest.warns(LampertiWarning, match=said), pytest.raises(SeriesError, match="NaN"):
        read(data)
    with pytest.warns(LampertiWarning, match="valid range"):
        (series,) = read(data, missing="nan")
    assert series.mask[:, 0].tolist() == [True, False, False, True]


def test_a_valid_range_is_of_the_packed_values(source):
    packed = np.array([1, 2, 30, 4], "i2")
    with pytest.warns(LampertiWarning, match="1 values of 'x'"):
        (series,) = read(source(packed, scale_factor=0.5, valid_max=np.int16(20)), missing="nan")
    np.testing.assert_array_equal(series.values[:, 0], [0.5, 1.0, np.nan, 2.0])
    with pytest.raises(SeriesError, match=r"'x' is packed.*valid_max 15\.5.*packed or the unpacked"):
        read(source(packed, scale_factor=0.5, valid_max=15.5))


def test_a_limit_beyond_what_the_type_holds_limits_nothing(source):
    (series,) = read(source(np.array([1, 2, 300, 4], "i2"), valid_max=40000))
    assert series.mask.all()


def test_a_valid_range_of_unsigned_values_is_unsigned(source):
    stored = np.array([1, -1, 2, 3], "i1")  # -1 is 255
    with pytest.warns(LampertiWarning, match=r"1 values of 'x' lie outside its valid range, 0 to 250"):
        (series,) = read(source(stored, _Unsigned="true", valid_range=np.array([0, -6], "i1")), missing="nan")
    assert series.mask[:, 0].tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"valid_range": np.array([1.0, 2.0, 3.0])}, r"valid_range \[1.0, 2.0, 3.0\], which is not two numbers"),
        ({"valid_min": "low"}, "valid_min 'low', which is not a number"),
        ({"valid_min": 5.0, "valid_max": 1.0}, "valid range from 5 to 1"),
        ({"scale_factor": "about 2"}, "scale_factor 'about 2', which is not a number"),
        ({"add_offset": "?"}, r"add_offset '\?', which is not a number"),
        ({"scale_factor": np.array([1.0, 2.0])}, r"scale_factor \[1.0, 2.0\], which is not a number"),
        ({"scale_factor": 0.0}, "scale_factor 0.0, which unpacks nothing"),
        ({"scale_factor": float("nan")}, "scale_factor nan"),
        ({"missing_value": "n/a"}, "missing_value 'n/a', which is not a number"),
    ],
)
def test_attributes_that_cannot_be_understood_are_refused_with_their_variable(source, attributes, said):
    with pytest.raises(SeriesError, match=rf"variable 'x' has the attribute {said}|variable 'x' has a {said}"):
        read(source(**attributes))


def test_numbers_written_as_text_are_numbers(source):
    (series,) = read(
        source(np.array([1, 2, -9, 4], "i2"), scale_factor="0.5", add_offset="1", missing_value="-9"), missing="nan"
    )
    np.testing.assert_array_equal(series.values[:, 0], [1.5, 2.0, np.nan, 3.0])


def test_variables_that_are_not_asked_for_may_have_any_attributes(tmp_path):
    data = xr.Dataset({"x": ("time", Y), "odd": ("time", Y, {"scale_factor": "about 2"})}, coords={"time": Y})
    assert read(data, columns="x")[0].names == ("x",)
    with pytest.raises(SeriesError, match="'odd'"):
        read(data)


def test_times_in_a_plain_hdf5_file_are_times_whatever_is_asked_for(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["time"], file["z"] = Y, [0.0, 0.5, 1.0, 3.0], Y
    for options in ({}, {"columns": "x"}):
        assert read(tmp_path / "a.h5", **options)[0].times.tolist() == [0.0, 0.5, 1.0, 3.0]
