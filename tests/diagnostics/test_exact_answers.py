"""Diagnostics of systems whose answers are known."""

from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from scipy.linalg import expm

import lamperti as lp
from lamperti.config import Config
from lamperti.data.holding import held_out_from
from lamperti.data.scaling import Scaler
from lamperti.data.training_data import record_split
from lamperti.diagnostics import fixed_points, whiteness
from lamperti.diagnostics.at_times import nearest
from lamperti.diagnostics.caveats import of_training
from lamperti.diagnostics.held_out import changes
from lamperti.diagnostics.long_run import stretches
from lamperti.diagnostics.summary import how_it_ended
from lamperti.diagnostics.unseen import divide
from lamperti.train.history import History, Record, Status


def moments(field):
    return lambda x: (field(x), np.zeros_like(x))


def cloud(dim, n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def test_white_noise_passes_and_autoregression_is_caught():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, 500))
    white = whiteness("x", list(noise))
    assert white.p_white > 0.01 and white.p_normal > 0.01
    assert white.mean == pytest.approx(0.0, abs=5 / np.sqrt(2000)) and white.sd == pytest.approx(1.0, abs=0.1)
    ar = noise.copy()
    for k in range(1, ar.shape[1]):
        ar[:, k] += 0.3 * ar[:, k - 1]
    coloured = whiteness("x", list(ar))
    assert coloured.p_white < 1e-6
    assert coloured.autocorrelation[0] == pytest.approx(0.3, abs=0.1)
    assert whiteness("x", list(np.abs(noise))).p_normal < 1e-6


def test_p_values_of_white_noise_are_uniform():
    rng = np.random.default_rng(2)
    found = [whiteness("x", [rng.normal(size=300)]) for _ in range(200)]
    share = np.mean([w.p_white < 0.1 for w in found])
    assert share == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / 200))


def test_pairs_are_not_taken_across_stretches_or_gaps():
    rising = np.arange(40.0)
    broken = np.where(np.arange(40) == 20, np.nan, rising)
    assert len(whiteness("x", [rising, rising]).values) == 80
    assert len(whiteness("x", [broken]).values) == 39
    with pytest.raises(lp.ConfigError, match="needs 10 that differ; got 5"):
        whiteness("x", [np.arange(5.0)])


def sampled(A, step):
    """The drift whose Euler step of this length is the exact flow of dx = A x dt."""
    return (expm(A * step) - np.eye(len(A))) / step


@pytest.mark.parametrize("step", [0.01, 0.3, 1.2])
def test_the_eigenvalues_of_a_sampled_linear_system_are_those_of_continuous_time(step):
    A, centre = np.array([[-0.5, 2.0], [-2.0, -0.5]]), np.array([0.3, -0.2])
    (point,) = fixed_points(moments(lambda x: (x - centre) @ sampled(A, step).T), cloud(2), step=step)
    np.testing.assert_allclose(point.x, centre, atol=1e-6)
    np.testing.assert_allclose(point.eigenvalues, [-0.5 + 2j, -0.5 - 2j], atol=1e-6)
    np.testing.assert_allclose(np.abs(point.multipliers), np.exp(-0.5 * step))
    assert point.kind == "stable focus" and point.uncertainty == 0.0 and not point.too_coarse
    assert point.period == pytest.approx(np.pi)


@pytest.mark.parametrize("rate", [-3.0, -0.2, 0.4])
def test_a_rate_is_found_again_however_long_the_steps_are(rate):
    for step in (0.01, 0.5, 2.0):
        learned = np.array([[(np.exp(rate * step) - 1) / step]])
        (point,) = fixed_points(moments(learned.__rmatmul__), cloud(1), step=step)
        np.testing.assert_allclose(point.eigenvalues, [rate], atol=1e-6)
        assert point.kind == ("stable node" if rate < 0 else "unstable node") and point.period == np.inf


def test_labels_agree_with_the_signs_of_the_rates():
    A = np.array([[-0.5, 2.0], [-2.0, -0.5]])  # as a drift that is stepped, it spirals out
    (point,) = fixed_points(moments(lambda x: x @ A.T), cloud(2), step=1.0)
    np.testing.assert_allclose(point.eigenvalues.real, np.log(abs(0.5 + 2j)))
    assert point.kind == "unstable focus"


def test_a_step_that_changes_the_side_is_too_coarse_for_a_rate():
    (across,) = fixed_points(moments(lambda x: -1.5 * x), cloud(1), step=1.0)
    (at_once,) = fixed_points(moments(lambda x: -x), cloud(1), step=1.0)
    (slow,) = fixed_points(moments(lambda x: -0.5 * x), cloud(1), step=1.0)
    assert across.too_coarse and at_once.too_coarse and not slow.too_coarse
    assert [p.kind for p in (across, at_once, slow)] == ["stable node"] * 3 and across.period == np.inf


def test_a_double_well_has_two_stable_points_about_a_saddle():
    def field(x):
        return np.stack([x[:, 0] - x[:, 0] ** 3, -x[:, 1]], axis=1)

    found = fixed_points(moments(field), 2 * cloud(2), step=0.05)
    assert [(p.x.round(6) + 0.0).tolist() for p in sorted(found, key=lambda p: p.x[0])] == [[-1, 0], [0, 0], [1, 0]]
    assert [p.kind for p in sorted(found, key=lambda p: p.x[0])] == ["stable node", "saddle", "stable node"]
    np.testing.assert_allclose(found[0].eigenvalues, np.log([1.05, 0.95]) / 0.05, atol=1e-6)


