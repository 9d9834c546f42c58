"""Models of monthly data: steps of the calendar are equal, answers are true dates and in months."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import fitted
import lamperti as lp
from lamperti.data.scaling import Scaler
from lamperti.diagnostics.held_out import check_forecasts

MONTHS = pd.date_range("2001-01-31", periods=60, freq="ME")


@cache
def pair() -> tuple[lp.FitResult, lp.FitResult]:
    """The same values, a month apart and 1 apart."""
    values = [one.values for one in fitted.data().series]
    dated = [lp.Series(y, times=MONTHS.to_numpy()) for y in values]
    return lp.fit(dated, fitted.MODEL, fitted.FIT), lp.fit([lp.Series(y) for y in values], fitted.MODEL, fitted.FIT)


def test_months_are_equal_steps_for_the_model():
    monthly, plain = pair()
    assert (monthly.step, monthly.step_unit) == (1.0, "months")
    for a, b in zip(monthly.drift(monthly.states), plain.drift(plain.states), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(monthly.diffusion(monthly.states)[0], plain.diffusion(plain.states)[0])


def test_a_forecast_ends_in_the_december_after_next():
    monthly, plain = pair()
    options = {"horizon": 24, "n_samples": 4, "n_particles": 20}
    forecast = lp.forecast(monthly, monthly.data[0], **options)
    index = forecast.to_dataframe().index
    assert index.equals(pd.date_range("2006-01-31", periods=24, freq="ME").as_unit(index.unit))
    assert index[-1] == pd.Timestamp("2007-12-31")
    np.testing.assert_array_equal(forecast.samples, lp.forecast(plain, plain.data[0], **options).samples)
    assert "2006-01-31 to 2007-12-31" in repr(forecast)


def test_a_simulation_goes_on_after_the_last_date_or_counts_months_from_its_start():
    monthly, plain = pair()
    few = {"n_steps": 14, "n_paths": 2}
    dates = lp.simulate(monthly, **few).to_dataframe().index.get_level_values("time")[:14]
    assert dates.equals(pd.date_range("2006-01-31", periods=14, freq="ME").as_unit(dates.unit).rename("time"))
    counted = lp.simulate(monthly, **few, since_start=True)
    assert counted.times.tolist() == list(range(1, 15)) and counted.time_unit == "months"
    assert lp.simulate(plain, **few).times.tolist() == list(range(1, 15))


def test_a_month_that_is_missing_is_a_sample_that_was_not_observed():
    monthly, _ = pair()
    y, gap = monthly.data[0].values, [20, 21, 30]
    left_out = lp.Series(np.delete(y, gap, axis=0), times=MONTHS.delete(gap).to_numpy())
    assert repr(left_out).endswith("step 1 month, rows missing)")
    steps = monthly.scaler.steps_of(left_out)
    assert sorted(steps.tolist())[-2:] == [2.0, 3.0] and sorted(set(steps)) == [1.0, 2.0, 3.0]


def test_tables_and_sentences_are_in_months():
    monthly, _ = pair()
    text = str(monthly.summary())
    assert "1 month" in text and "per month" in text
    check = check_forecasts(monthly, monthly.data, horizon=3, n_origins=4, n_samples=20)
    assert (check.step, check.time_unit, check.time_ahead(3)) == (1.0, "months", "3 months")
    found = lp.check(list(monthly.data))
    assert "regular, step 1 month" in str(found) and found.sampling.kind == "regular"
    assert repr(monthly.data[0]).endswith("2001-01-31 to 2005-12-31, step 1 month)")


def test_a_saved_model_of_months_forecasts_the_same_dates(tmp_path):
    monthly, _ = pair()
    lp.save(monthly, tmp_path / "m.safetensors")
    options = {"horizon": 5, "n_samples": 4, "n_particles": 20}
    a, b = (lp.forecast(r, monthly.data[0], **options) for r in (monthly, lp.load(tmp_path / "m.safetensors")))
    np.testing.assert_array_equal(a.times, b.times)


@pytest.mark.parametrize(
    ("step", "told", "unit"), [("10min", 1 / 6, "h"), ("5ms", 5.0, "ms"), ("h", 1.0, "h"), ("7D", 1.0, "weeks")]
)
def test_other_dates_are_told_in_a_unit_that_suits_them(step, told, unit):
    values = fitted.data().series[0].values
    times = pd.date_range("2020-03-01", periods=60, freq=step).to_numpy()
    scaler = Scaler.from_series([lp.Series(values, times=times)])
    assert scaler.step == pytest.approx(told, rel=1e-4) and scaler.duration_unit == unit and scaler.calendar is None


def test_what_happened_before_is_found_at_the_step_of_its_month():
    """Thirty-one days after the end of January is not the end of February."""
    monthly, _ = pair()
    clock = monthly.scaler.in_steps(monthly.data[0])
    assert clock.times.tolist() == list(range(60)) and clock.time_unit == ""
