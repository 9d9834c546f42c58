import numpy as np
import pytest
import scoringrules
from scipy import stats

from lamperti._errors import LampertiError
from lamperti.data.series import Series
from lamperti.evaluation import scores
from lamperti.evaluation.climatology import Climatology


@pytest.fixture
def calibrated():
    """Ensembles and truths drawn from the same law, different at every origin and horizon."""
    rng = np.random.default_rng(1)
    centre = rng.normal(size=(4000, 1, 2, 1))
    width = rng.uniform(0.5, 2.0, size=(4000, 1, 2, 1))
    samples = centre + width * rng.normal(size=(4000, 40, 2, 1))
    truth = (centre + width * rng.normal(size=(4000, 1, 2, 1)))[:, 0]
    return samples, truth


def within_five_errors(estimates, expected):
    error = estimates.std(ddof=1) / np.sqrt(estimates.size)
    return abs(estimates.mean() - expected) < 5 * error


@pytest.mark.parametrize("n_members", [2, 20])
def test_fair_crps_of_a_gaussian_ensemble_has_the_closed_form_as_its_mean(n_members):
    rng = np.random.default_rng(0)
    samples = rng.normal(1.0, 2.0, size=(4000, n_members, 1, 1))
    truth = np.full((4000, 1, 1), 0.3)
    exact = scores.gaussian_crps(np.ones((1, 1, 1)), np.full((1, 1, 1), 2.0), truth[:1])
    z = (0.3 - 1.0) / 2.0
    by_hand = 2.0 * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert exact.item() == pytest.approx(by_hand)
    assert within_five_errors(scores.crps(samples, truth), exact.item())


def test_crps_by_order_statistics_is_the_fair_estimate_over_pairs():
    rng = np.random.default_rng(2)
    samples, truth = rng.normal(size=(5, 9, 3, 2)), rng.normal(size=(5, 3, 2))
    pairs = scoringrules.crps_ensemble(truth, samples, m_axis=1, estimator="fair", backend="numpy")
    np.testing.assert_allclose(scores.crps(samples, truth), pairs, rtol=1e-12)


def test_energy_score_of_one_channel_is_the_crps():
    rng = np.random.default_rng(3)
    samples, truth = rng.normal(size=(5, 9, 3, 1)), rng.normal(size=(5, 3, 1))
    np.testing.assert_allclose(scores.energy_score(samples, truth), scores.crps(samples, truth)[..., 0], rtol=1e-12)


def test_energy_score_of_two_channels_sees_their_correlation():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(1000, 31, 1, 1))
    noise = 0.1 * rng.normal(size=(1000, 31, 1, 2))
    together = np.concatenate([z, z], axis=-1) + noise
    apart = np.concatenate([z, -z], axis=-1) + noise
    right = scores.energy_score(together[:, 1:], together[:, 0])
    wrong = scores.energy_score(apart[:, 1:], together[:, 0])
    gap = wrong - right
    assert gap.mean() > 5 * gap.std() / np.sqrt(gap.size)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_of_a_calibrated_ensemble_is_nominal(calibrated, level):
    assert within_five_errors(scores.covered(*calibrated, level), level)


def test_coverage_of_a_too_narrow_ensemble_falls_short(calibrated):
    samples, truth = calibrated
    narrow = 0.5 * (samples + samples.mean(axis=1, keepdims=True))
    assert scores.covered(narrow, truth, 0.9).mean() < 0.75


def test_pit_of_a_calibrated_ensemble_is_uniform_and_of_a_biased_one_is_not(calibrated):
    samples, truth = calibrated
    assert stats.kstest(scores.pit(samples, truth).ravel(), "uniform").pvalue > 1e-6
    assert stats.kstest(scores.pit(samples + 0.3, truth).ravel(), "uniform").pvalue < 1e-6


def test_pit_stays_uniform_when_the_truth_ties_with_members():
    rng = np.random.default_rng(5)
    draws = rng.integers(0, 3, size=(4000, 21, 1, 1)).astype(float)
    value = scores.pit(draws[:, 1:], draws[:, 0]).ravel()
    assert stats.kstest(value, "uniform").pvalue > 1e-6


def test_moment_log_score_of_a_gaussian_ensemble_tends_to_the_log_density():
    rng = np.random.default_rng(6)
    samples, truth = rng.normal(1.0, 2.0, size=(1, 200_000, 1, 1)), np.zeros((1, 1, 1))
    exact = -stats.norm.logpdf(0.0, 1.0, 2.0)
    assert scores.moment_log_score(samples, truth).item() == pytest.approx(exact, abs=0.01)


