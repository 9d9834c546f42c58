"""The regularised autoregression and the few coordinates that stand for it."""

import numpy as np
import pytest

from lamperti.data import autoregressive as ar
from lamperti.data import linear_law
from lamperti.data.starts import choose_start


def _ar2(n, seed=0, a=(1.6, -0.8)):
    rng = np.random.default_rng(seed)
    y = np.zeros(n + 100)
    for k in range(2, len(y)):
        y[k] = a[0] * y[k - 1] + a[1] * y[k - 2] + rng.normal()
    y = y[100:]
    return ((y - y.mean()) / y.std())[:, None]


def _two_channels(n, seed=0):
    rng = np.random.default_rng(seed)
    A = np.array([[0.9, 0.2], [-0.3, 0.7]])
    y = np.zeros((n, 2))
    for k in range(1, n):
        y[k] = A @ y[k - 1] + rng.normal(size=2) * [1.0, 0.5]
    return (y - y.mean(axis=0)) / y.std(axis=0)


def _season(n, seed=0, slope=0.0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    y = np.sin(2 * np.pi * t / 12) + 0.4 * np.cos(2 * np.pi * t / 6) + slope * t + 0.1 * rng.normal(size=n)
    return ((y - y.mean()) / y.std())[:, None]


def test_a_small_ridge_is_least_squares():
    data = ar.Rows.of([_ar2(500)], 3, np.array([1]))
    X, t = data.regression(slice(None), 3, level_free=False)
    weights, intercept, taken = next(ar._ridges(X, t, 3, False))
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), t, rcond=None)[0]
    np.testing.assert_allclose(weights[0], exact[1:, 0], atol=1e-5)
    np.testing.assert_allclose(intercept, exact[0], atol=1e-6)
    assert taken == pytest.approx(3.0, abs=1e-3)


def test_the_law_of_a_long_record_is_the_true_one():
    fitted = ar.fit_autoregression([_ar2(20_000)])
    assert fitted is not None
    lags = fitted.weights[0, ::-1]
    np.testing.assert_allclose(lags[:2], [1.6, -0.8], atol=0.03)
    assert np.abs(lags[2:]).sum() < 0.2


def test_going_on_step_by_step_is_a_power_of_the_companion_matrix():
    rng = np.random.default_rng(1)
    weights, past, ahead = 0.3 * rng.normal(size=(2, 6)), rng.normal(size=(5, 6)), np.array([1, 3, 7])
    found = ar._iterate(weights, np.zeros(2), past, ahead)
    Phi = ar._companion(weights)
    exact = np.stack([past @ np.linalg.matrix_power(Phi, h).T[:, -2:] for h in ahead], axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-10)


def test_errors_of_predictions_are_those_of_a_first_order_autoregression():
    ahead = np.array([1, 2, 5, 20])
    _, errors = linear_law._predictors(np.array([[0.9]]), np.array([[2.0]]), ahead)
    np.testing.assert_allclose(errors[1:], 2.0 * (1 - 0.81**ahead) / (1 - 0.81), rtol=1e-12)


def test_a_short_record_has_the_noise_of_data_that_was_not_seen():
    """Of 40 white samples, a regression on many lags leaves less than there is."""
    rng = np.random.default_rng(8)
    inside, outside = [], []
    for _ in range(20):
        y = rng.normal(size=(40, 1))
        fitted = ar._best(ar.Rows.of([y], 10, np.array([1, 2, 3, 5])), [10], level_free=False)
        law = linear_law.reduce(fitted, [y])
        one_step = (law.C @ np.diag(law.Q) @ law.C.T)[0, 0]
        new = rng.normal(size=(2_000, 1))
        past = np.lib.stride_tricks.sliding_window_view(new[:-1, 0], 10)
        error = np.mean(
            (ar._iterate(fitted.weights, fitted.intercept, past, np.array([1]))[:, 0, 0] - new[10:, 0]) ** 2
        )
        inside.append(fitted.cov[0, 0] / error)
        outside.append(one_step / error)
    assert np.mean(inside) < 0.9 and 0.85 < np.mean(outside) < 1.3
    assert abs(np.log(np.mean(outside))) < abs(np.log(np.mean(inside)))


