"""What was once read as something else than was meant, or refused by words that were not ours."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from lamperti._errors import ConfigError, SeriesError
from lamperti.data import read

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
