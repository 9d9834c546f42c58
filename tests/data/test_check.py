"""The report on data: what was understood, what is suspected, and that it agrees with what fit takes."""

import json
import warnings

import numpy as np
import pytest

from lamperti._errors import LampertiWarning, SeriesError
from lamperti.data import (
    Series,
    check,
    check_for_training,
    first_minimum_lag,
    systems,
)
from lamperti.data.matching import match_channels, warn_if_far
from lamperti.data.scaling import Scaler
from lamperti.data.starts import choose_start

RNG = np.random.default_rng(0)
N = 600
SMOOTH = np.sin(np.arange(N) * 0.1) + 0.3 * np.sin(np.arange(N) * 0.237) + 0.01 * RNG.normal(size=N)


def codes(data, **options):
    return {(p.code, p.where) for p in check(data, **options).problems}


def test_a_good_series_raises_no_suspicion_and_is_described():
    found = check(Series(SMOOTH, dt=0.5, names="flow", units="ml/s"))
    assert found.ok and found.problems == ()
    assert found.sampling.kind == "regular" and found.sampling.dt == 0.5
    (channel,) = found.channels
    assert (channel.name, channel.unit, channel.observed) == ("flow", "ml/s", N)
    np.testing.assert_allclose([channel.mean, channel.sd], [SMOOTH.mean(), SMOOTH.std()])
    assert found.suggestion is not None and found.suggestion.window >= 5
    assert "1 series of 600 samples; regular, step 0.5" in str(found)


def test_the_suggestion_is_that_of_the_data_in_any_unit():
    series = systems.lorenz(3, 800, dt=0.02, observation_noise=0.0, seed=0).series
    found = check([Series(1e-7 * s.values + 5e-6, dt=0.02) for s in series]).suggestion
    lag = first_minimum_lag(series)
    assert found is not None
    assert (found.lag, found.rule) == (lag.lag, lag.rule)
    pooled = np.concatenate([s.values for s in series])
    expected = choose_start([(s.values - pooled.mean()) / pooled.std() for s in series], closed_form=True)
    assert found.dimension == expected.dimension and found.window == expected.window
    # of a regressed drift, because the samples have no noise: the dimensions that were worth trying on all of the data
    dimensions = [one[0] for one in found.curve]
    assert dimensions == sorted(set(dimensions)) and found.dimension in dimensions and len(dimensions) >= 2
    assert f"{found.dimension} latent coordinates" in str(found)


def _spoiled(kind):
    y = SMOOTH.copy()
    if kind == "outliers":
        y[77] = 400.0
    elif kind == "clipped":
        y = np.minimum(y, 0.8)
    elif kind == "quantised":
        y = np.round(y * 2) / 2
    elif kind == "held":
        y[100:140] = y[100]
    elif kind == "trend":
        y = y + np.linspace(0, 8, N)
    elif kind == "undersampled":
        y = RNG.normal(size=N)
    elif kind == "oversampled":
        y = np.sin(np.arange(N * 5) * 0.004)
    elif kind == "time column":
        y = 1900.0 + np.arange(N)
    return y


@pytest.mark.parametrize(
    "kind", ["outliers", "clipped", "quantised", "held", "trend", "undersampled", "oversampled", "time column"]
)
def test_each_fault_of_a_channel_is_suspected_and_no_other(kind):
    found = {code for code, where in codes(Series(_spoiled(kind), dt=0.5)) if where == "y"}
    # A series held for long also has those values at no extreme; a line is slow, too.
    assert kind in found and found <= {kind, "oversampled"}


def test_a_constant_channel_is_an_error_and_a_nearly_constant_one_a_warning():
    found = check(Series(np.stack([SMOOTH, np.ones(N)], 1), dt=0.5, names=["a", "b"]))
    assert not found.ok
    assert [(p.severity, p.where) for p in found.problems if p.code == "constant"] == [("error", "b")]
    found = check(Series(1e9 + SMOOTH * 1e-3, dt=0.5))
    assert found.ok and "nearly constant" in found.problems[0].message