def test_points_outside_the_states_are_not_reported():
    assert fixed_points(moments(lambda x: 9.0 - x), cloud(2), step=0.1) == ()


def test_the_middle_of_a_cycle_is_inside():
    angle = np.linspace(0, 2 * np.pi, 100)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert len(fixed_points(moments(lambda x: -x), ring, step=0.1)) == 1


def test_stretches_keep_most_of_the_data_between_gaps():
    values = np.arange(100.0)
    values[80] = np.nan
    np.testing.assert_array_equal(stretches([values]), [np.arange(80.0)])
    assert stretches([np.arange(50.0), np.arange(80.0), np.arange(50.0)]).shape == (3, 50)
    assert stretches([np.full(5, np.nan)]).shape == (0, 0)


def test_the_held_out_part_is_whole_series_or_the_end_of_the_longest():
    def part(lengths, fraction, seed=0):
        masks = [np.ones((n, 1), bool) for n in lengths]
        return held_out_from(masks, fraction, 5, np.random.default_rng(seed))

    assert part([100], 0.2) == {0: 80}
    assert part([100], 0.05) == {}
    assert part([100, 90], 0.0) == {}
    assert part([60, 140], 0.1) == {1: 120}
    many = part([50] * 20, 0.1, seed=3)
    assert len(many) == 2 and set(many.values()) == {0}
    assert many == part([50] * 20, 0.1, seed=3)


def test_the_unseen_part_is_found_again_in_a_series_with_a_gap():
    times = np.concatenate([np.arange(60.0), 200.0 + np.arange(40.0)])
    series = [lp.Series(np.sin(times), times=times)]
    config = Config(lp.ModelConfig(window=5), lp.FitConfig(validation_fraction=0.2))
    scaler = Scaler.from_series(series)
    old = SimpleNamespace(scaler=scaler, config=config, trained_on=None, data=())
    new = SimpleNamespace(**vars(old) | {"trained_on": record_split(series, scaler, 0.2, 5, config.fit.seed)})
    for result in (old, new):  # a guess where the model does not know its rows
        found = divide(result, series)
        assert found.unseen == ((0, 40, 60),) and found.validation
        assert [(one.times[0], one.times[-1]) for one in found.known] == [(0, 39), (200, 239)]


def test_every_value_counts_at_its_nearest_step():
    truth = lp.Series([1.0, 2.0, 3.0, 4.0, 5.0], times=[1.0, 2.1, 3.4, 3.8, 5.9])
    found = nearest(truth, 0.0, 1.0, 5)
    np.testing.assert_array_equal(found.values[:, 0], [1.0, 2.0, 3.0, 4.0, np.nan])
    np.testing.assert_allclose(found.late[:, 0], [0.0, 0.1, 0.4, -0.2, np.nan])
    twice = nearest(lp.Series([1.0, 2.0, 3.0], times=[0.6, 1.1, 1.3]), 0.0, 1.0, 2)
    np.testing.assert_array_equal(twice.values[:, 0], [2.0, np.nan])  # of several at one step, the nearest


def test_changes_are_taken_from_pairs_about_a_lag_apart_whatever_lies_between():
    times = np.array([0.0, 1.1, 2.0, 3.5, 9.0])
    series = lp.Series(np.array([0.0, 1.0, np.nan, 5.0, 7.0]), times=times, missing="nan")
    (found,) = changes(series, 1.0, 0.25)
    np.testing.assert_array_equal(found, [1.0])
    (found,) = changes(series, 2.5, 0.25)
    np.testing.assert_array_equal(found, [4.0])
    assert changes(series, 100.0, 0.25)[0].size == 0


def _history(scores, **parts):
    zeros = dict.fromkeys(("seconds", "elbo", "emission", "initial", "transition", "entropy", "kl"), 0.0)
    return History([Record(iteration=i + 1, validation=v, **zeros) for i, v in enumerate(scores)], **parts)


def test_training_that_was_cut_short_is_told():
    rising = _history(np.linspace(0, 1, 20), status="max_minutes")
    assert [c.code for c in of_training(rising)] == ["still rising"]
    assert "the clock" in next(of_training(rising)).text
    flat = _history(1 - np.exp(-np.arange(20.0)), status="max_minutes")
    assert list(of_training(flat)) == []
    assert list(of_training(_history(np.linspace(0, 1, 20), status="patience"))) == []
    assert [c.code for c in of_training(History(status="interrupted", rollbacks=2))] == ["interrupted", "rollbacks"]


def test_training_that_a_signal_ended_says_that_the_noises_are_not_calibrated():
    (caveat,) = of_training(History(status="terminated"))
    assert caveat.code == "terminated" and "SIGTERM" in caveat.text and "not calibrated" in caveat.text
    (caveat,) = of_training(History(status="interrupted"), calibrates=False)
    assert "not calibrated" not in caveat.text
    for status in get_args(Status):
        assert how_it_ended(status) != status or status == "interrupted"


def test_steps_refused_after_the_last_record_are_told():
    history = _history([0.0, 0.0], status="max_iterations")
    history.note(3, "refused step", 4)
    assert [c.text for c in of_training(history)] == ["4 training steps were refused because they were not finite."]