def test_kernel_log_score_of_a_large_ensemble_tends_to_the_log_density_of_two_modes():
    rng = np.random.default_rng(11)
    side = rng.choice([-3.0, 3.0], size=(1, 100_000, 1, 1))
    samples, truth = side + rng.normal(size=side.shape), np.full((1, 1, 1), 3.0)
    exact = -np.log(0.5 * stats.norm.pdf(0.0) + 0.5 * stats.norm.pdf(6.0))
    assert scores.kernel_log_score(samples, truth, bandwidth=0.02).item() == pytest.approx(exact, abs=0.02)
    assert scores.moment_log_score(samples, truth).item() > exact + 0.3


def test_kernel_log_score_is_the_mixture_written_out_and_survives_a_truth_far_away():
    rng = np.random.default_rng(12)
    samples, truth = rng.normal(size=(4, 7, 2, 1)), rng.normal(size=(4, 2, 1))
    width = 1.06 * 7**-0.2 * samples.std(axis=1, ddof=1)
    by_hand = -np.log(stats.norm.pdf(truth[:, None], samples, width[:, None]).mean(axis=1))
    np.testing.assert_allclose(scores.kernel_log_score(samples, truth), by_hand)
    assert np.isfinite(scores.kernel_log_score(samples, truth + 1e4)).all()


def test_uniformity_of_the_pit_holds_for_calibrated_and_fails_for_narrow_ensembles(calibrated):
    samples, truth = calibrated
    good = scores.pit_uniformity(scores.pit(samples, truth))
    assert good.statistic.shape == (2, 1) and np.all(good.p_value > 1e-6)
    narrow = 0.5 * (samples + samples.mean(axis=1, keepdims=True))
    assert np.all(scores.pit_uniformity(scores.pit(narrow, truth)).p_value < 1e-6)


def test_an_ensemble_that_blew_up_scores_infinity_and_covers_nothing(calibrated):
    samples, truth = calibrated
    samples[3, 7, 1] = np.nan
    crps = scores.crps(samples, truth)
    assert np.isinf(crps[3, 1]) and np.isfinite(np.delete(crps[:, 1], 3)).all()
    assert np.isinf(scores.moment_log_score(samples, truth)[3, 1])
    assert np.isinf(scores.kernel_log_score(samples, truth)[3, 1])
    assert np.isinf(scores.energy_score(samples[:8], truth[:8])[3, 1])
    assert scores.covered(samples, truth)[3, 1] == 0
    summary = scores.horizon_mean(crps)
    assert np.isfinite(summary.mean[0]) and np.isinf(summary.mean[1]) and np.isinf(summary.se[1])


def test_unknown_truth_is_left_out_of_the_means(calibrated):
    samples, truth = calibrated
    whole = scores.horizon_mean(scores.crps(samples[10:], truth[10:]))
    truth[:10] = np.nan
    with_gaps = scores.horizon_mean(scores.crps(samples, truth))
    np.testing.assert_allclose(with_gaps.mean, whole.mean)
    np.testing.assert_allclose(with_gaps.se, whole.se)
    assert np.isnan(scores.covered(samples, truth)[:10]).all() and np.isnan(scores.pit(samples, truth)[:10]).all()


def test_skill_fraction_is_zero_for_climatology_one_for_the_oracle_and_undefined_without_room():
    climatology, oracle = np.array([1.0, 1.0, 1.0, 1.0]), np.array([0.2, 0.2, 0.2, 1.0])
    fraction = scores.skill_fraction(climatology, np.array([1.0, 0.2, 0.6, 0.9]), oracle)
    np.testing.assert_allclose(fraction, [0.0, 1.0, 0.5, np.nan])


def test_error_of_the_skill_fraction_is_its_spread_over_repetitions():
    rng = np.random.default_rng(7)
    hard = rng.gamma(2.0, size=(400, 64, 1, 1))  # repetitions of 64 origins whose difficulty is shared
    climatology = 1 + hard
    oracle = 0.2 * hard + 0.1 * rng.uniform(size=hard.shape)
    model = 0.4 * hard + 0.2 * rng.uniform(size=hard.shape)
    found = [scores.skill(c, m, o) for c, m, o in zip(climatology, model, oracle, strict=True)]
    spread = np.std([f.mean for f in found])
    assert np.mean([f.se for f in found]) == pytest.approx(spread, rel=5 / np.sqrt(2 * 400))


