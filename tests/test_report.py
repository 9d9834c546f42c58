"""The report: one page that needs no network, obeys no name, and shows what the diagnostics found."""

import base64
import dataclasses
import hashlib
import html
import json
import re
import shutil
import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.cli._remembered import recording
from lamperti.cli._source import Source
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.writing import write_csv
from lamperti.diagnostics import Effort
from lamperti.diagnostics.held_out import Fan
from lamperti.report import _spec, charts, sections, write_report
from lamperti.report.arrows import arrows_of, shafts
from lamperti.report.recordings import thinned
from lamperti.runs.folder import new_run
from lamperti.train.history import EventKind

report_code = sys.modules["lamperti.cli.report"]

SMALL = Effort(origins=4, futures=40, horizon=5, pieces=2, paths=4, steps=50, starts=8)
HOSTILE = "<script>alert('flow')</script>\"><img src=x onerror=alert(1)>"
UNIT = "<b onclick=alert(2)>mV</b>"
LABEL = "<svg onload=alert(3)>"
FILE = "<img src=x onerror=alert(4)>.csv"
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
    chosen = DimensionCurve(2, ((1, 0.5, 0.02), (2, 0.25, 0.01)), f"2 latent coordinates of {LABEL}.")
    result = dataclasses.replace(fitted.result(), names=(HOSTILE,), units=(UNIT,), dimensions=chosen)
    series = [lp.Series(s.values[:, 0], times=s.times, names=HOSTILE, units=UNIT) for s in fitted.data().series]
    return result, [one._replace(label=LABEL, repairs=(f"{LABEL} was mended",)) for one in series]


@pytest.fixture(scope="module")
def made(hostile, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    found = write_report(*hostile, path, title=HOSTILE, origin={"Data": FILE}, effort=SMALL)
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
    """Case 57: names, units, labels of series, repairs and names of files."""
    text = made[0].read_text(encoding="utf-8")
    specs = [json.loads(data) for attrs, data in page.scripts if attrs.get("type") == "application/json"]
    shown = "".join(page.text)
    for foreign in (HOSTILE, UNIT, LABEL, FILE):
        assert foreign in shown and html.escape(foreign) in text
        assert foreign not in text and foreign not in json.dumps(specs)
    assert not any(tag in json.dumps(specs) for tag in ("<script", "<img", "<svg", "<b onclick"))


def test_every_figure_has_its_data_and_is_valid(page):
    import plotly.graph_objects as go

    places = [attrs["id"] for attrs in page.named("div") if attrs.get("class") == "plot"]
    expected = {"training", "phase-planes", "drift", "diffusion", "fan-1", "calibration", "free-run-1", "statistics-1"}
    assert set(places) == expected | {"recordings", "dimensions", "residuals-increments", "residuals-one-step"}
    assert places[0] == "recordings"
    data = {attrs["id"]: text for attrs, text in page.scripts if "id" in attrs}
    for place in places:
        figure = go.Figure(json.loads(data[f"{place}-data"]))  # refuses properties that do not exist
        assert len(figure.data) > 0


def test_the_summary_comes_first_with_every_caveat(made, page):
    sections = [attrs["id"] for attrs in page.named("section")]
    assert sections[0] == "summary" and {"data", "space", "forecasts", "residuals", "reproduce"} <= set(sections)
    text = "".join(page.text)
    assert text.index(made[1].verdict.sentence) < text.index(made[1].caveats[0].text)
    assert all(caveat.text in text for caveat in made[1].caveats)
    assert f"{made[1].lyapunov.mean:.4g}" in text
    assert f"{made[1].forecasts.crps[0, 0]:.4g}" in text
    assert "[fit]" in text and "max_iterations = 3" in text and f"lamperti {lp.__version__}" in text


def test_three_dimensions_are_shown_in_space():
    import plotly.graph_objects as go

    from lamperti.config import Config
    from lamperti.data.scaling import Scaler
    from lamperti.report import space
    from lamperti.results import Embedding
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
    assert kinds.count("scatter3d") == 4
    assert len(in_space.traces[0]["x"]) == 50
    for spec in (in_space, planes):
        go.Figure({"data": spec.traces, "layout": spec.layout})


def test_every_event_of_the_guard_is_shown_with_and_without_records():
    counts = dict(zip(get_args(EventKind), (11, 12, 13, 14), strict=True))
    for records in (fitted.result().history.records, []):
        history = dataclasses.replace(fitted.result().history, records=records, events=[], status="terminated")
        for k, (kind, count) in enumerate(counts.items()):
            history.note(40 + k, kind, count)  # after the last record
        text = sections.training(dataclasses.replace(fitted.result(), history=history))
        assert all(f"<td>{n}, first at iteration {40 + k}</td>" in text for k, n in enumerate(counts.values()))
        assert "asked to end (SIGTERM)" in text


def test_the_view_in_space_is_that_of_the_data_whatever_the_inducing_inputs():
    from lamperti.report import space

    rng = np.random.default_rng(0)
    states = rng.normal(size=(200, 3))
    Z = np.concatenate([states[:5], [[50.0, 0.0, 0.0]]])
    model = SimpleNamespace(latent_dim=3, dynamics=SimpleNamespace(Z=Z))
    result = SimpleNamespace(model=model, states=states, drift=lambda x: (-x, 0.1 * np.ones_like(x)))
    embedding = lp.Embedding(states, np.zeros((200, 3, 3)), np.arange(200.0))
    spec = space._in_space(result, embedding, states)
    for key in "xyz":
        low, high = spec.layout["scene"][f"{key}axis"]["range"]
        assert -5 < low < -2 and 2 < high < 5
    inputs = next(trace for trace in spec.traces if trace["name"] == "inducing inputs")
    assert len(inputs["x"]) == 5


@pytest.mark.parametrize("dim", [2, 3])
def test_arrows_point_along_the_drift_and_stand_apart(dim):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(300, dim))
    turn = np.eye(dim)[::-1]
    result = SimpleNamespace(states=states, drift=lambda x: (x @ turn, np.ones_like(x)))
    arrows = arrows_of(result, 40)
    ranges = np.arange(1.0, dim + 1)
    for (foot, tip, *_), place, drift in zip(shafts(*arrows[:2], ranges), arrows.places, arrows.drift, strict=True):
        np.testing.assert_allclose(foot, place)
        cosine = (tip - foot) @ drift / np.linalg.norm(tip - foot) / np.linalg.norm(drift)
        assert cosine == pytest.approx(1.0)
    apart = np.linalg.norm(arrows.places[:, None] - arrows.places, axis=-1) + 10 * np.eye(40)
    thinned_evenly = np.linalg.norm(states[:40, None] - states[:40], axis=-1) + 10 * np.eye(40)
    assert apart.min() > 3 * thinned_evenly.min()


