"""Results as tables, datasets and figures."""

import dataclasses
import subprocess
import sys
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import fitted
import lamperti as lp
from lamperti.data.series import DATES


def test_the_summary_tells_data_model_training_and_noise():
    result = fitted.result()
    text = str(result.summary())
    assert repr(result.summary()) == text
    assert all(len(line) <= 92 for line in text.splitlines())
    for fact in ("4, 240 samples", "Latent dimension:", "window 6", "sigma-point", "all iterations done", "3 in"):
        assert fact in text
    noise = result.scaler.unscale_sd(np.sqrt(np.asarray(result.model.emission.noise)))[0]
    assert f"{noise:.3g}" in text
    g = result.diffusion(result.states[0])[0]
    assert f"{g[0]:.3g}" in text and f"{g[1]:.3g}" in text
    kept = result.history.records[result.history.best_iteration - 1]
    assert f"{kept.elbo:.4f}" in text and f"{kept.kl:.4f}" in text


def test_a_result_shows_itself_in_a_line_without_arrays():
    shown = repr(fitted.result())
    assert "summary()" in shown and "array" not in shown and "kept" in shown and len(shown) < 200


def test_an_embedding_is_a_table_by_time():
    e = lp.embed(fitted.result(), fitted.data().series[0])
    frame = e.to_dataframe()
    assert list(frame.columns) == ["x1", "x2", "cov_x1_x1", "cov_x1_x2", "cov_x2_x2"]
    np.testing.assert_array_equal(frame.index, e.times)
    np.testing.assert_array_equal(frame["cov_x1_x2"], e.cov[:, 0, 1])
    data = e.to_xarray()
    np.testing.assert_array_equal(data["cov"].sel(state="x1", other_state="x2"), e.cov[:, 0, 1])


def _forecast():
    rng = np.random.default_rng(1)
    return lp.Forecast(rng.normal(size=(50, 7, 2)), rng.normal(size=(50, 7, 3)), np.arange(7.0), ("a", "b"), 1.0)


def test_a_forecast_is_a_table_of_moments_and_a_dataset_of_futures():
    f = _forecast()
    frame = f.to_dataframe(level=0.5)
    assert list(frame.columns)[:5] == ["a_mean", "a_sd", "a_median", "a_lower", "a_upper"]
    np.testing.assert_array_equal(frame["b_upper"], f.interval(0.5)[1][:, 1])
    data = f.to_xarray()
    assert dict(data.sizes) == {"sample": 50, "time": 7, "channel": 2, "state": 3}
    np.testing.assert_array_equal(data["samples"].sel(channel="b"), f.samples[..., 1])


def test_an_interval_leaves_out_equal_tails_and_the_sd_is_that_of_a_sample():
    samples = np.random.default_rng(0).permutation(101.0 * np.arange(101))[:, None, None] / 101.0
    f = lp.Forecast(samples, samples, np.arange(1.0), ("a",), 1.0)
    assert [float(end[0, 0]) for end in f.interval(0.9)] == pytest.approx([5.0, 95.0])
    assert [float(end[0, 0]) for end in f.interval(0.5)] == pytest.approx([25.0, 75.0])
    assert float(f.sd[0, 0]) == pytest.approx(np.sqrt(np.sum((np.arange(101) - 50.0) ** 2) / 100))


@pytest.mark.parametrize("q", [1.5, -0.1, [0.5, 2.0], float("nan"), "half", None])
def test_a_quantile_that_is_no_share_is_refused(q):
    with pytest.raises(lp.ConfigError, match="between 0 and 1"):
        _forecast().quantile(q)


def test_one_path_has_no_spread_and_says_so_quietly():
    f = _forecast()
    one = lp.Forecast(f.samples[:1], f.states[:1], f.times, f.names, 1.0)
    assert np.isnan(one.sd).all() and np.isfinite(one.to_dataframe()["a_median"]).all()


def test_a_simulation_is_a_table_by_path_and_time():
    f = _forecast()
    s = lp.Simulation(f.samples[:3], f.states[:3], f.times, ("x1", "b"))
    frame = s.to_dataframe()
    assert frame.index.names == ["path", "time"] and len(frame) == 21
    assert list(frame.columns) == ["x1_observed", "b", "x1", "x2", "x3"]
    np.testing.assert_array_equal(frame.loc[2, "b"], s.samples[2, :, 1])
    assert s.to_xarray()["states"].dims == ("path", "time", "state")


