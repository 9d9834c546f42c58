"""Whatever somebody else put into a folder stays: only what is on a list of ours is replaced or deleted."""

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

import fitted
import lamperti as lp
from lamperti._errors import ModelFileError
from lamperti.cli import main
from lamperti.cli._run import write_figures
from lamperti.config import Config
from lamperti.data.files import atomic_write
from lamperti.data.writing import write_csv
from lamperti.runs.commits import commit, committed
from lamperti.runs.folder import claim_in_run, new_run, unfinished_run
from lamperti.runs.manifest import MANIFEST

FOUND = SimpleNamespace(caveats=(), verdict=SimpleNamespace(sentence="As good as any.", to_dict=dict))

STORED = Path(__file__).parents[1] / "fixtures" / "model-v1.safetensors"
STRANGERS = (
    "figures/drift.png",
    "figures/mine.png",
    "checkpoints/000001/weights.pt",
    "checkpoints/.mine.tmp/part",
    "history.jsonl",
    "history.csv",
    "config.toml",
    "model.safetensors",
    "lock",
    ".probe",
)
demo_code = sys.modules["lamperti.cli.demo"]


def _fill(folder: Path, names=STRANGERS) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"mine: {name}")


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _stored() -> lp.FitResult:
    return lp.load(STORED)


def _begin(folder) -> None:
    folder.begin(Config(fitted.MODEL, fitted.FIT), fitted.data().series, _stored().model, None)


@pytest.fixture
def run(tmp_path):
    """A run with a commit, a model and a figure."""
    path = tmp_path / "run"
    with new_run(path, overwrite=False) as folder:
        _begin(folder)
        commit(path / "checkpoints", {"state": b"1"})
        folder.finish(_stored())
    claim_in_run(path, "figures/drift.png")
    (path / "figures").mkdir()
    (path / "figures" / "drift.png").write_text("ours")
    return path


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("names", [STRANGERS, ("notes.md",), ("lock",), ("config.json",), ("checkpoints/000001/a",)])
def test_a_folder_that_is_no_run_is_refused_and_stays_as_it_is(names, overwrite, tmp_path):
    _fill(tmp_path, names)
    before = _content(tmp_path)
    with pytest.raises(lp.ConfigError, match=r"is not empty and is not the folder of a run: it holds .*empty folder"):
        lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=tmp_path, overwrite=overwrite)
    assert _content(tmp_path) == before


@pytest.mark.parametrize("options", [(), ("--overwrite",)])
def test_the_command_line_refuses_a_folder_that_is_no_run(options, tmp_path, capsys):
    series = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": series.times, "y": series.values[:, 0]})
    out = tmp_path / "out"
    _fill(out)
    before = _content(out)
    assert main(["fit", str(tmp_path / "data.csv"), "--out", str(out), *options]) == 2
    said = capsys.readouterr().err
    assert "is not the folder of a run: it holds .probe, checkpoints, config.toml and 5 more." in said
    assert _content(out) == before


def test_a_run_is_overwritten_without_what_is_not_its_own(run):
    mine = ("notes.md", "figures/mine.png", "checkpoints/000009/weights.pt", "checkpoints/.mine.tmp/part", ".probe")
    _fill(run, mine)
    with new_run(run, overwrite=True) as folder:
        _begin(folder)
    assert all((run / name).read_text() == f"mine: {name}" for name in mine)
    assert not (run / "figures" / "drift.png").exists() and not (run / "model.safetensors").exists()
    assert [path.name for path in committed(run / "checkpoints")] == ["000009"]


def test_old_commits_are_forgotten_without_what_is_not_ours(tmp_path):
    _fill(tmp_path, ("000001/weights.pt",))
    for content in range(6):
        last = commit(tmp_path, {"state": bytes([content])})
    (last / "mine").write_text("a file of mine in a commit")
    for content in range(4):
        commit(tmp_path, {"state": bytes([content])})
    assert (tmp_path / "000001" / "weights.pt").exists() and (last / "mine").exists()


def test_a_run_that_fails_before_its_first_commit_leaves_what_came_into_its_folder(tmp_path):
    for place in (tmp_path / "new", tmp_path / "empty"):
        if place.name == "empty":
            place.mkdir()
        with pytest.raises(RuntimeError), new_run(place, overwrite=False) as folder:
            _begin(folder)
            (place / "log.txt").write_text("of a callback")
            raise RuntimeError
        assert _content(place) == {"log.txt": b"of a callback"}


