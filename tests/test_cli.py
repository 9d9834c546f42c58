"""The command line, run in this process but for one test of the installed command."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import fitted
import lamperti as lp
from lamperti.alternatives import tell
from lamperti.cli import _app, main
from lamperti.cli._run import write_run
from lamperti.cli._source import Source, as_arguments, as_flags
from lamperti.cli._toml import to_toml
from lamperti.data.options import ReadOptions
from lamperti.data.series import DATES
from lamperti.data.writing import write_csv
from lamperti.io import MODEL_NAME
from lamperti.progress import ProgressLine, clock
from lamperti.runs.commits import commit, committed
from lamperti.runs.folder import new_run
from lamperti.train.history import EventKind

fit_code = sys.modules["lamperti.cli.fit"]
demo_code = sys.modules["lamperti.cli.demo"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table of several series and the configuration of the small model."""
    folder = tmp_path_factory.mktemp("cli")
    series = fitted.data().series
    write_csv(
        folder / "data.csv",
        {
            "time": np.concatenate([s.times for s in series]),
            "y": np.concatenate([s.values[:, 0] for s in series]),
            "who": np.repeat(np.arange(len(series)), len(series[0])),
        },
    )
    config = lp.results.Config(fitted.MODEL, fitted.FIT)
    (folder / "small.toml").write_text(to_toml(config))
    return folder


@pytest.fixture(scope="module")
def run(place):
    """The small model as the folder of a run."""
    folder = place / "run"
    folder.mkdir()
    write_run(fitted.result(), folder)
    return folder


def _fit(place, out, *options):
    """Without figures, which take longer than this training, unless asked for."""
    small = ["--id", "who", "--config", place / "small.toml"]
    pictures = [] if "--figures" in options else ["--no-figures"]
    return main([str(a) for a in ["fit", place / "data.csv", *small, "--out", out, *pictures, *options]])


def test_fit_writes_a_run_that_equals_the_library_and_reports_as_it_goes(place, tmp_path, capsys):
    assert _fit(place, tmp_path / "run", "--figures") == 0
    captured = capsys.readouterr()
    assert captured.err.count("iteration") == 3
    assert all(word in captured.err for word in ("ELBO", "emission", "entropy", "KL", "validation", "left"))
    assert "3 iterations" in captured.out
    tables = {"config.json", "config.toml", "history.csv", "history.jsonl"}
    others = {"checkpoints", "figures", "lock", "manifest.json", MODEL_NAME}
    assert {p.name for p in (tmp_path / "run").iterdir()} == tables | others
    figures = {p.name: p.read_bytes()[:4] for p in (tmp_path / "run" / "figures").iterdir()}
    assert figures == dict.fromkeys(("phase_space.png", "forecast.png", "drift.png", "training.png"), b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    loaded, result = lp.load(tmp_path / "run"), fitted.result()
    np.testing.assert_allclose(loaded.states, result.states, rtol=1e-6, atol=1e-9)
    history = pd.read_csv(tmp_path / "run" / "history.csv")
    np.testing.assert_array_equal(history["elbo"], [r.elbo for r in loaded.history.records])
    again = lp.ModelConfig.from_toml(tmp_path / "run" / "config.toml", "model")
    assert again == result.config.model


def test_ctrl_c_keeps_what_was_learned(place, tmp_path, monkeypatch):
    def interrupt(self, record):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)
    assert _fit(place, tmp_path / "run") == 130
    assert lp.load(tmp_path / "run").history.status == "interrupted"


def test_ctrl_c_before_training_writes_nothing(place, tmp_path, monkeypatch, capsys):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_code, "fit_series", interrupt)
    assert _fit(place, tmp_path / "run") == 130
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == "lamperti: interrupted; nothing was written.\n"


def test_failed_training_exits_with_three_and_writes_nothing(place, tmp_path, monkeypatch, capsys):
    def fail(*args, **options):
        raise lp.TrainingError("values are not finite.\nUse a smaller learning_rate.")

    monkeypatch.setattr(fit_code, "fit_series", fail)
    assert _fit(place, tmp_path / "run") == 3
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == "lamperti: values are not finite. Use a smaller learning_rate.\n"


