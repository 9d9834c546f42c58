"""The report: one page that needs no network, obeys no name, and shows what the diagnostics found."""

import base64
import dataclasses
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.data.writing import write_csv
from lamperti.diagnostics import Effort
from lamperti.report import _spec, write_report

SMALL = Effort(origins=4, futures=40, horizon=5, pieces=2, paths=4, steps=50, starts=8)
HOSTILE = "<script>alert('flow')</script>\"><img src=x onerror=alert(1)>"
MOST_BYTES = 8_000_000


class Page(HTMLParser):
    """Elements with their attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.text, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            attrs, before = self.scripts[-1]
            self.scripts[-1] = (attrs, before + data)
        else:
            self.text.append(data)

    def named(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def hostile():
    """The small model and its data, under a name that would like to be obeyed."""
    result = dataclasses.replace(fitted.result(), names=(HOSTILE,))
    return result, [lp.Series(s.values[:, 0], times=s.times, names=HOSTILE) for s in fitted.data().series]


@pytest.fixture(scope="module")
def made(hostile, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    found = write_report(*hostile, path, title=HOSTILE, origin={"Data": HOSTILE}, effort=SMALL)
    return path, found


@pytest.fixture(scope="module")
def page(made):
    return Page(made[0].read_text(encoding="utf-8"))


def test_nothing_is_asked_of_the_network(made, page):
    for tag, attrs in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "audio", "video", "base", "form")
        assert "src" not in attrs and not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith(("#", "data:,"))
    text = made[0].read_text(encoding="utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in style and "@import" not in style
    assert made[0].stat().st_size <= MOST_BYTES


def test_only_the_two_scripts_of_the_page_may_run(page):
    (policy,) = [attrs["content"] for attrs in page.named("meta") if "http-equiv" in attrs]
    assert "default-src 'none'" in policy and "script-src 'unsafe-inline'" not in policy
    running = [text for attrs, text in page.scripts if attrs.get("type") != "application/json"]
    assert len(running) == 2
    for text in running:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_names_are_shown_and_not_obeyed(made, page):
    """Case 57."""
    text = made[0].read_text(encoding="utf-8")
    assert "<script>alert" not in text and "<img" not in text
    assert HOSTILE in "".join(page.text)
    assert html.escape(HOSTILE) in text
    specs = [json.loads(data) for attrs, data in page.scripts if attrs.get("type") == "application/json"]
    assert "<script" not in json.dumps(specs) and "<img" not in json.dumps(specs)


def test_every_figure_has_its_data_and_is_valid(page):
    import plotly.graph_objects as go

    places = [attrs["id"] for attrs in page.named("div") if attrs.get("class") == "plot"]
    expected = {"training", "phase-planes", "drift", "diffusion", "fan-1", "calibration", "free-run-1", "statistics-1"}
    assert set(places) == expected | {"residuals-increments", "residuals-one-step"}
    data = {attrs["id"]: text for attrs, text in page.scripts if "id" in attrs}
    for place in places:
        figure = go.Figure(json.loads(data[f"{place}-data"]))  # refuses properties that do not exist
        assert len(figure.data) > 0


def test_the_summary_comes_first_with_every_caveat(made, page):
    sections = [attrs["id"] for attrs in page.named("section")]
    assert sections[0] == "summary" and {"data", "space", "forecasts", "residuals", "reproduce"} <= set(sections)
    text = "".join(page.text)
    assert made[1].caveats
    assert all(caveat.text in text for caveat in made[1].caveats)
    assert f"{made[1].lyapunov.mean:.4g}" in text
    assert f"{made[1].forecasts.crps[0, 0]:.4g}" in text
    assert "[fit]" in text and "max_iterations = 3" in text and f"lamperti {lp.__version__}" in text


def test_three_dimensions_are_shown_in_space():
    import plotly.graph_objects as go

    from lamperti.data.scaling import Scaler
    from lamperti.report import space
    from lamperti.results import Config, Embedding
    from lamperti.train.history import History

    series, config = fitted.data().series, fitted.MODEL.model_copy(update={"latent_dim": 3})
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    result = lp.FitResult(
        lp.build(series, config), History(), Config(config, fitted.FIT), Scaler.from_series(series), ("y",), x
    )
    embedding = Embedding(x, np.tile(0.01 * np.eye(3), (50, 1, 1)), np.arange(50.0))
    escaping = np.concatenate([x, np.full((5, 3), 1e6)])
    in_space, planes = space.phase_space(result, embedding, escaping)
    kinds = [trace["type"] for trace in in_space.traces]
    assert kinds.count("scatter3d") == 3 and kinds.count("cone") == 1
    assert len(in_space.traces[0]["x"]) == 50
    for spec in (in_space, planes):
        go.Figure({"data": spec.traces, "layout": spec.layout})


def test_numbers_of_figures_are_short_and_finite():
    assert _spec.numbers([1.23456789, np.nan, np.inf, -2e-9]) == [1.2346, None, None, -2e-09]
    assert _spec.moments(np.array([1821.0, 1934.5]), "") == [1821.0, 1934.5]
    assert _spec.moments(np.array([86400.5]), lp.data.series.DATES) == ["1970-01-02T00:00:00.500"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    series = fitted.data().series
    columns = {"time": np.concatenate([s.times for s in series]), "y": np.concatenate([s.values[:, 0] for s in series])}
    write_csv(folder / "data.csv", columns | {"who": np.repeat(np.arange(4), 60)})
    lp.save(fitted.result(), folder / "model.safetensors")
    return folder


def test_the_command_writes_the_report_beside_the_model(place, capsys, monkeypatch):
    monkeypatch.setattr("lamperti.report.Effort", lambda: SMALL)
    assert main(["report", str(place), str(place / "data.csv"), "--id", "who"]) == 0
    out = capsys.readouterr().out
    assert "report.html: " in out and "The latent dimension" in out
    text = (place / "report.html").read_text(encoding="utf-8")
    assert hashlib.sha256((place / "data.csv").read_bytes()).hexdigest() in text
    assert main(["report", str(place), str(place / "data.csv"), "--out", str(place / "data.csv")]) == 2
    assert main(["report", str(place)]) == 2  # a folder with a model and no more
    assert "does not say where its data came from. Give DATA." in capsys.readouterr().err


def test_evaluate_scores_what_was_held_out(place, capsys):
    command = ["evaluate", str(place), str(place / "data.csv"), "--id", "who", "--origins", "4", "--samples", "40"]
    assert main([*command, "--horizon", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"] == "validation" and found["origins"] == 4
    rows = found["channels"]["y"]
    assert [row["steps"] for row in rows] == [1, 2, 3, 5]
    assert all(row["crps"] > 0 and row["climatology"] > 0 and 0 <= row["coverage_90"] <= 1 for row in rows)
    assert main([*command, "--horizon", "5"]) == 0
    assert "held-out part" in capsys.readouterr().out
    assert main([*command, "--horizon", "0"]) == 2
    assert "--horizon must be at least 1" in capsys.readouterr().err


def test_without_plotly_the_error_says_what_to_install(hostile, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly.offline", None)
    with pytest.raises(lp.DependencyError, match="pip install plotly"):
        write_report(*hostile, tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
