"""What every baseline promises, and what each must get right where the answer is known."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.signal import lfilter

from lamperti import baselines
from lamperti._errors import CapabilityError, LampertiError
from lamperti.baselines.seasonal_naive import find_season
from lamperti.data import systems
from lamperti.data.series import Series
from lamperti.evaluation import kalman, scores
from lamperti.evaluation.climatology import Climatology

HORIZON = 10
SIMULATORS = {"ar", "linear-state-space"}


def ar2(n_series, n_samples, seed):
    """y' = 1.6 y - 0.8 y_before + e about 5: a damped oscillation."""
    noise = np.random.default_rng(seed).normal(size=(n_series, n_samples + 200))
    return 5.0 + lfilter([1.0], [1.0, -1.6, 0.8], noise, axis=1)[:, 200:]


@pytest.fixture(scope="module")
def train():
    return [Series(y) for y in ar2(10, 150, seed=0)]


@pytest.fixture(scope="module")
def fitted(train):
    quick = baselines.standard_baselines(HORIZON) | {
        "echo-state": baselines.EchoState(HORIZON, units=30),
        "linear-state-space": baselines.LinearStateSpace(max_dimension=2),
    }
    return {name: method.fit(train, seed=0) for name, method in quick.items()}


@pytest.fixture(scope="module")
def test_set():
    y = ar2(60, 60 + HORIZON, seed=1)[..., None]
    return y[:, :60], y[:, 60:]


NAMES = sorted(baselines.standard_baselines(HORIZON))


@pytest.mark.parametrize("name", NAMES)
def test_forecasts_are_finite_ensembles_that_a_seed_gives_again(name, fitted, test_set):
    context = test_set[0][0]
    first, again, other = (fitted[name].forecast(context, HORIZON, 40, seed=s) for s in (1, 1, 2))
    assert first.shape == (40, HORIZON, 1) and np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert fitted[name].forecast(context, 3, 5, seed=0).shape == (5, 3, 1)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_are_calibrated_on_new_data(name, fitted, test_set):
    contexts, truth = test_set
    samples = np.stack([fitted[name].forecast(c, HORIZON, 99, seed=i) for i, c in enumerate(contexts)])
    hits = scores.covered(samples, truth, 0.9).mean(axis=0)
    # 60 origins, and a spread that itself comes from two held-out series
    assert np.all(hits > 0.9 - 5 * np.sqrt(0.09 / 60) - 0.05)
    if name != "climatology":
        found = scores.crps(samples, truth)[:, 0].mean()
        assert found < 0.9 * Climatology.of_values(contexts).crps(truth)[:, 0].mean()


@pytest.mark.parametrize("name", NAMES)
def test_gaps_and_wrong_contexts_are_refused(name, fitted, train):
    method = baselines.standard_baselines(HORIZON)[name]
    holed = Series(train[0].values, mask=np.arange(len(train[0])) != 7)
    with pytest.raises(LampertiError, match="series 1 has 1 missing values"):
        method.fit([train[0], holed], seed=0)
    with pytest.raises(LampertiError, match=r"context must be \[T, 1\]"):
        fitted[name].forecast(np.zeros((60, 2)), HORIZON, 5, seed=0)
    with pytest.raises(LampertiError, match="at least 1"):
        fitted[name].forecast(train[0].values, 0, 5, seed=0)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"climatology"}))
def test_a_gap_at_the_end_of_the_context_is_refused(name, fitted, train):
    context = train[0].values.copy()
    context[-1] = np.nan
    with pytest.raises(LampertiError, match="missing values"):
        fitted[name].forecast(context, HORIZON, 5, seed=0)


@pytest.mark.parametrize("name", ["persistence", "seasonal-naive", "simplex", "echo-state", "havok"])
def test_a_horizon_beyond_the_learned_spread_is_refused(name, fitted, train):
    with pytest.raises(LampertiError, match=f"up to {HORIZON} samples ahead, got horizon=11"):
        fitted[name].forecast(train[0].values, 11, 5, seed=0)