def test_a_run_that_fails_before_its_first_commit_leaves_an_empty_folder_empty(tmp_path):
    with pytest.raises(RuntimeError), new_run(tmp_path, overwrite=False) as folder:
        _begin(folder)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_configuration_of_another_program_is_not_resumed_and_stays_as_it_is(tmp_path):
    _fill(tmp_path, ("config.json", "lock", ".config.json.0123456789ab.tmp"))
    before = _content(tmp_path)
    with pytest.raises(lp.RunError, match=r"another program's, or damaged"), unfinished_run(tmp_path):
        pass
    assert _content(tmp_path) == before


def test_a_link_in_the_way_leads_nobody_astray(run, tmp_path):
    _fill(tmp_path / "elsewhere", ("drift.png",))
    (run / "figures" / "drift.png").unlink()
    (run / "figures").rmdir()
    (run / "figures").symlink_to(tmp_path / "elsewhere")
    with new_run(run, overwrite=True) as folder:
        _begin(folder)
    assert (tmp_path / "elsewhere" / "drift.png").exists()


@pytest.mark.parametrize("name", ["../mine", "/etc/mine", "a/../../mine", "..", "figures/..", "a/b/c"])
def test_a_list_that_somebody_changed_is_refused(name, run, tmp_path):
    (tmp_path / "mine").write_text("mine")
    content = json.loads((run / MANIFEST).read_text())
    (run / MANIFEST).write_text(json.dumps(content | {"files": [*content["files"], name]}))
    with pytest.raises(lp.RunError, match=r"manifest\.json is damaged"), new_run(run, overwrite=True) as folder:
        _begin(folder)
    assert (tmp_path / "mine").exists() and committed(run / "checkpoints")


def test_a_run_of_a_version_without_lists_is_gone_on_with_and_overwritten(run):
    (run / MANIFEST).unlink()
    with unfinished_run(run):
        pass
    (run / MANIFEST).unlink()
    _fill(run, ("notes.md",))
    with new_run(run, overwrite=True) as folder:
        _begin(folder)
    assert (run / "notes.md").exists() and not (run / "figures").exists() and not committed(run / "checkpoints")


def test_figures_and_tables_of_the_command_line_are_listed_and_replace_nothing_of_others(run):
    draw = dict.fromkeys(("phase_space", "forecast", "drift", "training"), lambda: Figure(figsize=(1, 1)))
    _fill(run, ("figures/forecast.png",))
    result = SimpleNamespace(history=_stored().history, plot=SimpleNamespace(**draw), dimensions=None)
    with pytest.warns(lp.LampertiWarning, match=r"forecast\.png was not written by lamperti.*The model is saved"):
        write_figures(result, run)
    assert (run / "figures" / "forecast.png").read_text() == "mine: figures/forecast.png"
    listed = json.loads((run / MANIFEST).read_text())["files"]
    assert {"figures/phase_space.png", "figures/drift.png"} <= set(listed)
    assert "figures/forecast.png" not in listed


def test_a_demo_replaces_what_a_demo_wrote_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo_code, "fit_series", lambda *args, **options: _stored())
    monkeypatch.setattr(demo_code, "_draw", lambda result, data, folder, seed: _fill(folder, ("forecast.png",)))
    command = ["demo", "ou", "--out", str(tmp_path / "demo")]
    _fill(tmp_path / "demo", ("forecast.png",))
    assert main(command) == 2
    assert "is not the folder of a demo: it holds forecast.png." in capsys.readouterr().err
    (tmp_path / "demo" / "forecast.png").unlink()
    assert main(command) == 0
    _fill(tmp_path / "demo", ("notes.md",))
    assert main(command) == 0
    assert {"notes.md", "forecast.png", "model.safetensors"} < set(_content(tmp_path / "demo"))
    _fill(tmp_path / "demo", ("training.png",))
    assert main(command) == 1
    assert "training.png was not written by lamperti" in capsys.readouterr().err
    assert (tmp_path / "demo" / "training.png").read_text() == "mine: training.png"


def test_a_model_is_not_saved_over_another_programs_weights(tmp_path):
    _fill(tmp_path, ("model.safetensors",))
    with pytest.raises(lp.ModelFileError, match=r"is not a model of lamperti and stays"):
        lp.save(_stored(), tmp_path)
    assert (tmp_path / "model.safetensors").read_text() == "mine: model.safetensors"
    (tmp_path / "model.safetensors").unlink()
    lp.save(_stored(), tmp_path)
    lp.save(_stored(), tmp_path)


