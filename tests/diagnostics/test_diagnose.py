"""Diagnostics of a fitted model."""

import dataclasses

import jax
import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti.data.stationarity import ChannelStationarity, Stationarity
from lamperti.diagnostics import Effort, diagnose, lyapunov
from lamperti.diagnostics.at_times import samples_at
from lamperti.diagnostics.calibration import HorizonCalibration
from lamperti.diagnostics.caveats import caveats
from lamperti.diagnostics.held_out import check_forecasts
from lamperti.diagnostics.residuals import as_one_segment
from lamperti.diagnostics.unseen import divide, looks_like_training_data
from lamperti.diagnostics.verdict import HorizonVerdict, Verdict
from lamperti.forecasting import standardised_increments
from lamperti.results import FitResult

SMALL = Effort(origins=4, futures=40, horizon=5, pieces=2, paths=4, steps=50, starts=8)


@pytest.fixture(scope="module")
def found():
    return diagnose(fitted.result(), fitted.data().series, effort=SMALL)


def test_everything_is_there_in_the_users_units(found):
    result = fitted.result()
    (check,) = [found.forecasts]
    assert check is not None and check.validation and check.origins == 4 and check.horizons == 5
    assert check.crps.shape == check.climatology.shape == check.persistence.shape == (5, 1)
    assert check.pit.shape == (4, 5, 1) and all(0 <= c <= 1 for c in check.coverage[0.9].ravel())
    assert check.shown_horizons() == [1, 2, 3, 5]
    assert [len(fan.truth) for fan in check.fans] == [5, 5, 5]
    assert found.residuals is not None
    assert [w.name for w in found.residuals.increments] == ["x1", "x2"]
    assert [w.name for w in found.residuals.one_step] == ["y"]
    (one,) = found.likeness
    assert one.real.shape == (4, 60) and one.model.shape == (4, 60)
    assert one.frequency[-1] == pytest.approx(0.5 / 0.1)
    assert one.real_spectrum.sum() == pytest.approx(1.0)
    first = found.slices[0]
    np.testing.assert_allclose(first.drift, result.drift(_line(result, first))[0])
    assert (first.diffusion > 0).all() and (first.drift_sd > 0).all()


def _line(result, one):
    points = np.tile(np.median(result.states, axis=0), (len(one.x), 1))
    points[:, one.axis] = one.x
    return points


def test_persistence_carries_the_last_value_seen_over_a_gap():
    series = [lp.Series(s.values, mask=np.arange(60) % 20 != 19, dt=0.1) for s in fitted.data().series]
    gappy = check_forecasts(fitted.result(), series, horizon=5, n_origins=12, n_samples=40)
    assert gappy is not None and np.isfinite(gappy.persistence).all()
    seen = check_forecasts(fitted.result(), fitted.data().series, horizon=5, n_origins=12, n_samples=40)
    assert seen is not None and np.abs(np.log(gappy.persistence / seen.persistence)).max() < 0.7


def test_jittered_times_leave_every_horizon_with_scores():
    rng = np.random.default_rng(4)
    times = 0.1 * np.cumsum(1.0 + rng.uniform(-0.12, 0.12, 60))
    series = [lp.Series(s.values, times=times) for s in fitted.data().series]
    check = check_forecasts(fitted.result(), series, horizon=15, n_origins=12, n_samples=40)
    assert check is not None and check.least == 6 and check.counts.min() >= 7
    for score in (check.crps, check.climatology, check.persistence, *check.coverage.values()):
        assert np.isfinite(score).all()
    assert check.shown_horizons() == [1, 2, 3, 5, 10, 15]


def test_scores_of_few_values_are_left_out_and_weigh_nothing(found):
    counts = np.array([[4], [4], [3], [1], [1]])
    score = np.array([[0.5], [1.0], [1.0], [np.nan], [np.nan]])
    check = dataclasses.replace(found.forecasts, counts=counts, crps=score, coverage={0.9: score})
    assert check.least == 2 and check.furthest == 3 and check.shown_horizons() == [1, 2, 3]
    assert check.average_coverage(0.9) == pytest.approx((4 * 0.5 + 4 + 3) / 11)
    assert check.why_not() == ""
    assert "Persistence has no score" in dataclasses.replace(check, persistence=np.full((5, 1), np.nan)).why_not()
    none = dataclasses.replace(check, counts=np.ones((5, 1), int))
    assert none.shown_horizons() == [] and "No horizon" in none.why_not()


def test_between_steps_a_path_moves_and_keeps_its_spread():
    result, series = fitted.result(), fitted.data().series[0]
    futures = lp.forecast(result, series, horizon=4, n_samples=2000)
    late = np.array([[0.4], [-0.5], [0.0], [0.3]])
    moved = samples_at(result, futures, late, seed=1)
    np.testing.assert_array_equal(moved[:, 2], futures.samples[:, 2])
    between = 0.5 * (futures.mean[0] + futures.mean[1])
    error = 5 * futures.sd[1, 0] / np.sqrt(2000)
    assert moved.mean(axis=0)[1] == pytest.approx(between, abs=error)
    assert futures.sd[0, 0] * 0.9 < moved[:, 1].std() < futures.sd[1, 0] * 1.1