@pytest.mark.parametrize("y", [_ar2(800), _two_channels(800)], ids=["one channel", "two"])
def test_as_many_coordinates_as_the_window_has_samples_lose_nothing(y):
    P, W = y.shape[1], 4
    fitted = ar._best(ar.Rows.of([y], W, np.array([1, 2, 5, 12])), [W], level_free=False)
    law = linear_law.reduce(fitted, [y], W * P)
    past = np.stack([y[k - W : k].ravel() for k in (50, 300, 799)])
    exact = ar._iterate(fitted.weights, fitted.intercept, past, np.array([1, 2, 3, 4, 5]))
    x = (past - law.mean) @ law.B.T
    np.testing.assert_allclose(x @ law.C.T + law.c, past[:, -P:], atol=1e-6)
    for h in range(5):
        x = x @ law.F.T + law.b
        np.testing.assert_allclose(x @ law.C.T + law.c, exact[:, h], atol=1e-6)
    # the noise is that of the newest sample, as large as errors of unseen data are, and nothing else is random
    more = np.trace(law.C @ np.diag(law.Q) @ law.C.T) / np.trace(fitted.cov)
    assert 1.0 <= more < 1.1
    np.testing.assert_allclose(law.C @ np.diag(law.Q) @ law.C.T, more * fitted.cov, rtol=1e-4, atol=1e-6)
    assert np.sum(law.Q > 1e-6) == P


def test_few_coordinates_of_a_season_go_on_at_its_own_pace():
    y = _season(600)
    fitted = ar.fit_autoregression([y])
    assert fitted is not None
    law = linear_law.reduce(fitted, [y], 5)
    speeds = np.linalg.eigvals(law.F)
    slow = speeds[np.abs(speeds) > 0.95]
    periods = 2 * np.pi / np.abs(np.angle(slow[np.imag(slow) > 0]))
    assert np.abs(periods - 12).min() < 0.05 and np.abs(periods - 6).min() < 0.05


def test_coordinates_are_those_in_which_windows_are_white():
    y = _two_channels(3000)
    law = linear_law.reduce(ar.fit_autoregression([y]), [y])  # type: ignore[arg-type]
    windows = np.stack([y[k - law.window : k].ravel() for k in range(law.window, len(y) + 1)])
    np.testing.assert_allclose(np.cov((windows @ law.B.T).T, bias=True), np.eye(law.dimension), atol=1e-6)


def test_where_the_level_drops_out_all_of_a_forecast_moves_with_the_data():
    y = _season(200, slope=0.05)
    fitted = ar.fit_autoregression([y], level_free=True)
    assert fitted is not None and fitted.level_free
    past = y[-fitted.window :].ravel()[None]
    ahead = np.array([1, 5, 30])
    low, high = (ar._iterate(fitted.weights, fitted.intercept, past + by, ahead) for by in (0.0, 7.0))
    np.testing.assert_allclose(high - low, 7.0, rtol=1e-9)


def test_coefficients_on_values_are_those_on_differences_and_the_newest_sample():
    rng = np.random.default_rng(2)
    window, P = 4, 2
    w, y = rng.normal(size=(P, (window - 1) * P)), rng.normal(size=(window, P))
    levels = ar._of_levels(w, window, P)
    np.testing.assert_allclose(levels @ y.ravel(), y[-1] + w @ np.diff(y, axis=0).ravel(), rtol=1e-12)


def test_a_straight_rise_is_followed_without_the_level_and_a_noisy_mean_with_it():
    rng = np.random.default_rng(0)
    rise = np.cumsum(1.0 + 0.3 * rng.normal(size=200))[:, None]
    assert ar._level_drops_out([(rise - rise.mean()) / rise.std()])
    assert not ar._level_drops_out([_ar2(300)])


def test_what_is_predicted_is_not_learned_from():
    data = ar.Rows.of([_ar2(200), _ar2(150, seed=1)], 10, np.array([1, 4, 12]))
    for asked, apart in data.folds(10):
        first, last = data.place[asked[0]], data.place[asked[-1]]
        after = data.place[apart]
        targets, oldest = after + 1, after - 9
        assert not np.any((targets > first) & (targets <= last + 1))
        assert not np.any((oldest <= last) & (targets > last))


def test_long_windows_of_a_short_record_are_not_taken_for_good():
    rng = np.random.default_rng(3)
    y = rng.normal(size=(60, 2))
    fitted = ar.fit_autoregression([y])
    assert fitted is not None
    past = np.stack([rng.normal(size=fitted.window * 2) for _ in range(200)])
    predicted = ar._iterate(fitted.weights, fitted.intercept, past, np.array([1]))
    assert np.mean(predicted**2) < 0.15  # of noise nothing is predicted


def test_a_season_and_a_trend_are_a_linear_model_and_chaos_is_not():
    seasonal = choose_start([_season(150, slope=0.02)], closed_form=True, trending=True)
    assert seasonal.coordinates in ("autoregressive", "level-free") and "linear model" in seasonal.reason()
    x, chaos = 0.3, []
    for _ in range(400):
        x = 3.9 * x * (1 - x)
        chaos.append(x)
    y = np.array(chaos)[:, None]
    assert choose_start([(y - y.mean()) / y.std()], closed_form=True).coordinates in ("predictive", "components")
    assert choose_start([_season(150)], closed_form=False).coordinates in ("predictive", "components")


@pytest.mark.parametrize("n", [2, 5, 12, 20])
def test_very_short_records_have_no_linear_model(n):
    assert ar.fit_autoregression([_ar2(n)]) is None
