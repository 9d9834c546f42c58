"""The choice of the latent dimension: one story in check, fit, summary, figures, report, model files and runs."""

import dataclasses
import html
import json
import signal
from functools import cache

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import fitted
import lamperti as lp
from lamperti import viz
from lamperti.cli import fit as fit_code
from lamperti.cli import main
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.starts import choose_start
from lamperti.io import _checksum
from lamperti.report import charts, sections
from lamperti.runs.folder import new_run, unfinished_run

REASON = "2 latent coordinates: because <b>."
CURVE = DimensionCurve(2, ((1, 0.5, 0.02), (2, 0.25, 0.01), (3, 0.24, 0.015)), REASON)
GIVEN = DimensionCurve(2, ((2, 0.25, 0.01),), "2 latent coordinates as asked for.")
SHORT = DimensionCurve(2, (), "2 latent coordinates: the data is too short.")
CHOOSING = fitted.MODEL.model_copy(update={"latent_dim": None})


@cache
def chosen() -> lp.FitResult:
    return lp.fit(fitted.data().series, CHOOSING, fitted.FIT)


def _with(dimensions: DimensionCurve | None) -> lp.FitResult:
    return dataclasses.replace(fitted.result(), dimensions=dimensions)


# The choice itself


def test_the_curve_is_that_of_the_candidates_and_the_reason_has_its_numbers():
    choice = choose_start([s.values for s in lp.systems.van_der_pol(6, 200, dt=0.2, seed=0).series])
    kept = choice.dimensions
    assert kept.dimension == choice.dimension and kept.compared and kept.reason == choice.reason()
    assert kept.curve == tuple((one.dimension, one.error, one.se) for one in choice.curve)
    for d, error, se in kept.curve:
        assert f" {d}: {error:.3f} ± {se:.3f}" in kept.reason
    assert kept.reason.startswith(f"{choice.dimension} latent coordinates: ")


def test_a_dimension_that_was_given_or_cannot_be_compared_has_a_sentence_instead_of_a_curve():
    rng = np.random.default_rng(0)
    long, short = [rng.standard_normal((500, 1))], [rng.standard_normal((25, 1))]
    given = choose_start(long, dimension=3).dimensions
    assert not given.compared and [d for d, _, _ in given.curve] == [3]
    assert given.reason.startswith("3 latent coordinates as asked for. No others were compared.")
    few = choose_start(short).dimensions
    assert few.curve == ()
    assert few.reason == "2 latent coordinates and a linear drift: the data is too short to compare with others."
    assert choose_start(short, dimension=1).reason().startswith("1 latent coordinate as asked for and a linear drift: ")
    narrow = choose_start(long, window=1)
    assert len(narrow.curve) == 1 and "asked for" not in narrow.reason()
    assert narrow.reason().startswith("1 latent coordinate: a window of 1 sample has no more. No others were compared.")


@pytest.mark.parametrize(
    ("dimension", "curve"),
    [
        (0, ()),
        (4, ((1, 0.5, 0.1), (2, 0.4, 0.1))),
        (1, ((2, 0.5, 0.1), (1, 0.4, 0.1))),
        (1, ((1, 0.5, 0.1), (1, 0.4, 0.1))),
        (1, ((0, 0.5, 0.1), (1, 0.4, 0.1))),
        (1, ((1, float("nan"), 0.1),)),
        (1, ((1, 0.5, float("inf")),)),
        (1, ((1, -0.5, 0.1),)),
    ],
)
def test_a_curve_that_makes_no_sense_is_refused(dimension, curve):
    with pytest.raises(ValueError, match=r"dimension"):
        DimensionCurve(dimension, curve, "")


# What a fit keeps and tells


def test_fit_and_check_tell_the_same_choice(capsys):
    said, result = [], fitted.result()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamperti.fitting._learn", lambda walk, *rest: said.append(walk.dimensions) or result)
        lp.fit(fitted.data().series, lp.ModelConfig(), fitted.FIT, progress=True)
    suggestion = lp.check(fitted.data().series).suggestion
    assert said == [suggestion.dimensions] and said[0].compared
    assert suggestion.reason in str(suggestion)
    assert suggestion.reason in " ".join(capsys.readouterr().err.split())


def test_a_fit_keeps_its_choice_and_one_with_a_given_dimension_has_no_curve():
    kept = chosen().dimensions
    assert [d for d, _, _ in kept.curve] == [1, 2, 3, 4, 5, 6] and kept.dimension == chosen().model.latent_dim == 2
    given = fitted.result().dimensions
    assert not given.compared and given.dimension == 2 and "as asked for" in given.reason


