"""The unit of a measurement is no property of the system."""

import numpy as np

import fitted
import lamperti as lp


def test_other_units_of_values_and_times_change_no_forecast():
    """Values in thousandths around another zero, times in days instead of seconds: forecasts agree to 1e-6."""
    slope, offset, unit = 1000.0, 37.0, 86400.0
    usual = fitted.data().series
    other = [lp.Series(slope * s.values + offset, times=s.times / unit) for s in usual]
    forecasts = [
        lp.forecast(result, series[0], horizon=20, n_samples=8)
        for result, series in (
            (fitted.result(), usual),
            (lp.fit(other, fitted.MODEL, fitted.FIT), other),
        )
    ]
    a, b = forecasts[0], forecasts[1]
    # Relative to how far the samples are spread, so that an offset cannot hide a difference.
    np.testing.assert_allclose((b.samples - offset) / slope, a.samples, rtol=0, atol=1e-6 * a.samples.std())
    np.testing.assert_allclose(b.times * unit, a.times, rtol=1e-9)
    np.testing.assert_allclose(b.states, a.states, rtol=0, atol=1e-6 * a.states.std())
