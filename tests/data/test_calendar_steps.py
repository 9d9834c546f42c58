"""Months, quarters, years and business days are equal steps, and their future is true dates."""

import numpy as np
import pandas as pd
import pytest

from lamperti.data.calendar_steps import find_calendar
from lamperti.data.durations import duration_text, in_words, unit_for


def _seconds(dates) -> np.ndarray:
    return np.asarray(pd.DatetimeIndex(dates).as_unit("us")).astype(np.int64) / 1e6


def _text(times) -> list[str]:
    return [str(t)[:10] for t in (np.asarray(times) * 1e6).round().astype("datetime64[us]")]


ALIASES = {
    "MS": ("months", 1.0),
    "ME": ("months", 1.0),
    "BMS": ("months", 1.0),
    "BME": ("months", 1.0),
    "2MS": ("months", 2.0),
    "QS": ("quarters", 1.0),
    "QE": ("quarters", 1.0),
    "QS-FEB": ("quarters", 1.0),
    "QE-NOV": ("quarters", 1.0),
    "YS": ("years", 1.0),
    "YE": ("years", 1.0),
    "YE-JUN": ("years", 1.0),
    "YE-FEB": ("years", 1.0),
    "10YS": ("years", 10.0),
    "B": ("business days", 1.0),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_a_calendar_of_pandas_is_seen_and_goes_on_exactly(alias):
    dates = pd.date_range("1999-03-01", periods=160, freq=alias)
    past, future = _seconds(dates[:60]), _seconds(dates[60:])
    grid = find_calendar([past])
    assert grid is not None and (grid.unit, grid.step) == ALIASES[alias]
    at = grid.positions(past)
    np.testing.assert_array_equal(np.diff(at), 1.0)
    np.testing.assert_array_equal(grid.times(at), past)
    np.testing.assert_array_equal(grid.times(at[-1] + np.arange(1, 101)), future)


def test_the_24th_month_after_december_is_december():
    past = _seconds(pd.date_range("2010-01-31", "2023-12-31", freq="ME"))
    grid = find_calendar([past])
    ahead = _text(grid.times(grid.positions(past[-1:]) + np.arange(1, 25)))
    assert ahead[-1] == "2025-12-31"
    assert ahead[1] == "2024-02-29" and ahead[13] == "2025-02-28"  # leap year, and not


def test_the_29th_of_february_comes_every_fourth_year():
    past = _seconds(pd.date_range("1990-02-28", "2023-02-28", freq="YE-FEB"))
    grid = find_calendar([past])
    assert _text(grid.times(grid.positions(past[-1:]) + np.array([1, 2, 5]))) == [
        "2024-02-29",
        "2025-02-28",
        "2028-02-29",
    ]


def test_a_century_that_is_no_leap_year_is_kept():
    past = _seconds(["1894-02-28", "1895-02-28", "1896-02-29", "1897-02-28", "1898-02-28", "1899-02-28"])
    grid = find_calendar([past])
    assert _text(grid.times(grid.positions(past[-1:]) + np.array([1, 5]))) == ["1900-02-28", "1904-02-29"]


@pytest.mark.parametrize("day", [1, 10, 15, 28, 29, 30, 31])
def test_any_day_of_the_month_is_kept_where_the_month_has_it(day):
    months = pd.date_range("2001-01-01", periods=48, freq="MS")
    dates = [m.replace(day=min(day, m.days_in_month)) for m in months]
    grid = find_calendar([_seconds(dates[:24])])
    ahead = grid.times(grid.positions(_seconds(dates[:24])[-1:]) + np.arange(1, 25))
    np.testing.assert_array_equal(ahead, _seconds(dates[24:]))


@pytest.mark.parametrize(("alias", "next_alias"), [("MS", "MS"), ("QS", "QS"), ("YS", "YS")])
def test_middles_of_months_quarters_and_years_are_seen(alias, next_alias):
    edges = _seconds(pd.date_range("1980-01-01", periods=60, freq=alias))
    middles = (edges[1:] + edges[:-1]) / 2
    grid = find_calendar([middles[:30]])
    assert grid is not None and grid.rule == "middle"
    np.testing.assert_array_equal(grid.times(grid.positions(middles[29:30]) + np.arange(1, 30)), middles[30:])


def test_missing_rows_are_steps_of_two_and_more():
    dates = pd.date_range("2000-01-31", periods=80, freq="ME").delete([5, 20, 21, 22, 60])
    grid = find_calendar([_seconds(dates)])
    steps = np.diff(grid.positions(_seconds(dates)))
    assert sorted(steps)[-3:] == [2.0, 2.0, 4.0] and (np.sort(steps)[:-3] == 1.0).all()


def test_holidays_are_steps_of_two_business_days_and_the_future_has_no_weekend():
    dates = pd.bdate_range("2023-01-02", "2024-07-03").drop(["2023-12-25", "2023-12-26", "2024-01-01", "2024-05-27"])
    grid = find_calendar([_seconds(dates)])
    steps = np.diff(grid.positions(_seconds(dates)))
    assert sorted(steps)[-3:] == [2.0, 2.0, 3.0] and (np.sort(steps)[:-3] == 1.0).all()
    ahead = _text(grid.times(grid.positions(_seconds(dates)[-1:]) + np.arange(1, 5)))
    assert ahead == ["2024-07-04", "2024-07-05", "2024-07-08", "2024-07-09"]


def test_a_time_between_two_dates_has_its_share_of_the_way():
    grid = find_calendar([_seconds(pd.date_range("2020-01-01", periods=36, freq="MS"))])
    at = grid.positions(_seconds(["2021-02-01", "2021-02-15", "2021-03-01"]))
    np.testing.assert_allclose(at - at[0], [0.0, 0.5, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(grid.times(at), _seconds(["2021-02-01", "2021-02-15", "2021-03-01"]))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Sydney"])
@pytest.mark.parametrize("alias", ["MS", "QE", "YS", "B"])
def test_local_midnights_keep_their_calendar(zone, alias):
    """In UTC they are at other hours, of the day before in the east, and move with summer time."""
    local = pd.date_range("2015-01-05", periods=60, freq=alias, tz=zone)
    grid = find_calendar([_seconds(local.tz_convert("UTC").tz_localize(None))])
    assert grid is not None and grid.unit == ALIASES[alias][0]
    steps = np.diff(grid.positions(_seconds(local.tz_convert("UTC").tz_localize(None))))
    np.testing.assert_allclose(steps, 1.0, atol=0.05)


@pytest.mark.parametrize(
    "dates",
    [
        pd.date_range("2020-01-01", periods=60, freq="D"),
        pd.date_range("2020-01-01", periods=60, freq="W"),
        pd.date_range("2020-01-01", periods=60, freq="30D"),
        pd.date_range("2020-01-01", periods=60, freq="365D"),
        pd.date_range("2020-01-01", periods=60, freq="h"),
        pd.date_range("2020-01-01", periods=5, freq="MS"),
        pd.DatetimeIndex(pd.Timestamp("2020-01-01") + pd.to_timedelta(np.cumsum([20, 40, 33, 28] * 12), unit="D")),
        pd.bdate_range("2020-01-06", periods=9),
    ],
    ids=["days", "weeks", "30 days", "365 days", "hours", "five months", "irregular", "nine business days"],
)
def test_what_is_no_calendar_is_taken_for_none(dates):
    assert find_calendar([_seconds(dates)]) is None


def test_a_daily_record_with_some_saturdays_is_no_record_of_business_days():
    dates = pd.date_range("2020-01-01", periods=200, freq="D")
    assert find_calendar([_seconds(dates[dates.day_of_week != 6])]) is None


def test_series_of_one_calendar_share_it_and_one_of_another_does_not():
    first = _seconds(pd.date_range("2000-01-01", periods=30, freq="MS"))
    second = _seconds(pd.date_range("2005-06-01", periods=30, freq="MS"))
    odd = _seconds(pd.date_range("2005-06-01", periods=30, freq="31D"))
    assert find_calendar([first, second]) == find_calendar([first])
    assert find_calendar([first, odd]) is None


@pytest.mark.parametrize(
    ("step", "span", "unit"),
    [
        (1e-5, None, "µs"),
        (0.004, 10.0, "ms"),
        (0.004, 1800.0, "s"),
        (60.0, 3600.0, "min"),
        (600.0, 7 * 86400.0, "h"),
        (3600.0, 365 * 86400.0, "days"),
        (86400.0, 3650 * 86400.0, "days"),
        (7 * 86400.0, 3650 * 86400.0, "weeks"),
        (50 * 3.15576e7, 8e5 * 3.15576e7, "years"),
    ],
)
def test_the_unit_suits_step_and_span(step, span, unit):
    assert unit_for(step, span) == unit


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(600.0, "10 min"), (0.0004, "400 µs"), (86400.0, "1 day"), (3 * 86400.0, "3 days"), (90.0, "1.5 min")],
)
def test_a_duration_is_told_in_its_unit(seconds, text):
    assert duration_text(seconds) == text


def test_one_is_singular():
    assert [in_words(n, "months") for n in (1, 2, 1.5)] == ["1 month", "2 months", "1.5 months"]
