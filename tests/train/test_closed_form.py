"""Linear models in closed form, and when they are taken."""

import warnings

import numpy as np
import pytest

import lamperti as lp
from lamperti.data import autoregressive as ar
from lamperti.data import linear_law
from lamperti.data.bridging import tracks
from lamperti.data.holding import Judged
from lamperti.data.scaling import Scaler
from lamperti.data.windows import interpolate
from lamperti.prepared import prepare
from lamperti.train.bounded import bounded
from lamperti.train.build import build_model
from lamperti.train.compare import Gain, compare_forecasts
from lamperti.train.fitted import Fitted, noise_sds
from lamperti.train.noise_scale import rescale_noise

CLOSED = lp.ModelConfig(coordinates="autoregressive")


def seasonal(n=150, slope=0.3, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return lp.Series(100.0 + slope * t + 5 * np.sin(2 * np.pi * t / 12) + 0.5 * rng.normal(size=n))


def wandering(n, tails=None, seed=0):
    """A first-order autoregression, with normal innovations or those of a t distribution."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=n) if tails is None else rng.standard_t(tails, size=n)
    y = np.zeros(n)
    for k in range(1, n):
        y[k] = 0.9 * y[k - 1] + e[k]
    return lp.Series(y)


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        return lp.fit(seasonal(), progress=False)


def test_a_short_record_with_a_season_and_a_trend_is_a_linear_model_without_training(result):
    assert result.config.model.coordinates in ("autoregressive", "level-free")
    assert result.history.status == "closed form" and not result.history.records
    assert result.config.fit.compare_linear is False
    assert "linear model" in result.dimensions.reason
    assert "closed form" in str(result.summary())


def test_its_forecast_goes_on_with_the_season_and_the_trend(result):
    longer = seasonal(180)
    told = lp.forecast(result, longer[:150], horizon=24, n_samples=400)
    truth = 100.0 + 0.3 * np.arange(150, 174) + 5 * np.sin(2 * np.pi * np.arange(150, 174) / 12)
    assert np.sqrt(np.mean((told.mean[:, 0] - truth) ** 2)) < 1.0
    low, high = told.interval(0.9)
    assert 0.7 <= np.mean((longer.values[150:174] >= low) & (longer.values[150:174] <= high)) <= 1.0


def test_forecasts_have_the_law_of_the_autoregression_behind_them():
    """Mean and variance at each horizon by the companion matrix, without any of the library's filters."""
    series = wandering(3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        fit = lp.FitConfig(validation_fraction=0.0)
        found = lp.fit(series, model=CLOSED.model_copy(update={"bounded": False}), fit=fit, progress=False)
    (track,) = tracks([series], Scaler.from_series([series]))
    y = interpolate(track)
    law = ar.fit_autoregression([y], window=found.config.model.window)
    assert law is not None
    n, ahead = 20_000, np.array([1, 2, 5, 10])
    told = lp.forecast(found, series, horizon=10, n_samples=n, drift_uncertainty=False)
    z = found.scaler.values(told.samples)[:, ahead - 1, 0]
    exact = ar._iterate(law.weights, law.intercept, y[-law.window :].ravel()[None], ahead)[0, :, 0]
    variance = linear_law._predictors(law.companion, law.cov, ahead)[1][1:]
    assert np.all(np.abs(z.mean(axis=0) - exact) < 5 * np.sqrt(variance / n) + 0.02)
    np.testing.assert_allclose(z.var(axis=0), variance, rtol=0.06)


def test_a_short_record_says_so_in_its_intervals():
    """Slopes that few samples tell are drawn: the same law from fewer samples is vaguer further ahead."""
    spread = []
    for n in (60, 3000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lp.LampertiWarning)
            fit = lp.FitConfig(validation_fraction=0.0)
            found = lp.fit(wandering(n, seed=4), model=CLOSED, fit=fit, progress=False)
        sds = [
            lp.forecast(found, wandering(200, seed=9), horizon=5, n_samples=4000, drift_uncertainty=u).sd[-1, 0]
            for u in (True, False)
        ]
        spread.append(sds[0] / sds[1])
    assert spread[0] > 1.02 * spread[1] and spread[1] < 1.05


def test_it_is_saved_and_loaded_as_it_is(result, tmp_path):
    lp.save(result, tmp_path / "linear.safetensors")
    again = lp.load(tmp_path / "linear.safetensors")
    assert again.config.model == result.config.model
    one, two = (lp.forecast(r, seasonal(), horizon=12, n_samples=50, seed=3).samples for r in (result, again))
    np.testing.assert_array_equal(one, two)


def test_a_run_of_it_is_resumed_to_the_same_model(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        first = lp.fit(seasonal(), run=tmp_path / "run", progress=False)
        again = lp.resume(tmp_path / "run", seasonal(), progress=False)
    one, two = (lp.forecast(r, seasonal(), horizon=12, n_samples=50, seed=3).samples for r in (first, again))
    np.testing.assert_array_equal(one, two)


def test_a_kernel_or_an_encoder_of_its_own_is_refused_with_the_way_out():
    for options in ({"kernel": "se"}, {"encoder": "conv-gru"}):
        with pytest.raises(lp.ConfigError, match=r"is a linear model.*leave both out"):
            lp.fit(seasonal(), model=lp.ModelConfig(coordinates="autoregressive", **options), progress=False)
    with pytest.raises(lp.SeriesError, match=r"too short for coordinates"):
        lp.fit(wandering(20), model=CLOSED, progress=False)


def test_who_asks_for_a_dimension_gets_it_and_who_asks_for_a_kernel_gets_a_training():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        asked = prepare([seasonal()], lp.ModelConfig(latent_dim=5), lp.FitConfig())
        kernel = prepare([seasonal()], lp.ModelConfig(kernel="se"), lp.FitConfig())
    assert asked.config.model.latent_dim == 5 and asked.config.model.coordinates in ("autoregressive", "level-free")
    assert kernel.config.model.coordinates in ("components", "predictive")
    assert not asked.config.fit.compare_linear and not kernel.config.fit.compare_linear


def _linear(series):
    prepared = prepare([series], CLOSED, lp.FitConfig())
    return prepared, build_model(prepared.config.model, prepared.training, seed=0)


def test_noise_of_heavy_tails_counts_for_less_and_normal_noise_for_what_it_is():
    for tails, low, high in ((None, 0.7, 1.5), (2.0, 0.02, 0.6)):
        prepared, model = _linear(wandering(6000, tails))
        scaled = rescale_noise(model, prepared.to_forecast(model.encoder.lead), seed=0)
        ratio = np.asarray(noise_sds(scaled) / noise_sds(model)) ** 2
        assert np.all((ratio > low) & (ratio < high))


def test_of_few_segments_the_noise_stays_as_it_is():
    prepared, model = _linear(wandering(400, 2.0))
    assert rescale_noise(model, prepared.to_forecast(model.encoder.lead), seed=0) is model


def test_a_model_is_no_better_than_itself_and_worse_with_ten_times_the_noise():
    prepared, model = _linear(wandering(4000))
    loud = bounded(model, prepared.batch(model.encoder.lead))
    gain = compare_forecasts(model, model, [*map(Judged, prepared.training)], seed=0)
    assert gain is not None and gain.share == 0.0 and not gain.clearly(0.02)
    values = Fitted.of(loud)
    loud = values._replace(g=values.g + np.log(100.0)).put_into(loud)
    gain = compare_forecasts(loud, model, [*map(Judged, prepared.training)], seed=0)
    assert gain is not None and gain.share > 0.3 and gain.clearly(0.02)
    assert compare_forecasts(model, model, [], seed=0) is None


def test_a_gain_is_clear_beyond_its_standard_error_and_what_is_noticed():
    assert Gain(0.05, 0.02).clearly(0.02)
    assert not Gain(0.05, 0.06).clearly(0.02) and not Gain(0.01, 0.001).clearly(0.02)
