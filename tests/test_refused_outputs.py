"""Every output of the command line on a disk that refuses one call: one sentence, and no part of a file is left."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure
from tests.refusals import ERRORS, Refusal

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.cli._run import write_figures, write_tables
from lamperti.data.writing import write_csv
from lamperti.runs.manifest import MANIFEST

FOUND = SimpleNamespace(caveats=(), verdict=SimpleNamespace(sentence="As good as any.", to_dict=dict))

STORED = Path(__file__).parent / "fixtures" / "model-v1.safetensors"
OLD = b"what was there before"
COMMANDS = {
    "forecast": ["forecast", STORED, "DATA", "--out", "OUT"],
    "simulate": ["simulate", STORED, "--out", "OUT", "--steps", 5],
    "embed": ["embed", STORED, "DATA", "--out", "OUT"],
    "report": ["report", STORED, "DATA", "--out", "OUT"],
    "export": ["export", STORED, "OUT"],
    "config": ["config", "init", "OUT", "--overwrite"],
    "check": ["check", "DATA", "--png", "OUT", "--no-plot"],
}


@pytest.fixture(scope="module")
def answers():
    """What the commands write is computed once: here only writing matters."""
    result, series = lp.load(STORED), fitted.data().series[0]
    made = {
        "forecast": lp.forecast(result, series, horizon=5, n_samples=4),
        "simulate": lp.simulate(result, n_steps=5, n_paths=4),
        "embed": lp.embed(result, series),
    }
    return result, made


@pytest.fixture
def place(answers, tmp_path, monkeypatch):
    result, made = answers
    for module in ("use", "report", "runs"):
        monkeypatch.setattr(f"lamperti.cli.{module}.load", lambda path: result)
    for name, answer in made.items():
        monkeypatch.setattr(f"lamperti.api.{name}", lambda *args, answer=answer, **options: answer)
    monkeypatch.setattr("lamperti.report.diagnose", lambda *args, **options: FOUND)
    monkeypatch.setattr("lamperti.report.render", lambda *args, **options: "<html>" + "x" * 10000)
    monkeypatch.setattr("lamperti.viz.overview", lambda *args: Figure(figsize=(1, 1)))
    series = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": series.times, "y": series.values[:, 0]})
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refusal_at_any_call_is_one_sentence_and_leaves_the_old_file_or_the_whole_new_one(command, place, capsys):
    out = place / "out"
    names = {"DATA": place / "data.csv", "OUT": out}
    words = [str(names.get(word, word)) for word in COMMANDS[command]]
    with pytest.MonkeyPatch.context() as patch:
        counter = Refusal(patch, -1, 0)
        assert main(words) == 0
    whole = out.stat().st_size  # its bytes may differ: safetensors does not order its header
    before = Path(STORED).read_bytes() if command == "export" else OLD  # a model replaces models only
    capsys.readouterr()
    for number in ERRORS:
        passed = []
        for k in range(1, counter.calls + 1):
            out.write_bytes(before)
            with pytest.MonkeyPatch.context() as patch:
                Refusal(patch, k, number)
                code = main(words)
            said = capsys.readouterr().err
            old = out.read_bytes() == before
            assert old or out.stat().st_size == whole
            assert sorted(path.name for path in place.iterdir()) == ["data.csv", "out"]
            if code == 0:
                passed.append(k)
                assert not old and not said
            else:
                assert code in (1, 2) and os.strerror(number) in said and ".tmp" not in said
                assert str(out) in said or str(names["DATA"]) in said
                assert said.startswith("lamperti: ") and said.count("\n") == 1
        assert len(passed) <= 1  # the trial before the work may have another way to make its file
        assert counter.calls - len(passed) >= 6


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("step", ["tables", "figures"])
def test_what_stands_beside_the_model_is_whole_or_absent(step, number, tmp_path):
    draw = dict.fromkeys(("phase_space", "forecast", "drift", "training"), lambda: Figure(figsize=(1, 1)))
    result = fitted.result()
    drawn = SimpleNamespace(history=result.history, plot=SimpleNamespace(**draw), dimensions=None)
    write = {"tables": lambda to: write_tables(result, to), "figures": lambda to: write_figures(drawn, to)}[step]
    (tmp_path / "whole").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        counter = Refusal(patch, -1, 0)
        write(tmp_path / "whole")
    assert counter.calls >= 12
    for k in range(1, counter.calls + 1):
        folder = tmp_path / str(k)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            Refusal(patch, k, number)
            # A figure that could not be written is told of, and the others are.
            told = pytest.warns(lp.LampertiWarning) if step == "figures" else pytest.raises(OSError)
            with told as caught:
                write(folder)
        assert os.strerror(number) in str(caught[0].message if step == "figures" else caught.value)
        for file in (path for path in folder.rglob("*.*") if path.name != MANIFEST):
            assert file.read_bytes() == (tmp_path / "whole" / file.relative_to(folder)).read_bytes()