def test_training_data_is_shaded_up_to_its_last_sample():
    series = fitted.data().series[0]
    past, future = series.split(40)
    samples = np.random.default_rng(0).normal(size=(30, 20, 1))
    forecast = lp.Forecast(samples, np.zeros((30, 20, 2)), future.times, series.names, 1.0)
    check = SimpleNamespace(names=series.names, horizons=20, fans=())
    for until, ends in ((float(series.times[24]), [0.0, 2.4]), (99.0, [0.0, 3.9]), (None, None)):
        check.fans = (Fan(forecast, past, future, until),)
        spec = charts._fan(check, 0)
        assert [[s["x0"], s["x1"]] for s in spec.layout["shapes"]] == ([] if ends is None else [ends])
        assert ("Shaded" in spec.caption) == (ends is not None)


def test_a_long_recording_is_drawn_with_its_highest_and_lowest_values_and_its_gaps():
    values = np.random.default_rng(0).normal(size=50_000)
    values[[100, 40_000]] = [30.0, -30.0]
    values[20_000:20_500] = np.nan
    rows = thinned(values, 500)
    assert len(rows) <= 1500 and {100, 40_000} <= set(rows) and np.isnan(values[rows]).any()
    np.testing.assert_array_equal(thinned(values[:900], 500), np.arange(900))


def test_one_dimension_is_shown_over_its_dates():
    from lamperti.report import space

    times = 1.7e9 + np.arange(50.0)
    embedding = lp.Embedding(np.zeros((50, 1)), np.ones((50, 1, 1)), times, lp.data.series.DATES)
    shown = space._course(embedding).traces[1]["x"]
    assert len(set(shown)) == 50 and shown[1] == "2023-11-14T22:13:21.000"


