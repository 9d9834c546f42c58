"""What records show of themselves: short text, tables that escape what comes from outside, figures."""

import dataclasses
import inspect
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import fitted
import lamperti as lp

HOSTILE = "<script>alert('x')</script>"


def _forecast(names=("a", "b")):
    rng = np.random.default_rng(1)
    samples, states = rng.normal(size=(50, 7, len(names))), rng.normal(size=(50, 7, 3))
    return lp.Forecast(samples, states, np.arange(7.0), names, 0.5)


def _shown():
    f, series = _forecast(), fitted.data().series[0]
    return {
        "Series": series,
        "Forecast": f,
        "Simulation": lp.Simulation(f.samples[:3], f.states[:3], f.times, f.names),
        "Embedding": lp.embed(fitted.result(), series),
        "FitResult": fitted.result(),
        "Check": lp.check(series),
    }


@pytest.mark.parametrize("kind", ["Series", "Forecast", "Simulation", "Embedding", "FitResult", "Check"])
def test_a_record_shows_itself_in_a_line_and_in_a_table_without_arrays(kind):
    record = _shown()[kind]
    text, page = repr(record), record._repr_html_()
    assert text.startswith(kind) and "array" not in text and "\n" not in text and len(text) < 300
    assert page.startswith("<div><strong>") and "<table>" in page and "array" not in page and len(page) < 5000


def test_the_facts_of_a_forecast_are_its_size_channels_and_times():
    text = repr(_forecast())
    assert "50 futures of 7 steps" in text and "a, b" in text and "0 to 6" in text


def test_a_summary_is_shown_in_a_notebook_as_it_is_printed():
    summary = fitted.result().summary()
    assert "Latent stochastic differential equation" in summary._repr_html_() and "<pre" in summary._repr_html_()


def test_tags_in_names_are_shown_and_not_obeyed():
    series = lp.Series(np.random.default_rng(0).normal(size=(30, 1)), names=[HOSTILE])
    forecast = _forecast((HOSTILE,))
    result = dataclasses.replace(fitted.result(), names=(HOSTILE,))
    for record in (series, forecast, result, result.summary(), lp.check(series)):
        page = record._repr_html_()
        assert "<script" not in page and "&lt;script&gt;" in page, type(record)


def test_methods_of_a_result_are_the_public_functions():
    result, series = fitted.result(), fitted.data().series[0]
    options = {"horizon": 5, "n_samples": 4, "n_particles": 20, "seed": 3}
    np.testing.assert_array_equal(
        result.forecast(series, **options).samples, lp.forecast(result, series, **options).samples
    )
    few = {"n_steps": 6, "n_paths": 2, "seed": 4}
    np.testing.assert_array_equal(result.simulate(**few).samples, lp.simulate(result, **few).samples)
    np.testing.assert_array_equal(result.embed(series).mean, lp.embed(result, series).mean)


@pytest.mark.parametrize("kind", ["Series", "Forecast", "Simulation", "Embedding", "Check"])
def test_plot_draws_a_panel_for_each_channel_or_coordinate_that_a_notebook_can_show(kind):
    record = _shown()[kind]
    figure = record.plot()
    panels = {"Series": 1, "Forecast": 2, "Simulation": 2, "Embedding": 2, "Check": 4}[kind]  # curve and words, too
    assert isinstance(figure, Figure) and len(figure.axes) == panels
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_plotted_series_has_its_values_over_its_times():
    series = fitted.data().series[0]
    (line,) = series.plot().axes[0].lines
    np.testing.assert_array_equal(line.get_xdata(), series.times)
    np.testing.assert_array_equal(line.get_ydata(), series.values[:, 0])


def test_a_plotted_forecast_shows_the_series_before_it_and_what_followed():
    past, future = fitted.data().series[0].split(40)
    forecast = lp.forecast(fitted.result(), past, horizon=20, n_samples=8, n_particles=20)
    labels = [text.get_text() for text in forecast.plot(past, future).axes[0].get_legend().get_texts()]
    assert "data" in labels and "what followed" in labels
    alone = [text.get_text() for text in forecast.plot().axes[0].get_legend().get_texts()]
    assert "data" not in alone and "median" in alone


def test_a_check_keeps_its_series_out_of_its_dictionary():
    found = lp.check(fitted.data().series)
    assert len(found.recordings) == 4
    assert set(found.to_dict()) == {
        "ok", "series", "channels", "sampling", "time_unit", "problems", "repairs", "suggestion"
    }  # fmt: skip


def test_importing_lamperti_loads_no_figures():
    program = "import sys, lamperti; assert not {'matplotlib', 'lamperti.viz', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("config", [lp.ModelConfig, lp.FitConfig])
def test_every_option_is_described_in_the_help(config):
    text = inspect.getdoc(config)
    for name, field in config.model_fields.items():
        assert field.description, name
        assert f"{name}: {field.description}" in " ".join(text.split()), name