def test_tables_of_a_dated_series_have_dates_and_units():
    f = _forecast()
    times = 1.7e9 + 600.0 * np.arange(7) + 0.25
    dated = dataclasses.replace(f, times=times, units=("mV", ""), time_unit=DATES)
    frame = dated.to_dataframe()
    assert frame.index[1] == pd.Timestamp("2023-11-14 22:23:20.25")
    assert frame.attrs == {"units": {"a": "mV"}}
    data = dated.to_xarray()
    assert data["time"].dtype.kind == "M" and data["unit"].values.tolist() == ["mV", ""]
    assert lp.Embedding(f.states[0], np.zeros((7, 3, 3)), times, DATES).to_dataframe().index.equals(frame.index)
    paths = lp.Simulation(f.samples, f.states, f.times, f.names, ("mV", "V"), "s")
    assert paths.to_dataframe().attrs == {"time_unit": "s", "units": {"a": "mV", "b": "V"}}
    assert paths.to_xarray().attrs == {"time_unit": "s"}
    far = dataclasses.replace(dated, times=1e11 + np.arange(7.0)).to_dataframe()  # beyond what nanoseconds reach
    assert far.index[0] == np.datetime64(10**11, "s")


def test_forecasts_of_a_dated_series_have_dates():
    """Of a model that was fitted to numbers, too: the dates are those of the series."""
    one = fitted.data().series[0]
    stamps = np.datetime64("2024-03-04T08:00", "us") + (one.times * 1e6).round().astype("timedelta64[us]")
    series = lp.Series(one.values, times=stamps)
    index = lp.forecast(fitted.result(), series, horizon=5, n_samples=4, n_particles=20).to_dataframe().index
    assert index[0] - pd.Timestamp(stamps[-1]) == pd.Timedelta("100ms")
    assert lp.embed(fitted.result(), series).to_dataframe().index[0] == pd.Timestamp("2024-03-04T08:00")


def test_the_history_is_a_table_by_iteration():
    result = fitted.result()
    frame = result.to_dataframe()
    np.testing.assert_array_equal(frame["elbo"], [r.elbo for r in result.history.records])
    assert frame.index.tolist() == [1, 2, 3]
    assert result.to_xarray()["validation"].shape == (3,)


def test_without_xarray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(lp.DependencyError, match="pip install xarray"):
        _forecast().to_xarray()
    with pytest.raises(lp.DependencyError, match="pip install xarray"):
        fitted.result().to_xarray()


def test_a_result_draws_its_figures_from_the_data_it_was_fitted_to(tmp_path):
    result = fitted.result()
    assert result.data == tuple(fitted.data().series)
    phase, training, drift = result.plot.phase_space(), result.plot.training(), result.plot.drift()
    assert all(isinstance(figure, Figure) for figure in (phase, training, drift))
    assert [axes.get_ylabel() for axes in drift.axes if axes.get_ylabel()] == ["drift", "diffusion"]
    fan = result.plot.forecast(horizon=10)
    assert "Forecast of 10 steps" in fan.get_suptitle()
    checks = result.plot.diagnostics()
    titles = [axes.get_title("left") for axes in checks.axes]
    assert "Increments of the states" in titles and "Coverage of forecasts" in titles
    for kind in ("png", "svg"):
        checks.savefig(tmp_path / f"checks.{kind}")
    assert (tmp_path / "checks.svg").read_text().lstrip().startswith("<?xml")
    with pytest.raises(lp.ConfigError, match="horizon must leave two samples of the 60"):
        result.plot.forecast(horizon=59)


def test_a_model_from_a_file_asks_for_the_data(tmp_path):
    lp.save(fitted.result(), tmp_path / "a.safetensors")
    loaded = lp.load(tmp_path / "a.safetensors")
    assert "not kept" in str(loaded.summary())
    with pytest.raises(lp.ConfigError, match="does not hold its data"):
        loaded.plot.forecast()


def test_importing_lamperti_loads_no_figure_library():
    code = "import sys, lamperti; sys.exit(bool({'matplotlib', 'plotly', 'pandas', 'xarray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_paths_that_run_away_are_told():
    result = fitted.result()
    with warnings.catch_warnings():
        warnings.simplefilter("error", lp.LampertiWarning)
        lp.simulate(result, n_steps=30, n_paths=5)
    wild = eqx.tree_at(lambda m: m.dynamics.mean.weight, result.model, 1e3 * jnp.eye(result.model.latent_dim))
    wild = eqx.tree_at(lambda m: m.dynamics.region, wild, None)  # nothing pulls it back
    runaway = dataclasses.replace(result, model=wild)
    with pytest.warns(lp.LampertiWarning, match=r"paths left the range of numbers.*\(5 of 5 paths\)"):
        lp.simulate(runaway, n_steps=300, n_paths=5)
    ahead, filtered = "Look fewer steps ahead", "particles agreed with the data"
    with pytest.warns(lp.LampertiWarning, match=ahead), pytest.warns(lp.LampertiWarning, match=filtered):
        lp.forecast(runaway, fitted.data().series[0], horizon=300, n_samples=20)