def test_the_data_is_told_with_dates_and_its_first_gaps():
    start = np.datetime64("2024-03-04T08:00", "s")
    steps = np.arange(100)
    stamps = start + 600 * np.delete(steps, np.arange(5, 95, 9)).astype("timedelta64[s]")
    one = lp.Series(np.sin(np.arange(len(stamps))), times=stamps)
    for data in ([one], [one, one]):
        found = SimpleNamespace(check=lp.check(data), samples=len(one) * len(data))
        text = sections.data(found)
        assert "2024-03-04 08:00:00 UTC" in text and "2024-03-05 00:30:00 UTC" in text
        assert "<td>2024-03-04 08:40:00 UTC</td><td>2024-03-04 09:00:00 UTC</td><td>1</td>" in text
        assert text.count("UTC</td><td>1</td></tr>") == 8 and f"… and {10 * len(data) - 8} more." in text


def test_the_report_says_how_to_make_the_run_again(tmp_path):
    data = tmp_path / "my file.csv"
    data.write_text("when,y\n0,1\n")
    origin = {"path": str(data), "options": {"time": "when", "missing": ["nan"], "sort": False}}
    series = fitted.data().series
    with new_run(tmp_path / "run", overwrite=False) as folder:
        folder.begin(fitted.result().config, series, fitted.result().model, origin)
    file = recording(tmp_path / "run", None, Source())
    rows = report_code._origin(tmp_path / "run", None, file, series, 3)
    assert rows["Fit"].startswith(f"lamperti fit '{data}' --time=when --missing=nan --config config.toml")
    assert rows["Report"] == f"lamperti report {tmp_path / 'run'} --seed 3"
    assert rows["Fingerprint of the data"].endswith("that of the training data")
    assert ", not that" in report_code._origin(tmp_path / "run", None, file, series[:1], 0)["Fingerprint of the data"]


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
    shutil.copy(place / "data.csv", place / FILE)
    assert main(["report", str(place), str(place / FILE), "--id", "who", "--units", f"y={UNIT}", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "report.html: " not in out and "with so few, expect the model to be vague" in out
    text = (place / "report.html").read_text(encoding="utf-8")
    assert hashlib.sha256((place / "data.csv").read_bytes()).hexdigest() in text
    assert html.escape(FILE) in text and html.escape(UNIT) in text and FILE not in text and UNIT not in text
    assert main(["report", str(place), str(place / "data.csv"), "--id", "who", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["out"] == str(place / "report.html") and said["bytes"] > 1e6
    assert "few samples" in [caveat["code"] for caveat in said["caveats"]]
    assert main(["report", str(place), str(place / "data.csv"), "--out", str(place / "data.csv")]) == 2
    assert main(["report", str(place)]) == 2  # a folder with a model and no more
    assert "does not say where its data came from. Give DATA." in capsys.readouterr().err


def test_evaluate_scores_what_was_held_out(place, capsys, monkeypatch):
    command = ["evaluate", str(place), str(place / "data.csv"), "--id", "who", "--origins", "4", "--samples", "40"]
    assert main([*command, "--horizon", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"] == "validation" and found["origins"] == 4
    rows = found["channels"]["y"]
    assert [row["steps"] for row in rows] == [1, 2, 3, 5] and {row["values"] for row in rows} == {3, 4}
    assert found["verdict"]["kind"] == "unknown" and "too little data was held out" in found["verdict"]["sentence"]
    assert all(row["crps"] > 0 and row["climatology"] > 0 and 0 <= row["coverage_90"] <= 1 for row in rows)
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert main([*command, "--horizon", "5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Unknown: too little data was held out to compare forecasts with simple methods (60 samples")
    assert "held-out part" in said and "time in" in said and "…" not in said
    header = next(line for line in said.splitlines() if "crps" in line)
    assert header.split()[:6] == ["steps", "time", "values", "crps", "climatology", "persistence"]
    assert header.rstrip().endswith("in 50%  in 80%  in 90%")
    assert main([*command, "--horizon", "0"]) == 2
    assert "--horizon must be at least 1" in capsys.readouterr().err


def test_without_plotly_the_error_says_what_to_install(hostile, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(lp.DependencyError, match="pip install plotly"):
        write_report(*hostile, tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