def test_series_of_different_steps_are_refused(train):
    with pytest.raises(LampertiError, match="series 1 is not sampled every 1"):
        baselines.Climatology().fit([train[0], Series(train[1].values, dt=2.0)], seed=0)


@pytest.mark.parametrize("name", sorted(SIMULATORS))
def test_free_runs_have_the_law_of_the_data(name, fitted):
    assert isinstance(fitted[name], baselines.Simulator)
    paths = fitted[name].simulate(100, 150, seed=0)[..., 0]
    real = ar2(100, 150, seed=2)
    error = real.std(axis=1).std() / np.sqrt(100)
    assert abs(paths.std(axis=1).mean() - real.std(axis=1).mean()) < 5 * error + 0.1 * real.std()
    assert abs(paths.mean() - 5.0) < 0.5


def test_autoregression_recovers_order_and_coefficients(fitted):
    model = fitted["ar"]
    assert model.order == 2
    # asymptotic covariance of the estimates: (1 - phi_2^2)/n on the diagonal
    assert np.all(np.abs(model.coefficients - [1.6, -0.8]) < 5 * np.sqrt((1 - 0.64) / 1500))
    assert model.intercept / (1 - model.coefficients.sum()) == pytest.approx(5.0, abs=0.5)
    assert model.residuals.std() == pytest.approx(1.0, rel=5 / np.sqrt(2 * 1500))


def test_autoregression_forecast_has_the_mean_of_the_recursion(train, test_set):
    model = baselines.Autoregression(innovations="gaussian").fit(train, seed=0)
    context = test_set[0][0]
    samples = model.forecast(context, 3, 20_000, seed=0)[..., 0]
    y = list(context[-2:, 0])
    for _ in range(3):
        y.append(model.intercept + model.coefficients @ [y[-1], y[-2]])
    assert np.all(np.abs(samples.mean(axis=0) - y[2:]) < 5 * samples.std(axis=0) / np.sqrt(20_000))


def test_persistence_is_exact_where_nothing_changes():
    levels = [Series(np.full(30, float(v)), names="y") for v in (1, 2, 3)]
    samples = baselines.Persistence(5).fit(levels, seed=0).forecast(np.full((4, 1), 7.0), 5, 20, seed=0)
    np.testing.assert_array_equal(samples, 7.0)


def test_persistence_spreads_like_a_random_walk():
    rng = np.random.default_rng(3)
    walks = [Series(np.cumsum(rng.normal(size=200))) for _ in range(60)]
    samples = baselines.Persistence(16).fit(walks, seed=0).forecast(np.zeros((1, 1)), 16, 4000, seed=0)
    sd = samples.std(axis=0)[:, 0]
    np.testing.assert_allclose(sd[[0, 3, 15]], [1, 2, 4], rtol=5 / np.sqrt(2 * 300))


def test_akaike_takes_no_fewer_lags_than_bayes(train):
    short = [train[0][:60]]
    orders = [baselines.Autoregression(criterion=c).fit(short, seed=0).order for c in ("bic", "aic")]
    assert orders[0] <= orders[1]
    few = Series(np.random.default_rng(8).normal(size=40))  # 13 lags of 27 targets: the cheaper price takes some
    assert [baselines.Autoregression(criterion=c).fit([few], seed=0).order for c in ("bic", "aic")] == [1, 13]


def season(n, s, noise, seed=0):
    return np.sin(2 * np.pi * np.arange(n) / s) + noise * np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize(("n", "s"), [(100, 7), (120, 12), (400, 24), (300, 4), (90, 2)])
def test_the_season_is_found_under_noise_and_a_trend(n, s):
    peaked = np.where(np.arange(n) % s == 0, 3.0, 0.0) + 0.02 * np.arange(n) + season(n, s, 0.3)
    assert find_season([peaked[:, None]]) == s