@pytest.mark.parametrize(
    "values",
    [
        np.ones(40),
        SMOOTH[:5],
        np.stack([np.ones(40), SMOOTH[:40]], 1),
        SMOOTH,
        1e300 * SMOOTH,
        1e-300 * SMOOTH,
        5e-324 * np.arange(40),
    ],
)
def test_ok_means_that_training_takes_the_data(values):
    series = [Series(values)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LampertiWarning)
        try:
            check_for_training(series)
            Scaler.from_series(series)
            taken = True
        except SeriesError:
            taken = False
    assert check(series).ok is taken


def test_values_at_the_ends_of_the_range_of_floats_are_described_without_overflow():
    for scale in (1e308, 1e300, 1e-300):
        found = check(Series(scale * SMOOTH / np.abs(SMOOTH).max(), dt=0.5))
        assert all(np.isfinite([c.mean, c.sd, c.low, c.high]).all() for c in found.channels)
    tiny = check(Series(5e-324 * np.arange(40)))
    assert any("underflow" in p.message for p in tiny.problems)


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        (np.arange(N) * 0.5, "regular"),
        (np.arange(N) * 0.5 + 0.01 * np.sin(np.arange(N)), "jittered"),
        (np.delete(np.arange(N + 7), np.r_[50:54, 300:303]) * 0.5, "gaps"),
        (np.cumsum(RNG.exponential(size=N)), "irregular"),
    ],
)
def test_sampling_is_told_apart(times, kind):
    found = check(Series(SMOOTH, times=times))
    assert found.sampling.kind == kind
    if kind == "gaps":
        assert [(g.row, g.lacking) for g in found.sampling.gaps] == [(49, 4), (295, 3)]
        assert ("gaps", "") in codes(Series(SMOOTH, times=times))


def test_suspicions_about_the_whole_set():
    assert ("no times", "") in codes(SMOOTH)
    assert ("time unit", "") in codes(Series(SMOOTH, times=1.7e12 + 500.0 * np.arange(N)))
    assert ("duplicate", "") in codes([Series(SMOOTH, dt=0.5)] * 2)
    assert ("short", "") in codes(Series(SMOOTH[:60], dt=0.5))
    assert ("collinear", "a, b") in codes(Series(np.stack([SMOOTH, 3 * SMOOTH + 1], 1), names=["a", "b"]))
    assert ("layout", "") in codes(RNG.normal(size=(100, 3)))
    assert ("id column", "patient") in codes(
        Series(np.stack([SMOOTH, np.repeat([3, 1], N // 2)], 1), names=["x", "patient"])
    )
    lost = np.where(RNG.random(N) < 0.4, np.nan, SMOOTH)
    assert ("missing", "y") in codes(Series(lost, missing="nan"))


def test_the_report_is_plain_json_and_lists_repairs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,x\n" + "".join(f"{t},{x}\n" for t, x in reversed(list(enumerate(SMOOTH[:50])))))
    found = check(path, sort=True)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["ok"] and content["repairs"] == ["rows were sorted by time (50 of 50 moved)"]
    assert content["series"][0]["length"] == 50 and content["channels"][0]["name"] == "x"


# New data for a fitted model


def test_channels_are_matched_by_name_whatever_their_order():
    series = Series(np.arange(6.0).reshape(3, 2), names=["b", "a"])
    assert match_channels(series, ("a", "b")).values[0].tolist() == [1.0, 0.0]
    assert match_channels(Series([1, 2]), ("flow",)).names == ("flow",)
    assert match_channels(Series([1, 2], names="flow"), ("y",)).names == ("y",)
    for names, message in [(["a", "c"], r"2 channels \(a, b\).*without b"), (["a", "b", "c"], "Leave out c")]:
        with pytest.raises(SeriesError, match=message):
            match_channels(Series(np.zeros((3, len(names))), names=names), ("a", "b"))


def test_data_far_from_training_is_warned_of():
    scaler = Scaler.from_series([Series(SMOOTH, dt=0.5)])
    warn_if_far(Series(SMOOTH[:50], dt=0.5), scaler)  # warnings are errors here
    for values, dt, message in [
        (SMOOTH * 1000, 0.5, "spread"),
        (SMOOTH + 60, 0.5, "out of the range"),
        (SMOOTH, 30.0, "median step is 30, in training it was 0.5"),
    ]:
        with pytest.warns(LampertiWarning, match=message):
            warn_if_far(Series(values, dt=dt), scaler)
