import dataclasses

import numpy as np
import pytest
from scipy import stats

from lamperti import baselines
from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation import kalman, protocol
from lamperti.evaluation.protocol import ForecastTask

HORIZONS = (1, 3, 8)
CONTEXT = 60
DT = 0.1


def rotation(n_series, n_samples, seed):
    return systems.ornstein_uhlenbeck(n_series, n_samples, dt=DT, observation_noise=0.2, seed=seed)


@pytest.fixture(scope="module")
def task():
    return ForecastTask.against(rotation(20, 200, 0), rotation(300, CONTEXT + 8, 1), CONTEXT, HORIZONS)


def exact(task, noise_sd=0.0):
    """The oracle as a forecaster among others."""
    system, seen = task.test.system, float(task.test.noise_sd[0])

    def forecaster(context, seed):
        forecast = kalman.kalman_forecast(
            system.transition_matrix(DT), system.process_covariance(DT), np.array([1.0, 0.0]), seen**2,
            context.values.T, 8,
        )  # fmt: skip
        samples = forecast.samples(200, seed=seed)[0]
        return samples + noise_sd * np.random.default_rng(seed + 10_000).standard_normal(samples.shape)

    return forecaster


def test_the_oracle_as_a_forecaster_has_skill_one_and_is_calibrated(task):
    rows = protocol.score_forecasts(task, exact(task), protocol.oracle_scores(task))
    assert [row.horizon for row in rows] == list(HORIZONS)
    for row in rows:
        assert row.n_origins == 300
        assert abs(row.skill_fraction - 1) < 5 * row.skill_fraction_se
        assert abs(row.crps_over_oracle - 1) < 5 * row.crps_over_oracle_se < 0.2
        assert abs(row.coverage_90 - 0.9) < 5 * np.sqrt(0.09 / 300)
        assert abs(row.coverage_50 - 0.5) < 5 * np.sqrt(0.25 / 300)
        assert row.pit_p_value > 1e-5
        assert abs(row.log_score_above_oracle) < 0.05
        assert row.crps_over_climatology == pytest.approx(row.oracle_over_climatology, rel=0.05)


def test_climatology_has_no_skill_and_a_narrow_forecast_is_found_out(task):
    oracle = protocol.oracle_scores(task)
    climatology = protocol.score_forecasts(
        task, lambda c, seed: task.climatology.samples(1, 200, 8, seed=seed)[0], oracle
    )
    assert all(abs(row.skill_fraction) < 5 * row.skill_fraction_se for row in climatology)
    right = exact(task)

    def narrow(context, seed):
        samples = right(context, seed)
        return samples.mean(axis=0) + 0.3 * (samples - samples.mean(axis=0))

    for row in protocol.score_forecasts(task, narrow, oracle):
        assert row.coverage_90 < 0.6 and row.pit_p_value < 1e-3 and row.log_score_above_oracle > 0.5


def test_forecasting_what_will_be_observed_is_another_task(task):
    observed = ForecastTask(task.test, CONTEXT, HORIZONS, task.climatology, target="observed")
    oracle = protocol.oracle_scores(observed)
    with_noise = protocol.score_forecasts(observed, exact(observed, float(task.test.noise_sd[0])), oracle)
    assert abs(with_noise[0].skill_fraction - 1) < 5 * with_noise[0].skill_fraction_se
    assert abs(with_noise[0].coverage_90 - 0.9) < 5 * np.sqrt(0.09 / 300)
    # without the noise its intervals are too narrow by a known factor: that of the sds
    without = protocol.score_forecasts(observed, exact(observed), oracle)
    noise_sd = float(task.test.noise_sd[0])
    F, Q = task.test.system.transition_matrix(DT), task.test.system.process_covariance(DT)
    contexts = np.stack([c.values[:, 0] for c in task.contexts])
    sd = kalman.kalman_forecast(F, Q, np.array([1.0, 0.0]), noise_sd**2, contexts, 1).sd[0, 0, 0]
    expected = 2 * stats.norm.cdf(stats.norm.ppf(0.95) * sd / np.hypot(sd, noise_sd)) - 1
    assert expected < 0.87
    assert abs(without[0].coverage_90 - expected) < 5 * np.sqrt(0.09 / 300)
    assert without[0].coverage_90 < with_noise[0].coverage_90


