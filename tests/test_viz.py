"""Figures show what they say they show, without windows or global state."""

import dataclasses
import subprocess
import sys

import matplotlib.collections as collections
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import fitted
import lamperti as lp
from lamperti import viz
from lamperti.config import Config
from lamperti.data.scaling import Scaler
from lamperti.train.history import History


def _untrained(dim):
    """A model at its start, dressed as a result."""
    series, config = fitted.data().series, fitted.MODEL.model_copy(update={"latent_dim": dim})
    states = np.random.default_rng(0).normal(size=(50, dim))
    model = lp.build(series, config)
    scaler = Scaler.from_series(series)
    return lp.FitResult(model, History(), Config(config, fitted.FIT), scaler, series[0].names, states)


def _written(figure, tmp_path):
    assert isinstance(figure, Figure)
    viz.write_png(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    return figure


def test_the_phase_plane_shows_means_ellipses_path_inputs_and_arrows(tmp_path):
    result, series = fitted.result(), fitted.data().series[0]
    axes = _written(viz.phase_space(result, series), tmp_path).axes[0]
    (arrows,) = [c for c in axes.collections if isinstance(c, Quiver)]
    points = arrows.get_offsets()
    drift, _ = result.drift(np.asarray(points))
    shown = np.stack([arrows.U, arrows.V], axis=1)
    cosine = np.sum(drift * shown, axis=1) / np.linalg.norm(drift, axis=1) / np.linalg.norm(shown, axis=1)
    np.testing.assert_allclose(cosine, 1.0, atol=1e-9)
    (ellipses,) = [c for c in axes.collections if isinstance(c, collections.EllipseCollection)]
    np.testing.assert_allclose(ellipses.get_offsets(), lp.embed(result, series).mean)
    labels = [line.get_label() for line in axes.lines]
    assert "free-running path" in labels
    inputs = axes.lines[labels.index("inducing inputs")]
    np.testing.assert_array_equal(inputs.get_xdata(), result.model.dynamics.Z[:, 0])
    (dots,) = [c for c in axes.collections if isinstance(c, collections.PathCollection)]
    assert len(dots.get_offsets()) == len(series)


def test_ellipses_hold_two_standard_deviations():
    result, series = fitted.result(), fitted.data().series[0]
    axes = viz.phase_space(result, series).axes[0]
    (ellipses,) = [c for c in axes.collections if isinstance(c, collections.EllipseCollection)]
    variances = np.linalg.eigvalsh(lp.embed(result, series).cov)
    np.testing.assert_allclose(ellipses.get_widths() / 4.0, np.sqrt(variances[:, 1]))
    np.testing.assert_allclose(ellipses.get_heights() / 4.0, np.sqrt(variances[:, 0]))


@pytest.mark.parametrize(("dim", "n_axes"), [(1, 2), (4, 5)])
def test_other_dimensions_have_panels_of_their_own(dim, n_axes, tmp_path):
    figure = _written(viz.phase_space(_untrained(dim), fitted.data().series[0]), tmp_path)
    assert len(figure.axes) == n_axes


def _forecast(n_channels=1):
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(64, 20, n_channels))
    names = ("y",) if n_channels == 1 else tuple(f"y{p}" for p in range(n_channels))
    return lp.Forecast(samples, rng.normal(size=(64, 20, 2)), 50.0 + np.arange(20), names, 1.0)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_a_fan_has_a_panel_a_channel_and_the_median(n_channels, tmp_path):
    forecast = _forecast(n_channels)
    values = np.random.default_rng(2).normal(size=(70, n_channels))
    values[5] = np.nan
    past, future = lp.Series(values, missing="nan").split(50)
    figure = _written(viz.forecast_fan(forecast, past, future), tmp_path)
    assert len(figure.axes) == n_channels
    for p, axes in enumerate(figure.axes):
        (median,) = [line for line in axes.lines if line.get_label() == "median"]
        np.testing.assert_array_equal(median.get_ydata(), forecast.quantile(0.5)[:, p])
        assert "what followed" in [line.get_label() for line in axes.lines]


def test_a_fan_of_dated_data_has_dates_units_and_a_title_beside_its_legend(tmp_path):
    stamps = np.datetime64("2025-05-03T09:00") + np.arange(70) * np.timedelta64(500, "ms")
    past, future = lp.Series(np.random.default_rng(2).normal(size=70), times=stamps, units=["mmHg"]).split(50)
    figure = _written(viz.forecast_fan(dataclasses.replace(_forecast(), times=future.times), past, future), tmp_path)
    (axes,) = figure.axes
    (median,) = [line for line in axes.lines if line.get_label() == "median"]
    np.testing.assert_array_equal(median.get_xdata(), stamps[50:])
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("y [mmHg]", "time (UTC)")
    assert "2025-May-03" in axes.xaxis.get_offset_text().get_text()
    title, key = figure.texts[0].get_window_extent(), axes.get_legend().get_window_extent()
    assert not title.overlaps(key) and "Forecast of 20 steps" in figure.get_suptitle()


def test_an_escaped_path_does_not_stretch_the_axes(tmp_path):
    paths = lp.simulate(fitted.result(), n_steps=60, n_paths=4)
    series = fitted.data().series
    wild = paths.samples.copy()
    wild[0, 30:] = 1e9
    wild[1, 30:] = np.nan
    figure = _written(viz.free_run(dataclasses.replace(paths, samples=wild), series), tmp_path)
    largest = max(np.abs(s.values).max() for s in series)
    assert all(max(np.abs(axes.get_ylim())) < 2 * largest for axes in figure.axes)


def test_free_run_refuses_a_channel_that_is_not_there():
    paths = lp.simulate(fitted.result(), n_steps=60, n_paths=4)
    with pytest.raises(lp.ConfigError, match="channel must be 0 to 0; got 1"):
        viz.free_run(paths, fitted.data().series[0], channel=1)


def test_training_shows_the_bound_and_its_terms(tmp_path):
    history = fitted.result().history
    bound, terms = _written(viz.training(history), tmp_path).axes
    np.testing.assert_array_equal(bound.lines[0].get_ydata(), [r.elbo for r in history.records])
    total = np.sum([line.get_ydata() for line in terms.lines], axis=0)
    np.testing.assert_allclose(total, [r.elbo for r in history.records], rtol=1e-9)
    with pytest.raises(lp.ConfigError, match="no records"):
        viz.training(History())


def test_figures_leave_pyplot_alone():
    code = "import sys; from lamperti import viz; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