@pytest.mark.parametrize("n", [60, 300, 2000])
def test_noise_of_any_colour_has_no_season(n):
    rng, found = np.random.default_rng(n), 0
    for _ in range(20):
        white = rng.normal(size=n + 200)
        for y in (white, lfilter([1.0], [1.0, -0.95], white), white.cumsum(), lfilter([1.0], [1.0, -1.6, 0.8], white)):
            found += find_season([y[200:, None]]) is not None
    assert found <= 3  # of 80


def test_an_oscillation_that_forgets_its_phase_is_no_season():
    y = lfilter([1.0], [1.0, -1.95, 0.99], np.random.default_rng(0).normal(size=4500))[500:]
    assert find_season([y[:, None]]) is None
    assert find_season([np.ones((50, 1))]) is None


def test_the_last_season_comes_again_and_again():
    model = baselines.SeasonalNaive(10).fit([Series(np.tile([1.0, 5.0, 2.0, 0.0], 20))], seed=0)
    context = np.array([9.0, 3.0, 6.0, 4.0, 7.0])[:, None]
    expected = [3.0, 6.0, 4.0, 7.0, 3.0, 6.0, 4.0, 7.0, 3.0, 6.0]
    np.testing.assert_array_equal(model.forecast(context, 10, 5, seed=0)[..., 0], np.tile(expected, (5, 1)))


def test_without_a_season_the_last_value_stays():
    walks = [Series(np.random.default_rng(i).normal(size=100).cumsum()) for i in range(3)]
    context = walks[0].values[:30]
    seasonal, persistent = (
        method(5).fit(walks, seed=0).forecast(context, 5, 50, seed=1)
        for method in (baselines.SeasonalNaive, baselines.Persistence)
    )
    np.testing.assert_array_equal(seasonal, persistent)
    short = [Series(season(40, 12, 0.1))]  # a season of 12 and a horizon of 30 do not fit
    assert baselines.SeasonalNaive(30).fit(short, seed=0).point.season == 1


def test_climatology_ignores_the_context(fitted, train):
    pooled = np.concatenate([s.values for s in train])
    samples = fitted["climatology"].forecast(np.full((3, 1), 1e6), 2, 20_000, seed=0)
    assert samples.mean() == pytest.approx(pooled.mean(), abs=5 * pooled.std() / np.sqrt(40_000))
    assert set(samples.ravel()) <= set(pooled.ravel())


def test_linear_state_space_passes_over_parameters_without_a_steady_filter(monkeypatch):
    """SciPy says so with one of two errors; the excited oscillator, which has no noise, meets the second."""
    from lamperti.baselines import linear_state_space

    tried = []

    def unsteady(*matrices):
        tried.append(matrices)
        if len(tried) % 3 == 2:
            raise ValueError("Reordering of (A, B) failed")
        if len(tried) % 3 == 1:
            raise np.linalg.LinAlgError("no finite solution")
        return solve_discrete_are(*matrices)

    theta, groups = np.array([0.5, 0.2, 0.1, -1.0]), [np.random.default_rng(0).normal(size=(2, 80))]
    monkeypatch.setattr(linear_state_space, "solve_discrete_are", unsteady)
    errors = [linear_state_space._log_error(theta, groups) for _ in range(3)]
    assert errors[:2] == [np.inf, np.inf] and np.isfinite(errors[2])


def test_linear_state_space_reaches_the_exact_oracle_on_a_noisy_rotation():
    made = systems.ornstein_uhlenbeck(30, 300, dt=0.1, observation_noise=0.1, seed=4)
    model = baselines.LinearStateSpace(max_dimension=3).fit(made.series, seed=0)
    assert model.noise_var == pytest.approx(0.01, rel=0.4)
    test = systems.ornstein_uhlenbeck(200, 160, dt=0.1, observation_noise=0.1, seed=5)
    contexts, truth = np.stack([s.values[:150] for s in test.series]), test.clean[:, 150:]
    samples = np.stack([model.forecast(c, 10, 100, seed=i) for i, c in enumerate(contexts)])
    system = test.system
    oracle = kalman.kalman_forecast(
        system.transition_matrix(0.1), system.process_covariance(0.1), np.array([1.0, 0.0]),
        float(test.noise_sd[0]) ** 2, contexts[..., 0], 10,
    ).crps(truth)  # fmt: skip
    climatology = Climatology.of_values(made.clean).crps(truth)
    found = scores.skill(climatology, scores.crps(samples, truth), oracle)
    assert np.all(found.mean[[0, 4, 9]] > 0.95)


