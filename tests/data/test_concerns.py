"""What fit says before it trains: serious faults, one sentence each with what to do; nothing for clean data."""

import warnings

import numpy as np
import pytest

import lamperti as lp
from lamperti.data import Series, check, systems
from lamperti.data.bridging import tracks
from lamperti.data.checking.concerns import concerns, warn_of_concerns
from lamperti.data.checking.thinning import fastest_frequency, most_thinning
from lamperti.data.scaling import Scaler
from lamperti.train.build import choose

N = 900
SYSTEMS = [name for name in systems.__all__ if name[0].islower()]


def smooth(seed=0, n=N):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return np.sin(0.1 * t) + 0.3 * np.sin(0.237 * t) + 0.05 * rng.normal(size=n)


def codes(series):
    return [p.code for p in concerns([series])]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("size", [(60, 400), (1, 2000)])
def test_clean_data_of_every_system_gives_no_warning(name, size):
    made = getattr(systems, name)(*size, seed=2, observation_noise=0.1)
    assert concerns(made.series) == []


def test_one_outlier_is_told_with_its_share_of_the_sd():
    y = smooth()
    y[400] = 1e12
    (found,) = concerns([Series(y)])
    assert found.code == "outliers"
    assert found.message.startswith("1 value makes up 100.0% of the sd, the first 1e+12")


def test_spikes_of_a_signal_are_no_outliers():
    y = 0.02 * smooth()
    y[::45] += 5.0
    assert "outliers" not in codes(Series(y))


def test_steps_over_ten_orders_are_told_but_random_times_are_not():
    rng = np.random.default_rng(0)
    wild = np.cumsum(10 ** rng.uniform(-6, 4, N))
    assert codes(Series(smooth(), times=wild)) == ["steps"]
    assert codes(Series(smooth(), times=np.cumsum(rng.exponential(1.0, N)))) == []


def test_few_counts_are_told_and_many_are_not():
    rng = np.random.default_rng(0)
    rate = np.exp(0.5 * smooth())
    assert codes(Series(np.minimum(rng.poisson(rate), 8).astype(float))) == ["quantised"]
    assert codes(Series(rng.poisson(50 * rate).astype(float))) == []


def test_a_trend_is_told_with_what_to_do():
    (found,) = concerns([Series(smooth() + np.linspace(0, 20, N), names="co2")])
    assert (found.code, found.where) == ("trend", "co2")
    assert "rises over the whole record" in found.message
    assert "Forecasts go on as the data did so far" in found.message


def test_a_channel_that_counts_is_told_to_be_the_time_and_nothing_else():
    values = np.stack([1900.0 + np.arange(N), smooth()], axis=1)
    (found,) = concerns([Series(values, names=("clock", "level"))])
    assert (found.code, found.where) == ("time column", "clock")


def test_a_short_series_is_told():
    assert codes(Series(smooth()[::6][:60])) == ["short"]


def test_sharp_waves_are_never_thinned_away():
    t = np.arange(6000)
    slow = np.sin(2 * np.pi * t / 3000)[:, None]
    beats = np.exp(-0.5 * ((t % 500 - 250) / 2.0) ** 2)[:, None]  # 5 samples wide
    assert most_thinning([slow]) > 100
    assert most_thinning([slow + beats]) <= 4


def test_the_fastest_frequency_of_a_sine_is_its_own():
    y = np.sin(2 * np.pi * 0.05 * np.arange(4000))[:, None]
    np.testing.assert_allclose(fastest_frequency([y]), 0.05, atol=0.002)


def test_heavy_oversampling_is_told():
    (found,) = concerns([Series(np.sin(np.arange(20000) * 0.002) + np.sin(np.arange(20000) * 0.0047))])
    assert found.code == "oversampled"


def test_at_most_three_are_told_the_most_serious_first():
    rng = np.random.default_rng(0)
    bad = smooth()[:80]
    bad[40] = 1e12
    values = np.stack([bad, np.arange(80.0), rng.integers(0, 3, 80)], axis=1)
    times = np.cumsum(10 ** rng.uniform(-6, 4, 80))
    assert codes(Series(values, times=times)) == ["outliers", "time column", "steps"]


def test_fit_says_it_before_training():
    class _Stop(Exception):
        pass

    def stop(*_):
        raise _Stop

    y = smooth(n=300)
    y[100] = 1e12
    config = lp.ModelConfig(latent_dim=2, window=6, lag=2, n_inducing=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lamperti.fitting._learn", stop)
            with pytest.raises(_Stop):
                lp.fit(y, config)
    (said,) = caught
    assert issubclass(said.category, lp.LampertiWarning)
    assert "up 100.0% of the sd" in str(said.message)
    assert said.filename == __file__


def test_whatever_fit_says_check_lists():
    y = smooth() + np.linspace(0, 20, N)
    y[400] = 1e6
    data = Series(np.stack([y, np.arange(float(N))], axis=1))
    listed = {(p.code, p.where) for p in check(data).problems}
    assert {(p.code, p.where) for p in concerns([data])} <= listed


@pytest.mark.parametrize("kind", ["noise", "gaps", "outlier", "two channels"])
def test_check_suggests_what_fit_starts_from(kind):
    y, times = smooth(), np.arange(float(N))
    if kind == "noise":
        y = np.random.default_rng(1).normal(size=N)
    elif kind == "gaps":
        times[300:] += 40
        times[600:] += 500
    elif kind == "outlier":
        y[77] = 50.0
    else:
        y = np.stack([y, np.roll(y, 20) ** 2], axis=1)
    series = [Series(y, times=times)]
    config, _ = choose(lp.ModelConfig(), tracks(series, Scaler.from_series(series)))
    found = check(series).suggestion
    assert found is not None
    assert (found.lag, found.window, found.dimension) == (config.lag, config.window, config.latent_dim)


def test_nothing_is_said_of_clean_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_concerns([Series(smooth())])