def test_debug_shows_the_traceback(tmp_path, capsys):
    assert main(["info", str(tmp_path / "none"), "--debug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err and err.splitlines()[-1].startswith("lamperti: there is no file")


def test_options_overrule_the_configuration_file(place, tmp_path, monkeypatch):
    seen = {}

    def pretend(series, model, fit, *, run, **options):
        seen.update(model=model, fit=fit, n=len(series))
        run.mkdir()
        return fitted.result()

    monkeypatch.setattr(fit_code, "fit_series", pretend)
    assert _fit(place, tmp_path / "run", "--kernel", "matern32", "--max-minutes", "0.5", "--seed", "7") == 0
    assert seen["n"] == 4
    assert seen["model"] == fitted.MODEL.model_copy(update={"kernel": "matern32"})
    assert seen["fit"] == fitted.FIT.model_copy(update={"max_minutes": 0.5, "seed": 7})


def test_a_killed_run_is_resumed_or_overwritten_from_where_it_says_its_data_is(place, tmp_path, monkeypatch, capsys):
    """The run stops after its second commit, with nothing but its commits; then it goes on to the same model."""

    def stop(self, record):
        if record.iteration == 2:
            raise RuntimeError("power cut")

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLine, "__call__", stop)
        assert _fit(place, folder) == 1
    assert capsys.readouterr().err.startswith("lamperti: unexpected RuntimeError: power cut. Run it again with --debug")
    (folder / "notes.txt").write_text("mine")
    assert main(["info", str(folder)]) == 0
    assert "2 of at most 3 iterations committed" in capsys.readouterr().out
    assert _fit(place, folder) == 2
    assert "--overwrite" in capsys.readouterr().err
    elsewhere = shutil.copytree(folder, tmp_path / "copy")
    (committed(folder / "checkpoints")[0] / "state.json").write_text("{}")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["resume", str(folder), "--no-figures", "--json", "--quiet"]) == 0
    captured = capsys.readouterr()
    (note,) = captured.err.splitlines()
    assert note.startswith("lamperti: note: the commit") and "damaged and passed over" in note
    assert json.loads(captured.out)["iterations"] == 3
    np.testing.assert_array_equal(lp.load(folder).states, fitted.result().states)
    assert (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "other.csv").write_text((place / "data.csv").read_text().replace("\n0.1,", "\n0.11,"))
    assert main(["resume", str(elsewhere), str(tmp_path / "other.csv")]) == 1
    assert "not the data that the run was started with: its values or times differ" in capsys.readouterr().err


def test_a_second_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch, place, capsys):
    def interrupt(*args, run, **options):
        commit(run / "checkpoints", {"state": b""})
        raise KeyboardInterrupt

    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    monkeypatch.setattr(fit_code, "fit_series", interrupt)
    assert _fit(place, tmp_path / "run") == 130
    assert f"Go on with: lamperti resume {tmp_path / 'run'}" in capsys.readouterr().err


def test_sigterm_exits_with_143(monkeypatch, place, tmp_path):
    history = dataclasses.replace(fitted.result().history, status="terminated")
    result = dataclasses.replace(fitted.result(), history=history)
    monkeypatch.setattr(fit_code, "fit_series", lambda *args, **options: result)
    (tmp_path / "run").mkdir()
    assert _fit(place, tmp_path / "run") == 143


def test_a_configuration_file_has_every_option_with_its_default(tmp_path, capsys):
    file = tmp_path / "all.toml"
    assert main(["config", "init", str(file)]) == 0
    assert f"--config {file}" in capsys.readouterr().out
    text = file.read_text()
    for cls, table in ((lp.ModelConfig, "model"), (lp.FitConfig, "fit")):
        assert cls.from_toml(file, table) == cls()
        assert all(
            f"{name} =" in text and (field.description or "") in text for name, field in cls.model_fields.items()
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fit]\nlearning_rat = 1\n", "Did you mean 'learning_rate'?"),
        ("[modle]\n", "unknown table or entry 'modle'"),
        ("model = 3\n", "must be a table"),
        ("[model\n", "not a readable TOML file"),
    ],
)
def test_a_wrong_configuration_file_is_refused_with_the_way_out(text, said, place, tmp_path, capsys):
    (tmp_path / "a.toml").write_text(text)
    command = ["fit", str(place / "data.csv"), "--config", str(tmp_path / "a.toml"), "--out", str(tmp_path / "run")]
    assert main(command) == 2
    err = capsys.readouterr().err
    assert said in err and str(tmp_path / "a.toml") in err