def test_an_oscillation_that_lasts_is_forecast_by_the_linear_state_space():
    t, phases = np.arange(200.0), np.array([[0.0], [1.0], [2.0]])
    waves = np.sin(0.3 * t + phases)
    noisy = waves + 0.1 * np.random.default_rng(1).normal(size=waves.shape)
    model = baselines.LinearStateSpace(max_dimension=2).fit([Series(w) for w in noisy], seed=0)
    samples = model.forecast(noisy[0, :150, None], 50, 200, seed=0)
    assert np.sqrt(np.mean((samples.mean(axis=0)[:, 0] - waves[0, 150:]) ** 2)) < 0.1


def test_simplex_beats_climatology_on_lorenz_and_takes_its_lag_from_the_data():
    made = systems.lorenz(20, 200, dt=0.02, observation_noise=0.02, seed=6, substeps=8)
    model = baselines.Simplex(20).fit(made.series[:16], seed=0)
    assert model.points.shape[1] >= 2 and model.lag >= 2
    contexts, truth = np.stack([s.values[:150] for s in made.series[16:]]), made.clean[16:, 150:170]
    samples = np.stack([model.forecast(c, 20, 50, seed=i) for i, c in enumerate(contexts)])
    climatology = Climatology.of_values(made.clean[:16]).crps(truth)
    assert scores.crps(samples, truth)[:, :5].mean() < 0.25 * climatology[:, :5].mean()
    assert scores.crps(samples, truth).mean() < 0.8 * climatology.mean()


def test_simplex_repeats_what_followed_an_exact_copy_of_the_present():
    train = [Series(np.sin(np.arange(100.0))), Series(np.cos(0.3 * np.arange(100.0)))]
    model = baselines.Simplex(5, lag=2, dimension=3, neighbours=1).fit(train, seed=0)
    samples = model.forecast(train[1].values[:40], 5, 30, seed=0)
    np.testing.assert_allclose(samples[:, :, 0], np.broadcast_to(train[1].values[40:45, 0], (30, 5)))


def test_deterministic_methods_continue_a_sine():
    waves = [Series(np.sin(0.2 * np.arange(200) + phase)) for phase in np.linspace(0, 6, 8)]
    context, future = np.sin(0.2 * np.arange(120))[:, None], np.sin(0.2 * np.arange(120, 130))
    for method in (baselines.Havok(10, window=12, rank=3), baselines.EchoState(10, units=100)):
        samples = method.fit(waves, seed=0).forecast(context, 10, 20, seed=0)
        np.testing.assert_allclose(samples.mean(axis=0)[:, 0], future, atol=0.05)


def test_many_channels_are_refused_by_scalar_methods_and_taken_one_by_one(train):
    pairs = [Series(np.column_stack([s.values, -3 * s.values])) for s in train]
    with pytest.raises(LampertiError, match=r"PerChannel\(Autoregression"):
        baselines.Autoregression().fit(pairs, seed=0)
    model = baselines.PerChannel(baselines.Autoregression()).fit(pairs, seed=0)
    samples = model.forecast(pairs[0].values, 4, 1000, seed=0)
    assert samples.shape == (1000, 4, 2)
    np.testing.assert_allclose(samples.std(axis=0)[:, 1], 3 * samples.std(axis=0)[:, 0], rtol=0.15)


def test_echo_state_without_its_library_says_what_to_install(monkeypatch, train):
    monkeypatch.setattr("lamperti.baselines.echo_state.find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match=r"pip install lamperti\[baselines\]"):
        baselines.EchoState(5).fit(train, seed=0)