def test_a_report_replaces_a_report_and_nothing_else_unless_its_name_is_given(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lamperti.report.diagnose", lambda *args, **options: FOUND)
    monkeypatch.setattr("lamperti.report.render", lambda *args, **options: '<meta name="generator" content="lamperti">')
    series = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": series.times, "y": series.values[:, 0]})
    words = ["report", str(run), str(tmp_path / "data.csv")]
    _fill(run, ("report.html",))
    assert main(words) == 2
    assert "report.html was not written by lamperti and stays as it is" in capsys.readouterr().err
    assert (run / "report.html").read_text() == "mine: report.html"
    (run / "report.html").unlink()
    assert main(words) == 0 and main(words) == 0
    assert "report.html" in json.loads((run / MANIFEST).read_text())["files"]


def test_results_of_the_benchmark_are_not_written_among_other_things(tmp_path, capsys):
    _fill(tmp_path / "out", ("results.csv",))
    assert main(["bench", "run", "--out", str(tmp_path / "out"), "--systems", "lorenz"]) == 2
    assert "it holds results.csv" in capsys.readouterr().err
    assert (tmp_path / "out" / "results.csv").read_text() == "mine: results.csv"


def test_a_report_of_the_benchmark_leaves_other_pictures_and_pages_alone(tmp_path, monkeypatch, capsys):
    from lamperti.bench import report
    from lamperti.bench.cells import Cell, CellResult, Row, picture_path, write_cell

    def cell(*pictures):
        one = CellResult(Cell("lorenz", 0.1, "lamperti", 0), "done", (Row("x", 1.0),), pictures=pictures)
        write_cell(tmp_path / "bench", one)
        for name in pictures:
            picture_path(tmp_path / "bench", one.cell, name).write_text("ours")

    monkeypatch.setattr(report, "page", lambda *args: [])
    words = ["bench", "report", str(tmp_path / "bench"), "--docs", str(tmp_path / "docs")]
    cell("drift", "forecast")
    _fill(tmp_path / "docs", ("figures/lorenz-drift.png",))
    before = _content(tmp_path / "docs")
    assert main(words) == 2 and _content(tmp_path / "docs") == before
    (tmp_path / "docs" / "figures" / "lorenz-drift.png").unlink()
    (tmp_path / "docs" / "figures").rmdir()
    _fill(tmp_path, ("docs.md",))
    assert main(words) == 1 and (tmp_path / "docs.md").read_text() == "mine: docs.md"
    (tmp_path / "docs.md").unlink()
    assert main(words) == 0
    _fill(tmp_path / "docs", ("figures/mine.png",))
    cell("drift")
    assert main(words) == 0
    assert {p.name for p in (tmp_path / "docs" / "figures").iterdir()} == {"lorenz-drift.png", "mine.png"}
    capsys.readouterr()


def test_tables_that_cannot_be_claimed_do_not_hide_how_training_ended(run, capsys, monkeypatch):
    from lamperti.cli._run import conclude

    _fill(run, ("config.toml",))
    with pytest.warns(lp.LampertiWarning, match=r"config\.toml was not written by lamperti"):
        assert conclude(_stored(), run, figures=False, as_json=False) == 0
    assert (run / "config.toml").read_text() == "mine: config.toml"
    assert "iterations" in capsys.readouterr().out


def test_a_model_replaces_models_and_empty_files_only(tmp_path):
    data, empty, model = tmp_path / "d.csv", tmp_path / "new", tmp_path / "m.safetensors"
    data.write_text("x\n1\n2\n")
    empty.touch()
    for path in (empty, model, model):
        lp.save(fitted.result(), path)
    before = data.read_bytes()
    with pytest.raises(ModelFileError, match="is not a model of lamperti and stays"):
        lp.save(fitted.result(), data)
    assert main(["export", str(model), str(data)]) == 1
    assert data.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX only")
def test_links_and_pipes_are_not_replaced(tmp_path, capsys):
    model, target, link, pipe = (tmp_path / name for name in ("m.safetensors", "t.csv", "l.csv", "p.csv"))
    lp.save(fitted.result(), model)
    target.write_text("kept")
    link.symlink_to(target)
    os.mkfifo(pipe)
    for path, said in ((link, "it is a link"), (pipe, "it is a device or a pipe")):
        with pytest.raises(ModelFileError, match=said):
            lp.save(fitted.result(), path)
        assert main(["simulate", str(model), "--steps", "3", "--out", str(path)]) == 2
        assert said in capsys.readouterr().err.replace("\n", " ")
    with pytest.raises(OSError, match="device or a pipe"):
        atomic_write(pipe, b"")
    assert link.is_symlink() and target.read_text() == "kept" and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_file_that_is_written_again_keeps_who_may_read_it(tmp_path):
    path = tmp_path / "m.safetensors"
    lp.save(fitted.result(), path)
    path.chmod(0o600)
    lp.save(fitted.result(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