def test_the_choice_is_said_only_where_there_was_one(capsys):
    result = fitted.result()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamperti.fitting._learn", lambda *args: result)
        lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, progress=True)
    assert "latent coordinates" not in capsys.readouterr().err


# Model files and runs


def _forged(path, change, drop=()):
    with safe_open(path, framework="numpy") as opened:
        content = json.loads(opened.metadata()["lamperti"])
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    header = json.dumps({name: value for name, value in (content | change).items() if name not in drop})
    path.write_bytes(to_bytes(arrays, {"lamperti": header, "sha256": _checksum(header, arrays)}))
    return path


@pytest.mark.parametrize("kept", [CURVE, GIVEN, SHORT, None], ids=["curve", "given", "short", "unknown"])
def test_the_choice_survives_in_a_model_file(kept, tmp_path):
    lp.save(_with(kept), tmp_path / "model")
    assert lp.load(tmp_path / "model").dimensions == kept


def test_every_digit_of_a_real_choice_survives(tmp_path):
    lp.save(chosen(), tmp_path / "model")
    assert lp.load(tmp_path / "model").dimensions == chosen().dimensions


def test_the_fourth_format_did_not_know_the_choice(tmp_path):
    lp.save(_with(CURVE), tmp_path / "model")
    loaded = lp.load(_forged(tmp_path / "model", {"schema": 4}, drop=("dimensions",)))
    assert loaded.dimensions is None
    assert "latent coordinates" not in str(loaded.summary())
    with pytest.raises(lp.ConfigError, match="not known how the latent dimension was chosen"):
        loaded.plot.dimensions()
    _forged(tmp_path / "model", {"schema": 5}, drop=("dimensions",))
    with pytest.raises(lp.ModelFileError, match="header is damaged"):
        lp.load(tmp_path / "model")


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 3},  # was compared, but is not that of the model
        {"dimension": "2"},
        {"dimension": True},
        {"curve": [[1, 0.5, 0.02], [3, 0.24, 0.01]]},
        {"curve": [[2, "0.25", 0.01]]},
        {"curve": [[2, 0.25]]},
        {"curve": [[2.5, 0.25, 0.01]]},
        {"curve": [[2, float("inf"), 0.01]]},
        {"curve": None},
        {"reason": 3},
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_in_a_file(change, tmp_path):
    lp.save(_with(CURVE), tmp_path / "model")
    _forged(tmp_path / "model", {"dimensions": dataclasses.asdict(CURVE) | change})
    with pytest.raises(lp.ModelFileError, match="header is damaged"):
        lp.load(tmp_path / "model")


def test_a_resumed_run_knows_its_choice_as_one_that_never_stopped(tmp_path):
    def ctrl_c(record):
        if record.iteration == 2:
            signal.raise_signal(signal.SIGINT)

    lp.fit(fitted.data().series, CHOOSING, fitted.FIT, run=tmp_path / "run", progress=ctrl_c)
    resumed = lp.resume(tmp_path / "run", fitted.data().series)
    assert resumed.history.status == "max_iterations"
    assert resumed.dimensions == chosen().dimensions == lp.load(tmp_path / "run").dimensions
    np.testing.assert_array_equal(resumed.states, chosen().states)


@pytest.mark.parametrize("kept", [CURVE, None], ids=["curve", "older"])
def test_the_folder_of_a_run_keeps_the_choice(kept, tmp_path):
    with new_run(tmp_path / "run", overwrite=False) as folder:
        folder.begin(fitted.result().config, fitted.data().series, fitted.result().model, None, kept)
    with unfinished_run(tmp_path / "run") as folder:
        assert folder.dimensions == kept


def test_a_run_whose_choice_is_of_another_dimension_is_refused(tmp_path):
    wrong = dataclasses.replace(CURVE, dimension=3)
    with new_run(tmp_path / "run", overwrite=False) as folder:
        folder.begin(fitted.result().config, fitted.data().series, fitted.result().model, None, wrong)
    with unfinished_run(tmp_path / "run") as folder, pytest.raises(lp.RunError, match="damaged or was edited"):
        _ = folder.dimensions


# Summary, figures, report