def test_skill_of_a_model_that_blew_up_is_minus_infinity():
    rng = np.random.default_rng(8)
    oracle = rng.uniform(size=(10, 2, 1))
    model = oracle + 0.1
    model[0, 1] = np.inf
    found = scores.skill(oracle + 1, model, oracle)
    np.testing.assert_allclose(found.mean[:, 0], [0.9, -np.inf])
    assert np.isfinite(found.se[0]) and np.isinf(found.se[1])


def test_too_few_members_for_the_interval_are_refused():
    samples, truth = np.zeros((3, 18, 1, 1)), np.zeros((3, 1, 1))
    with pytest.raises(LampertiError, match="at least 19 ensemble members, got 18"):
        scores.covered(samples, truth, 0.9)


def test_truth_of_another_shape_is_refused():
    with pytest.raises(LampertiError, match=r"samples must be \[R, S, H, P\]"):
        scores.crps(np.zeros((3, 5, 2, 1)), np.zeros((3, 2)))


def test_climatology_crps_is_that_of_the_whole_training_set_as_an_ensemble():
    rng = np.random.default_rng(9)
    values, truth = rng.normal(size=(50, 3, 2)), rng.normal(size=(4, 5, 2))
    values[0, 0, 0] = np.nan
    climatology = Climatology.of_values(values)
    for channel in range(2):
        pool = values[..., channel][np.isfinite(values[..., channel])]
        ensemble = np.broadcast_to(pool[None, :, None, None], (4, len(pool), 5, 1))
        one = truth[..., channel : channel + 1]
        np.testing.assert_allclose(climatology.crps(truth)[..., channel : channel + 1], scores.crps(ensemble, one))


def test_climatology_of_a_gaussian_scores_its_closed_form():
    rng = np.random.default_rng(10)
    climatology = Climatology.of_values(rng.normal(size=(100_000, 1)))
    score = climatology.crps(rng.normal(size=(20_000, 1, 1)))
    assert within_five_errors(score, 1 / np.sqrt(np.pi))
    drawn = climatology.samples(20_000, 5, 1, seed=1)
    assert within_five_errors(scores.crps(drawn, rng.normal(size=(20_000, 1, 1))), 1 / np.sqrt(np.pi))


def test_climatology_of_series_leaves_out_what_was_not_observed():
    series = [Series([1.0, 2.0, 50.0], mask=[True, True, False]), Series([3.0, float("nan")], missing="nan")]
    np.testing.assert_array_equal(Climatology.of_series(series).channels[0], [1.0, 2.0, 3.0])


def test_climatology_without_data_is_refused():
    with pytest.raises(LampertiError, match="two measured values a channel, got 0"):
        Climatology.of_values(np.full((5, 1), np.nan))
    with pytest.raises(LampertiError, match="got no series"):
        Climatology.of_series([])


def test_origins_that_are_copies_of_each_other_count_once():
    once = np.random.default_rng(5).standard_normal((12, 2, 1))
    copies = np.repeat(once, 4, axis=0)
    found, expected = scores.horizon_mean(copies, block=4), scores.horizon_mean(once)
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.se, expected.se)
    assert (scores.horizon_mean(copies).se < 0.6 * expected.se).all()
    with pytest.raises(LampertiError, match="not two blocks"):
        scores.horizon_mean(once, block=7)


def test_error_of_a_ratio_of_scores_is_its_spread_over_repetitions():
    rng = np.random.default_rng(21)
    found = []
    for _ in range(400):
        hard = rng.exponential(size=(60, 1, 1))  # an origin is hard for both
        found.append(scores.ratio(1.3 * hard + 0.2 * rng.exponential(size=hard.shape), hard))
    means, errors = (np.array([getattr(f, name).item() for f in found]) for name in ("mean", "se"))
    assert np.median(means) == pytest.approx(1.5, abs=0.02)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(means.std(), rel=0.2)


def test_ratio_to_a_score_of_zero_is_unknown_and_of_a_broken_forecast_infinite():
    one = np.ones((5, 1, 1))
    broken = np.where(np.arange(5)[:, None, None] == 2, np.inf, one)
    assert np.isnan(scores.ratio(one, 0 * one).mean).all()
    assert np.isposinf(scores.ratio(broken, one).mean).all()
    with pytest.raises(LampertiError, match="same origins"):
        scores.ratio(np.where(np.isinf(broken), np.nan, broken), one)
