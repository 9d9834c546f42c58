"""Dates that are not ISO: read where there is one way to read them, asked for where there are several."""

import numpy as np
import pytest

import lamperti as lp
from lamperti import SeriesError

DAY = 86400.0


def written(tmp_path, header, rows):
    path = tmp_path / "data.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    "cells, steps, form",
    [
        (("12/01/2024", "13/01/2024", "14/01/2024"), DAY, "%d/%m/%Y"),
        (("1/12/2024", "1/13/2024", "1/14/2024"), DAY, "%m/%d/%Y"),
        (("30.12.2023 23:00", "31.12.2023 00:00", "31.12.2023 01:00"), 3600.0, "%d.%m.%Y %H:%M"),
        (("1/31/2024 11:00 AM", "1/31/2024 12:00 PM", "1/31/2024 1:00 PM"), 3600.0, "%m/%d/%Y %I:%M %p"),
        (('"Jan 30, 2024"', '"Jan 31, 2024"', '"Feb 1, 2024"'), DAY, "%b %d, %Y"),
        (("03-Mar-2001 10:00:00.5", "03-Mar-2001 10:00:01.5"), 1.0, "%d-%b-%Y %H:%M:%S.%f"),
        (("1 May 2001", "2 May 2001"), DAY, "%d %b %Y"),
    ],
)
def test_dates_that_can_be_read_in_one_way_are_read_and_told(tmp_path, cells, steps, form):
    path = written(tmp_path, "Date,x", [f"{cell},{i}" for i, cell in enumerate(cells)])
    (found,) = lp.read(path)
    np.testing.assert_allclose(np.diff(found.times), steps)
    assert found.names == ("x",) and any(form in text for text in found.repairs)


def test_months_in_words_keep_their_calendar(tmp_path):
    path = written(tmp_path, "month,x", ["Jan-1-1995,1", "Feb-1-1995,2", "Mar-1-1995,3", "Apr-1-1995,3"])
    (found,) = lp.read(path, time="month")
    np.testing.assert_allclose(np.diff(found.times) / DAY, [31, 28, 31])


@pytest.mark.parametrize("cells", [("1/2/2024", "2/2/2024"), ("1-1-2000", "2-1-2000")])
def test_day_and_month_that_may_be_exchanged_are_asked_for_with_both_ways_to_say_it(tmp_path, cells):
    path = written(tmp_path, "date,x", [f"{cell},1" for cell in cells])
    with pytest.raises(SeriesError, match=r"several ways.*time_format=\"%d.%m.%Y\" or time_format=\"%m.%d.%Y\""):
        lp.read(path)


def test_a_year_of_two_digits_is_asked_for(tmp_path):
    path = written(tmp_path, "date,x", ["1/13/50,1", "1/14/50,2"])
    with pytest.raises(SeriesError, match="A year of two digits"):
        lp.read(path)
    (found,) = lp.read(path, time_format="%m/%d/%y")
    assert np.diff(found.times) == [DAY]


def test_one_cell_that_is_no_date_is_blamed_by_its_row(tmp_path):
    path = written(tmp_path, "date,x", ["13/01/2024,1", "14/01/2024,2", "15/13/2024,3"])
    with pytest.raises(SeriesError, match="row 2 holds '15/13/2024'"):
        lp.read(path)


@pytest.mark.parametrize(
    "day, clocks",
    [
        ("2024-03-01", ("10:00:00", "10:00:30", "10:01:00")),
        ("13/03/2024", ("9:59:30 PM", "10:00:00 PM", "10:00:30 PM")),
    ],
)
def test_dates_and_times_of_day_in_two_columns_are_one_clock(tmp_path, day, clocks):
    (found,) = lp.read(written(tmp_path, "Date,Time,x", [f"{day},{clock},{i}" for i, clock in enumerate(clocks)]))
    assert found.names == ("x",) and any("read as one" in text for text in found.repairs)
    np.testing.assert_allclose(np.diff(found.times), 30.0)


def test_a_date_beside_a_column_of_seconds_is_still_asked_about(tmp_path):
    path = written(tmp_path, "Date,Time,x", ["2024-03-01,0.5,1", "2024-03-02,1.5,2"])
    with pytest.raises(SeriesError, match="may both be the times"):
        lp.read(path)