def test_the_summary_has_the_choice_with_its_errors_and_the_reason():
    text = str(chosen().summary())
    kept = chosen().dimensions
    assert kept.reason in " ".join(text.split())
    for d, error, se in kept.curve:
        assert f"{d}: {error:.3f} ± {se:.3f}" in " ".join(text.split())
    assert max(map(len, text.splitlines()[:20])) <= 92
    assert "2 latent coordinates as asked for. No others were compared." in str(fitted.result().summary())


def _bars(axes):
    (bars,) = axes.containers
    line, _, (segments,) = bars.lines
    return line, np.array(segments.get_segments())


def test_the_figure_has_the_errors_their_bars_and_the_one_that_was_taken():
    figure = _with(CURVE).plot.dimensions()
    (axes,) = figure.axes
    line, segments = _bars(axes)
    np.testing.assert_allclose(line.get_xydata(), [[1, 0.5], [2, 0.25], [3, 0.24]])
    np.testing.assert_allclose(segments[:, :, 1], [[0.48, 0.52], [0.24, 0.26], [0.225, 0.255]])
    (ring,) = [one for one in axes.lines if one.get_label() == "taken (2)"]
    np.testing.assert_array_equal(ring.get_xydata(), [[2, 0.25]])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("latent coordinates", "error (sds of the data)")
    assert figure.get_supxlabel() == REASON


@pytest.mark.parametrize("kept", [GIVEN, SHORT])
def test_without_a_comparison_there_is_a_sentence_and_no_figure(kept):
    with pytest.raises(lp.ConfigError, match=rf"there is no curve to draw\. {kept.reason}"):
        _with(kept).plot.dimensions()
    assert sections.dimensions(_with(kept)) == f"<p>{kept.reason}</p>"


def test_a_check_draws_the_curve_below_the_channels():
    found = lp.check(lp.systems.van_der_pol(6, 200, dt=0.2, seed=0).series)
    figure = found.plot()
    *_, panel, words = figure.axes
    line, segments = _bars(panel)
    expected = np.array(found.suggestion.curve)
    np.testing.assert_array_equal(line.get_xydata(), expected[:, :2])
    np.testing.assert_allclose(np.diff(segments[:, :, 1])[:, 0], 2 * expected[:, 2])
    (text,) = words.texts
    assert " ".join(text.get_text().split()) == found.suggestion.reason
    short = lp.check(lp.Series(np.random.default_rng(0).standard_normal(25)))
    figure = short.plot()
    assert len(figure.axes) == 2 and figure.get_supxlabel() == short.suggestion.reason
    assert len(viz.overview(found.recordings, dataclasses.replace(found, suggestion=None)).axes) == 2


def test_the_chart_of_the_report_has_the_same_numbers_and_the_reason_as_its_caption():
    spec = charts.dimensions(CURVE)
    curve, ring = spec.traces
    assert (curve["x"], curve["y"]) == ([1, 2, 3], [0.5, 0.25, 0.24])
    assert curve["error_y"]["array"] == [0.02, 0.01, 0.015]
    assert (ring["x"], ring["y"], ring["name"]) == ([2], [0.25], "taken (2)")
    assert spec.caption == html.escape(REASON)  # text of a file is shown and not obeyed
    page = sections.dimensions(_with(CURVE))
    assert 'id="dimensions-data"' in page and html.escape(REASON) in page and REASON not in page
    assert "not known" in sections.dimensions(_with(None))


def test_the_command_line_draws_the_curve_and_tells_the_reason(tmp_path, monkeypatch, capsys):
    series = fitted.data().series[0]
    np.savetxt(tmp_path / "data.csv", series.values, header="y", comments="")
    monkeypatch.setattr(fit_code, "fit_series", lambda *args, **options: chosen())
    for name in ("phase_space", "forecast_fan", "drift", "training"):
        monkeypatch.setattr(f"lamperti.viz.accessor.{name}", lambda *args, **options: viz.dimensions(CURVE))
    (tmp_path / "run").mkdir()
    assert main(["fit", str(tmp_path / "data.csv"), "--out", str(tmp_path / "run")]) == 0
    drawn = {p.stem for p in (tmp_path / "run" / "figures").iterdir()}
    assert drawn == {"phase_space", "forecast", "drift", "training", "dimensions"}
    lp.save(chosen(), tmp_path / "model")
    capsys.readouterr()
    assert main(["info", str(tmp_path / "model")]) == 0
    assert chosen().dimensions.reason in " ".join(capsys.readouterr().out.split())
    assert main(["info", str(tmp_path / "model"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["dimensions"] == json.loads(json.dumps(dataclasses.asdict(chosen().dimensions)))
