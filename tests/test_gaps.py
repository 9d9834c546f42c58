"""Gaps in a series: the dynamics carry the state across as they do over missing values."""

import numpy as np
import pytest

import fitted
import lamperti as lp


def test_rows_left_out_equal_rows_declared_missing():
    series = fitted.data().series[0]
    values, seen = series.values[:, 0], np.ones(60, dtype=bool)
    seen[20:27] = False
    left_out = lp.Series(values[seen], times=series.times[seen])
    declared = lp.Series(np.where(seen, values, np.nan), times=series.times, missing="nan")
    a, b = (lp.embed(fitted.result(), s) for s in (left_out, declared))
    np.testing.assert_allclose(a.mean, b.mean[seen], rtol=1e-6)
    np.testing.assert_allclose(a.cov, b.cov[seen], rtol=1e-6)


def test_nothing_is_remembered_over_a_gap_that_cuts():
    series = fitted.data().series[0]
    late = np.where(np.arange(60) < 40, series.times, series.times + 1000.0)
    gapped = lp.Series(series.values, times=late)
    whole, after = (lp.forecast(fitted.result(), s, horizon=5, n_samples=16) for s in (gapped, gapped[40:]))
    np.testing.assert_array_equal(whole.samples, after.samples)
    np.testing.assert_allclose(lp.embed(fitted.result(), gapped).mean[40:], lp.embed(fitted.result(), gapped[40:]).mean)


def test_a_context_that_no_particle_explains_is_warned_of():
    values = np.array(fitted.data().series[0].values)
    values[-1] += 25.0 * values.std()
    with pytest.warns(lp.LampertiWarning, match="particles agreed with the data"):
        lp.forecast(fitted.result(), lp.Series(values, dt=0.1), horizon=2, n_samples=4)