def test_a_baseline_is_scored_like_anything_else_and_without_an_oracle_too(task):
    fitted = baselines.Autoregression().fit(rotation(20, 200, 0).series, seed=0)
    rows = protocol.score_forecasts(task, lambda c, seed: fitted.forecast(c.values, 8, 60, seed))
    assert rows[0].crps_over_climatology < 0.6
    assert np.isnan(rows[0].skill_fraction) and np.isnan(rows[0].crps_over_oracle)
    assert np.isnan(rows[0].log_score_above_oracle)


def test_oracle_scores_are_kept_and_belong_to_their_test_set(task, tmp_path):
    first = protocol.oracle_scores(task, tmp_path)
    (kept,) = tmp_path.iterdir()
    stamp = kept.stat().st_mtime_ns
    again = protocol.oracle_scores(task, tmp_path)
    np.testing.assert_array_equal(first.crps, again.crps)
    assert kept.stat().st_mtime_ns == stamp
    other = ForecastTask(rotation(5, CONTEXT + 8, 2), CONTEXT, HORIZONS, task.climatology)
    assert protocol.oracle_scores(other, tmp_path).crps.shape == (5, 8, 1)
    assert len(list(tmp_path.iterdir())) == 2


def test_scores_of_a_former_oracle_are_not_read(task, tmp_path, monkeypatch):
    protocol.oracle_scores(task, tmp_path)
    monkeypatch.setattr(protocol, "DEFINITION", "another")
    protocol.oracle_scores(task, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_particle_oracle_of_a_nonlinear_system_beats_climatology():
    made = systems.double_well(20, 25, observation_noise=0.1, seed=3)
    task = ForecastTask.against(made, made, 20, (1, 5))
    oracle = protocol.oracle_scores(task, n_particles=500)
    assert oracle.crps[:, 0].mean() < 0.3 * task.climatology_crps[:, 0].mean()
    assert np.isfinite(oracle.log_score).all()


def test_oracle_of_a_growing_oscillation_knows_where_it_goes():
    made = systems.excited_oscillator(6, 60, observation_noise=0.1, seed=4)
    task = ForecastTask.against(made, made, 50, (1, 10))
    assert protocol.oracle_scores(task).crps.mean() < 0.1 * task.climatology_crps.mean()


def test_beside_an_oracle_that_knows_the_future_there_is_no_ratio():
    made = systems.excited_oscillator(6, 60, seed=4)
    task = ForecastTask.against(made, made, 50, (1, 10))
    rows = protocol.score_forecasts(task, lambda c, s: np.random.default_rng(s).normal(size=(50, 10, 1)),
                                    protocol.oracle_scores(task))  # fmt: skip
    assert all(np.isnan(row.crps_over_oracle) and np.isfinite(row.skill_fraction) for row in rows)


def test_free_runs_of_the_true_system_are_at_the_floor_and_rough_ones_are_not():
    def run(seed):
        return systems.ornstein_uhlenbeck(16, 400, dt=DT, seed=seed).clean[..., 0]

    real = [run(s) for s in range(4)]
    same = protocol.score_free_run(run(9), real)
    assert same.escape_share == 0 and same.outside_share < 0.01
    assert same.sd_ratio == pytest.approx(1, abs=0.15) and same.half_cycle_ratio == pytest.approx(1, abs=0.15)
    assert same.residence_90_ratio == pytest.approx(1, abs=0.2)
    assert np.median(list(same.ratio_to_floor.values())) < 2.5
    rough = protocol.score_free_run(run(9) + 0.3 * np.random.default_rng(5).normal(size=(16, 400)), real)
    assert rough.roughness_ratio > 2 and rough.ratio_to_floor["roughness"] > 3
    assert set(dataclasses.asdict(rough)["ratio_to_floor"]) == set(protocol.invariants.DISTANCES)
    escaped = run(9)
    escaped[:4, 200:] = np.inf
    broken = protocol.score_free_run(np.where(np.isinf(escaped), 1e3, escaped), real)
    assert broken.escape_share == pytest.approx(0.25) and broken.outside_share == pytest.approx(0.125, abs=0.01)


def test_tasks_that_do_not_fit_their_data_are_refused(task):
    with pytest.raises(LampertiError, match="do not fit the test series of 68 samples"):
        ForecastTask(task.test, CONTEXT, (1, 9), task.climatology)
    with pytest.raises(LampertiError, match=r"samples \[S, 8, 1\]"):
        protocol.score_forecasts(task, lambda c, seed: np.zeros((50, 3, 1)))
    with pytest.raises(LampertiError, match="two independent real sets"):
        protocol.score_free_run(np.zeros((2, 10)), [np.zeros((2, 10))])