def test_a_pipe_given_as_configuration_is_refused_and_does_not_hang(place, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    command = ["fit", str(place / "data.csv"), "--config", str(tmp_path / "pipe"), "--out", str(tmp_path / "run")]
    assert main(command) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_export_writes_one_file_that_is_the_same_model(run, tmp_path, capsys):
    assert main(["export", str(run), str(tmp_path / "one.safetensors"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == ["y"]
    np.testing.assert_array_equal(lp.load(tmp_path / "one.safetensors").states, fitted.result().states)


def test_forecast_writes_what_the_library_gives(place, run, tmp_path, capsys):
    command = ["forecast", run, place / "data.csv", "--id", "who", "--horizon", 5, "--samples", 4, "--out"]
    assert main([str(a) for a in [*command, tmp_path / "f.csv", "--json"]]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 20
    table = pd.read_csv(tmp_path / "f.csv")
    assert list(table) == ["series", "time", "y_mean", "y_sd", "y_median", "y_lower", "y_upper"]
    expected = lp.forecast(fitted.result(), fitted.data().series[1], horizon=5, n_samples=4)
    part = table[table["series"] == 1]
    np.testing.assert_allclose(part["time"], expected.times, rtol=1e-12)
    np.testing.assert_allclose(part["y_mean"], expected.mean[:, 0], rtol=1e-9)
    np.testing.assert_allclose(part["y_upper"], expected.interval(0.9)[1][:, 0], rtol=1e-9)


def test_simulate_writes_paths_with_their_states(run, tmp_path):
    command = ["simulate", run, "--steps", 5, "--paths", 2, "--out", tmp_path / "s.csv"]
    assert main([str(a) for a in command]) == 0
    table = pd.read_csv(tmp_path / "s.csv")
    assert list(table) == ["path", "time", "y", "x1", "x2"]
    expected = lp.simulate(fitted.result(), n_steps=5, n_paths=2)
    np.testing.assert_allclose(table["y"], expected.samples.reshape(-1), rtol=1e-9)
    np.testing.assert_array_equal(table["path"], np.repeat([0, 1], 5))


def test_embed_writes_states_and_covariances(place, run, tmp_path):
    command = ["embed", run, place / "data.csv", "--id", "who", "--out", tmp_path / "e.csv"]
    assert main([str(a) for a in command]) == 0
    table = pd.read_csv(tmp_path / "e.csv")
    assert list(table) == ["series", "time", "x1", "x2", "cov_x1_x1", "cov_x1_x2", "cov_x2_x2"]
    expected = lp.embed(fitted.result(), fitted.data().series[0])
    part = table[table["series"] == 0]
    np.testing.assert_allclose(part[["x1", "x2"]], expected.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(part["cov_x1_x2"], expected.cov[:, 0, 1], rtol=1e-9, atol=1e-12)


def test_forecast_reads_the_channels_of_the_model(run, tmp_path, capsys):
    (tmp_path / "other.csv").write_text("time,z\n" + "".join(f"{i},{i % 3}\n" for i in range(20)))
    command = ["forecast", run, tmp_path / "other.csv", "--out", tmp_path / "f.csv"]
    assert main([str(a) for a in command]) == 1
    assert "there is no column 'y'" in capsys.readouterr().err
    assert not (tmp_path / "f.csv").exists()


def test_forecast_notes_data_far_from_training(run, tmp_path, capsys):
    (tmp_path / "far.csv").write_text("time,y\n" + "".join(f"{i / 10},{1000 + i % 3}\n" for i in range(60)))
    command = ["forecast", run, tmp_path / "far.csv", "--horizon", 5, "--samples", 4, "--out", tmp_path / "f.csv"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([str(a) for a in command]) == 0
    assert "note: column 'y' is out of the range of training" in capsys.readouterr().err


def test_a_model_trained_with_dates_refuses_rows_without_times(place, tmp_path, capsys):
    lp.save(dataclasses.replace(fitted.result(), time_unit=DATES), tmp_path / "m.safetensors")
    stamps = pd.date_range("2024-03-01", periods=60, freq="100ms").astype(str)
    write_csv(tmp_path / "d.csv", {"when": stamps, "y": fitted.data().series[0].values[:, 0]})
    for command in ("forecast", "embed"):
        words = [command, tmp_path / "m.safetensors", tmp_path / "d.csv", "--out", tmp_path / "f.csv"]
        assert main([str(a) for a in words]) == 2
        assert "was trained with dates" in (said := capsys.readouterr().err) and "--time COLUMN" in said
        assert not (tmp_path / "f.csv").exists()
    assert main([str(a) for a in [*words, "--time", "when"]]) == 0
    assert pd.read_csv(tmp_path / "f.csv")["time"][1] == "2024-03-01T00:00:00.100000"
    assert main([str(a) for a in [*words, "--dt", "0.1"]]) == 0


def test_check_says_what_was_understood(place, tmp_path, capsys):
    command = ["check", place / "data.csv", "--id", "who", "--units", "y=mV", "--png", tmp_path / "c.png"]
    assert main([str(a) for a in command]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("4 of 60 samples", "regular, step 0.1", "mV", "suggested"))
    assert any(0x2800 < ord(c) < 0x2900 for c in out)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_check_names_options_as_the_command_line_has_them(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("time,x\n1,1\n0,2\n")
    assert main(["check", str(tmp_path / "a.csv")]) == 1
    assert "read them with --sort." in capsys.readouterr().err
    assert main(["check", str(tmp_path / "a.csv"), "--units", "x"]) == 2
    assert "channel=unit pairs" in capsys.readouterr().err


def test_messages_of_the_library_are_told_in_the_words_of_the_command_line():
    told = {
        'read with duplicates="first", "last" or "mean".': "read with --duplicates first, last or mean.",
        'pass thousands=",", "." or " ".': "pass --thousands comma, point or space.",
        'Pass missing="nan", or a mask.': "Pass --missing nan.",
        "Pass separator='\\t', or save it": "Pass --separator tab, or save it",
        "pass time='the date'; or drop_constant=True.": 'pass --time "the date"; or --drop-constant.',
        "give dt= instead of time=.": "give --dt instead of --time.",
    }
    assert {text: as_flags(text) for text in told} == told


def test_a_constant_channel_is_refused_with_the_option_that_leaves_it_out(tmp_path, capsys):
    (tmp_path / "const.csv").write_text("y\n" + "3\n" * 40)
    assert main(["fit", str(tmp_path / "const.csv"), "--out", str(tmp_path / "run")]) == 1
    assert "--drop-constant" in capsys.readouterr().err


def test_units_may_be_given_several_times(tmp_path, capsys):
    rows = "".join(f"{i % 7},{i % 5}\n" for i in range(40))
    (tmp_path / "a.csv").write_text(f"flow,heart rate\n{rows}")
    command = ["check", str(tmp_path / "a.csv"), "--json", "--units"]
    for units in (["flow=ml/s,heart rate=1/min"], ["flow=ml/s", "--units", "heart rate=1/min"]):
        assert main([*command, *units]) == 0
        assert [c["unit"] for c in json.loads(capsys.readouterr().out)["channels"]] == ["ml/s", "1/min"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.csv/f.csv", "a.csv is a file, not a folder"),
        ("none/f.csv", "none does not exist"),
        ("f.xlsx", "ends in .csv"),
        ("f.csv.gz", "ends in .csv"),
    ],
)
def test_a_table_that_cannot_be_written_under_its_name_is_refused(name, said, run, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("y\n1\n2\n")
    for command in (["forecast", run, tmp_path / "a.csv"], ["simulate", run], ["embed", run, tmp_path / "a.csv"]):
        assert main([str(a) for a in [*command, "--out", tmp_path / name]]) == 2
        assert said in capsys.readouterr().err


def test_a_required_option_that_was_not_given_is_named(tmp_path, capsys):
    assert main(["forecast", "run", "data.csv"]) == 2
    assert "--out is required and was not given. See lamperti forecast --help." in capsys.readouterr().err
    assert main(["forecast", "run", "data.csv", "--out"]) == 2
    assert "--out requires an argument" in capsys.readouterr().err


def test_every_option_of_reading_is_an_option_of_the_command_line():
    names = [field.name for field in dataclasses.fields(ReadOptions)]
    assert [field.name for field in dataclasses.fields(Source)] == names


def test_options_of_reading_go_back_to_the_command_line():
    given = Source(
        columns="a,b c",
        time="when",
        missing="nan,-999",
        units=["a=m/s,b c=V"],
        separator="tab",
        sort=True,
        split_gaps=3.0,
        header=False,
    )
    _, bound, _ = _app.app.parse_args(["check", "data.csv", *as_arguments(given.options())], exit_on_error=False)
    assert bound.arguments["source"].options() == given.options()
    assert as_arguments(Source().options()) == []
    assert as_flags("Say which: header=True or header=False.") == "Say which: --header or --no-header."


def test_info_says_what_was_learned(run, capsys):
    assert main(["info", str(run)]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("latent dimension", "se kernel, 8 inducing", "window 6", "3 iterations"))
    assert main(["info", str(run), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["training"]["status"] == "max_iterations" and facts["model"]["n_inducing"] == 8


def test_info_tells_what_the_numerical_guard_did(tmp_path, capsys):
    """Cases 45 and 46: every kind of event, also those after the last record."""
    history = dataclasses.replace(fitted.result().history, events=[])
    counts = dict(zip(get_args(EventKind), (2, 3, 4, 5), strict=True))
    for k, (kind, count) in enumerate(counts.items()):
        history.note(4 + k, kind, count - 1)
        history.note(9, kind)
    lp.save(dataclasses.replace(fitted.result(), history=history), tmp_path / "model")
    assert main(["info", str(tmp_path / "model")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(f"{n} × {kind} (first at iteration {4 + k})" in out for k, (kind, n) in enumerate(counts.items()))
    assert main(["info", str(tmp_path / "model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["training"]["events"] == counts


def test_info_of_a_training_that_was_cut_short_tells_that_its_noises_are_not_calibrated(tmp_path, capsys):
    result = fitted.result()
    fit = result.config.fit.model_copy(update={"calibrate": True})
    history = dataclasses.replace(result.history, status="interrupted")
    short = dataclasses.replace(result, history=history, config=dataclasses.replace(result.config, fit=fit))
    lp.save(short, tmp_path / "model")
    assert main(["info", str(tmp_path / "model")]) == 0
    assert "drift were not calibrated" in " ".join(capsys.readouterr().out.split())
    assert main(["info", str(tmp_path / "model"), "--json"]) == 0
    assert "not calibrated" in json.loads(capsys.readouterr().out)["notes"][0]


def test_what_comes_after_training_is_told(capsys):
    with ProgressLine() as progress:
        tell(progress, "calibrating")
        tell(print, "nothing that a plain function could say")
    captured = capsys.readouterr()
    assert captured.err == "calibrating\n" and not captured.out


def test_info_passes_over_damaged_lines_of_a_history(tmp_path, capsys):
    origin = {"path": "data.csv", "options": {}}
    with new_run(tmp_path / "run", overwrite=False) as folder:
        folder.begin(fitted.result().config, fitted.data().series, fitted.result().model, origin)
    lines = [
        "{",
        "[]",
        '{"kind": "record"}',
        '{"kind": "record", "iteration": "x"}',
        '{"kind": "record", "iteration": 2}',
    ]
    (tmp_path / "run" / "history.jsonl").write_bytes("\n".join(lines).encode() + b"\n\xff\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["info", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    assert "2 of at most 3 iterations committed" in captured.out
    assert captured.err.count("is damaged and passed over") == 5 and captured.err.count("\n") == 5


def test_a_fit_whose_figures_cannot_be_written_still_says_how_it_ended(place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fit_code, "fit_series", lambda *args, **options: fitted.result())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "figures").write_text("in the way")
    (tmp_path / "run" / "config.toml").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert _fit(place, tmp_path / "run", "--figures") == 0
    captured = capsys.readouterr()
    assert "3 iterations" in captured.out
    assert captured.err.count("note: the figure") == 4
    assert "note: config.toml and history.csv could not be made" in captured.err


def _broken(*args, **options):
    raise ValueError("operands could not be broadcast together")


def test_a_figure_that_fails_does_not_fail_the_fit(place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fit_code, "fit_series", lambda *args, **options: fitted.result())
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("lamperti.viz.accessor.phase_space", _broken)
    monkeypatch.setattr("lamperti.viz.accessor.drift", _broken)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert _fit(place, tmp_path / "run", "--figures") == 0
    captured = capsys.readouterr()
    said = "could not be made: unexpected ValueError: operands could not be broadcast together. The model is saved."
    assert captured.err.count(said) == 2 and "3 iterations" in captured.out
    assert {p.name for p in (tmp_path / "run" / "figures").iterdir()} == {"forecast.png", "training.png"}


def test_a_figure_that_fails_does_not_fail_the_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo_code, "fit_series", lambda *args, **options: fitted.result())
    monkeypatch.setattr("lamperti.report.write_report", _broken)
    for name in ("phase_space", "free_run", "forecast_fan"):
        monkeypatch.setattr(f"lamperti.viz.{name}", _broken)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["demo", "ou", "--out", str(tmp_path / "d")]) == 0
    assert capsys.readouterr().err.count("The model is saved.") == 4
    assert {"model.safetensors", "training.png"} < {p.name for p in (tmp_path / "d").iterdir()}


def test_demo_writes_figures_and_the_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo_code, "fit_series", lambda *args, **options: fitted.result())
    few = lp.diagnostics.Effort(origins=4, futures=40, horizon=5, pieces=2, paths=4, steps=50, starts=8)
    monkeypatch.setattr(demo_code, "_EFFORT", few)
    assert main(["demo", "ou", "--out", str(tmp_path / "d")]) == 0
    pictures = {"truth.png", "forecast.png", "free_run.png", "phase_space.png", "training.png"}
    written = {p.name for p in (tmp_path / "d").iterdir()}
    others = {"config.toml", "history.csv", "manifest.json", "model.safetensors", "report.html"}
    assert written == pictures | others
    assert all((tmp_path / "d" / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    out = capsys.readouterr().out
    assert "of x1" in out and "true," in out and "learned" in out
    steps = out.splitlines()[-3:]
    assert "report.html" in steps[0] and "lamperti check" in steps[1] and "lamperti fit" in steps[2]
    assert main(["demo", "ou", "--out", str(tmp_path / "d")]) == 0  # a demo may be run again


def test_a_demo_that_is_asked_to_end_exits_with_143(tmp_path, monkeypatch):
    history = dataclasses.replace(fitted.result().history, status="terminated")
    result = dataclasses.replace(fitted.result(), history=history)
    monkeypatch.setattr(demo_code, "fit_series", lambda *args, **options: result)
    monkeypatch.setattr(demo_code, "_draw", lambda *args: None)
    assert main(["demo", "ou", "--out", str(tmp_path / "d")]) == 143


def test_every_demo_names_a_system_of_the_library():
    for setting in demo_code._SYSTEMS.values():
        assert setting.simulate(1, 3, setting.dt, observation_noise=0.1, seed=0).series[0].length == 3


def test_the_configuration_in_force_survives_its_toml():
    config = lp.results.Config(
        lp.ModelConfig(kernel="se+linear", jitter=1e-7), lp.FitConfig(gauge_at=(10, 20), max_minutes=None)
    )
    tables = tomllib.loads(to_toml(config))
    assert lp.ModelConfig(**tables["model"]) == config.model
    assert lp.FitConfig(**tables["fit"]) == config.fit


def test_warnings_are_one_line_notes(capsys):
    _app._show_warning(lp.LampertiWarning("nearly\nconstant"), lp.LampertiWarning, "file", 1)
    assert capsys.readouterr().err == "lamperti: note: nearly constant\n"


@pytest.mark.parametrize("how", ["script", "module"])
def test_the_installed_command_answers_and_refuses(how):
    script = Path(sys.executable).with_name("lamperti")
    if how == "script" and not script.exists():
        pytest.skip("lamperti is not installed beside this Python")
    command = [script] if how == "script" else [sys.executable, "-m", "lamperti"]
    refused = subprocess.run([*command, "fti"], capture_output=True, text=True, timeout=120, check=False)
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr.startswith("lamperti: ") and refused.stderr.count("\n") == 1


def test_help_and_version_are_answered(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == lp.__version__
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("check", "fit", "resume", "info", "export", "config", "--install-completion"))


def test_time_left_is_told_in_minutes_and_after_an_hour_in_hours():
    assert [clock(s) for s in (-3.0, 59.6, 3599.0, 3600.0, 90061.0)] == ["0:00", "1:00", "59:59", "1:00:00", "25:01:01"]


def test_fit_says_what_check_knows_before_it_trains(place, tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise lp.TrainingError("training would begin here.")

    monkeypatch.setattr("lamperti.fitting._learn", stop)
    y = np.sin(0.5 * np.arange(300.0)) + 0.2 * np.sin(1.3 * np.arange(300.0))
    y[100] = 1e12
    write_csv(tmp_path / "data.csv", {"level": y, "clock": 10.0 + np.arange(300.0)})
    command = ["fit", tmp_path / "data.csv", "--config", place / "small.toml", "--out", tmp_path / "run"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([str(a) for a in command]) != 0
    said = [line for line in capsys.readouterr().err.splitlines() if "note:" in line]
    assert len(said) == 2
    assert said[0].startswith("lamperti: note: column 'level': 1 value makes up 100.0% of the sd")
    assert said[1] == "lamperti: note: column 'clock': it only increases: is it the time? Then pass --time clock."