def test_forecasts_are_checked_on_what_was_held_out(found):
    result, series = fitted.result(), fitted.data().series
    (held_out,) = divide(result, series).unseen
    assert (held_out.first, held_out.stop) == (0, 60)
    unknowing = dataclasses.replace(result, trained_on=None)
    assert looks_like_training_data(unknowing, series) and divide(unknowing, series).unseen == (held_out,)
    assert found.forecasts.fans[0].truth.values[0] in series[held_out.series].values
    new = [lp.Series(2.0 * s.values[:, 0], dt=0.1) for s in series[:2]]
    for one in (result, unknowing):
        assert divide(one, new).unseen == ((0, 0, 60), (1, 0, 60)) and not divide(one, new).validation


def test_increments_along_a_path_are_standardised_by_the_equation():
    result, series = fitted.result(), fitted.data().series[0]
    (piece,) = lp.api.pieces(series, result.scaler)
    segment = as_one_segment(piece.track, result.model.encoder.lead, 64)
    z = np.asarray(standardised_increments(result.model, segment, key=jax.random.key(0)))[:59]
    assert z.shape == (59, 2)
    assert z.std() == pytest.approx(1.0, abs=0.5)


def test_the_exponent_is_per_unit_of_the_users_time():
    result = fitted.result()
    slow = lyapunov(result, n_paths=8, n_steps=50)
    twice = dataclasses.replace(result, scaler=dataclasses.replace(result.scaler, time_unit=0.2))
    assert lyapunov(twice, n_paths=8, n_steps=50).mean == pytest.approx(slow.mean / 2)


def _codes(found, **changes):
    return {c.code for c in caveats(dataclasses.replace(found, **changes))}


def _suggesting(found, dimension):
    return dataclasses.replace(found.check, suggestion=dataclasses.replace(found.check.suggestion, dimension=dimension))


def test_findings_beyond_their_thresholds_become_caveats(found):
    codes = _codes(found)
    assert "few samples" in codes
    assert "dimension" not in _codes(found, dimension=2, check=_suggesting(found, 2))
    assert "dimension" in _codes(found, dimension=3, check=_suggesting(found, 2))
    assert "no held-out data" in _codes(found, forecasts=None)
    narrow = dataclasses.replace(found.forecasts, coverage={0.9: np.full((5, 1), 0.5)}, origins=100)
    wide = dataclasses.replace(found.forecasts, coverage={0.9: np.full((5, 1), 0.999)}, origins=100)
    assert "too narrow" in _codes(found, forecasts=narrow) and "too wide" in _codes(found, forecasts=wide)
    (one,) = found.likeness
    assert "escapes" in _codes(found, likeness=(dataclasses.replace(one, escape_share=0.25),))
    rough = dataclasses.replace(one, escape_share=0.0, roughness_ratio=5.0, sd_ratio=3.0, spectrum_distance=0.6)
    assert {"roughness", "amplitude", "spectrum"} <= _codes(found, likeness=(rough,))
    unsure = dataclasses.replace(found.lyapunov, mean=0.1, se=0.2)
    assert "sign of the exponent" in _codes(found, lyapunov=unsure)
    sure = dataclasses.replace(found.lyapunov, mean=-0.9, se=0.1)
    assert "sign of the exponent" not in _codes(found, lyapunov=sure)
    linear = dataclasses.replace(found.lyapunov, mean=found.linear_exponent, se=1e-6)
    assert dataclasses.replace(found, lyapunov=linear).exponent_claim == "linear"
    bad = HorizonCalibration(2, 1e-5, 0.2, 0.5, 0.1)
    assert {"not calibrated", "too narrow"} <= _codes(found, calibration=(bad,))
    fine = HorizonCalibration(2, 0.5, 0.5, 0.85, 0.1)
    assert not {"not calibrated"} & _codes(found, calibration=(fine,))
    worse = HorizonVerdict(3, 0.3, 20, "worse", "persistence", {})
    verdict = Verdict("Worse.", "worse", (worse,), ("Decimate.",), unit="s", runaways=0.1)
    first, second, *_ = caveats(dataclasses.replace(found, verdict=verdict))
    assert (first.code, second.code) == ("forecasts diverge", "worse than a simple method")
    assert second.text == "A simple method (persistence) forecasts better than the model 0.3 s ahead. Decimate."
    trend = ChannelStationarity("y", "trend", 0.9, 9.0, "y has a trend.")
    moving = dataclasses.replace(found, stationarity=Stationarity((trend,)))
    assert "not stationary" in {c.code for c in moving.caveats} and moving.exponent_claim == "none"
    assert "dimension at the end" in _codes(found, dimension=6, check=_suggesting(found, 6))
    assert not {"dimension at the end", "dimension"} & _codes(found, dimension=12, check=_suggesting(found, 12))
    errors = dataclasses.replace(found.residuals.one_step[0], p_white=1e-9, autocorrelation=np.array([0.5]), sd=2.0)
    loose = dataclasses.replace(found.residuals, one_step=(errors,))
    assert {"not white", "spread of errors"} <= _codes(found, residuals=loose)
    assert "extrapolated drift" in _codes(found, extrapolated=0.4)


def test_caveats_are_sentences(found):
    assert all(c.text[0].isupper() and c.text.endswith(".") for c in found.caveats)


def test_other_channels_are_refused():
    result: FitResult = fitted.result()
    two = lp.Series(np.random.default_rng(0).normal(size=(50, 2)), names=("a", "b"))
    with pytest.raises(lp.SeriesError, match="trained on 1 channels"):
        diagnose(result, two, effort=SMALL)
