"""Faults of model files, runs and resources (cases 33-50), through the command line and, where cheap, the library.

Where nothing is trained, models come from the stored file of the first format."""

import ast
import errno
import json
import os
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import fitted
import lamperti as lp
from lamperti._schema import SCHEMA
from lamperti.cli import main
from lamperti.cli._toml import to_toml
from lamperti.data.writing import write_csv
from lamperti.io import _checksum
from lamperti.prepared import prepare
from lamperti.runs.commits import committed, read_commit
from lamperti.runs.lock import locked
from lamperti.train import memory
from lamperti.train.build import build_model
from lamperti.train.loop import _Run

STORED = Path(__file__).parent / "fixtures" / "model-v1.safetensors"
SOURCE = Path(__file__).parents[1] / "src"


def _forged(path, *, change=None, arrays=None):
    """The stored model with other content, and a checksum that fits."""
    with safe_open(STORED, framework="numpy") as opened:
        content = json.loads(opened.metadata()["lamperti"]) | (change or {})
        found = {name: opened.get_tensor(name) for name in opened.keys()} | (arrays or {})  # noqa: SIM118
    header = json.dumps(content)
    path.write_bytes(to_bytes(found, {"lamperti": header, "sha256": _checksum(header, found)}))


def _pickled(path):
    path.write_bytes(pickle.dumps({"weights": [1.0]}))


def _archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../model.safetensors", STORED.read_bytes())
        archive.writestr("/etc/model.safetensors", b"")


def _raw(path, header: bytes, size: int | None = None):
    path.write_bytes(struct.pack("<Q", len(header) if size is None else size) + header + bytes(64))


def _overlapping(path):
    entry = {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]}
    _raw(path, json.dumps({"a": entry, "b": entry | {"data_offsets": [16, 48]}}).encode())


def _truncated(path):
    path.write_bytes(STORED.read_bytes()[:-100])


def _flipped(path):
    content = bytearray(STORED.read_bytes())
    content[-1000] ^= 1
    path.write_bytes(content)


def _not_finite(path):
    _forged(path, arrays={"scaler.shift": np.array([np.nan])})


def _single(path):
    """The Gamma rates, whose small diffusions single precision would lose."""
    _forged(path, arrays={"model.dynamics.q.rate": np.ones(2, np.float32)})


MODELS = {
    "33 pickle": (_pickled, "not a lamperti model"),
    "34 archive with paths": (_archive, "not a lamperti model"),
    "34 path as name": (lambda path: _forged(path, arrays={"../../x": np.zeros(2)}), "unknown"),
    "35 overlapping tensors": (_overlapping, "not a lamperti model"),
    "35 giant header": (lambda path: _raw(path, b"{}", 2**62), "not a lamperti model"),
    "36 newer": (lambda path: _forged(path, change={"schema": 99, "version": "9.9"}), "lamperti 9.9"),
    "37 NaN": (_not_finite, "not finite"),
    "47 single precision": (_single, "'model.dynamics.q.rate' is F32"),
    "38 truncated": (_truncated, "not a lamperti model"),
    "38 flipped bit": (_flipped, "checksum"),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_bad_model_file_is_refused_in_one_sentence(case, tmp_path, capsys):
    make, said = MODELS[case]
    path = tmp_path / "model.safetensors"
    make(path)
    with pytest.raises(lp.ModelFileError, match=said):
        lp.load(path)
    for command in (
        ["info", path],
        ["export", tmp_path, tmp_path / "other"],
        ["simulate", path, "--out", tmp_path / "s"],
    ):
        assert main([str(a) for a in command]) == 1
        captured = capsys.readouterr()
        (line,) = captured.err.splitlines()
        assert captured.out == "" and line.startswith("lamperti: ") and said in line
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_an_older_model_is_migrated(tmp_path, capsys):
    """Case 36: and what is exported again is of the present format."""
    assert main(["export", str(STORED), str(tmp_path / "new")]) == 0
    with safe_open(tmp_path / "new", framework="numpy") as opened:
        assert json.loads(opened.metadata()["lamperti"])["schema"] == SCHEMA
    assert main(["info", str(tmp_path / "new"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["training"]["iterations"] == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO], ids=errno.errorcode.get)
def test_an_export_that_the_disk_refuses_leaves_nothing(number, tmp_path, capsys, monkeypatch):
    """Case 39."""

    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    assert main(["export", str(STORED), str(tmp_path / "new")]) == 1
    assert os.strerror(number) in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.fixture
def data(tmp_path):
    series = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": series.times, "y": series.values[:, 0]})
    return tmp_path / "data.csv"


@pytest.fixture
def several(tmp_path):
    """The data of the small fitted model with its configuration, whose programs other tests have compiled."""
    series = fitted.data().series
    columns = {"time": np.concatenate([s.times for s in series]), "y": np.concatenate([s.values[:, 0] for s in series])}
    write_csv(tmp_path / "several.csv", columns | {"who": np.repeat(np.arange(len(series)), len(series[0]))})

    def command(**changes):
        config = lp.results.Config(fitted.MODEL, fitted.FIT.model_copy(update=changes))
        (tmp_path / "small.toml").write_text(to_toml(config))
        return ["fit", str(tmp_path / "several.csv"), "--id", "who", "--config", str(tmp_path / "small.toml"), "--out"]

    return command


def _fit(data, out, *options):
    small = ["--window", "6", "--latent-dim", "2", "--n-inducing", "8", "--no-figures"]
    return main([str(a) for a in ["fit", data, "--out", out, *small, *options]])


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_folder_that_cannot_be_written_is_refused_before_training(number, data, tmp_path, capsys, monkeypatch):
    """Cases 39 and 40: at the probe."""
    usual = os.open

    def refuse(path, flags, *rest, **options):
        if ".probe" in str(path):
            raise OSError(number, os.strerror(number))
        return usual(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("lamperti.fitting.build_model", None)  # it is not reached
    assert _fit(data, tmp_path / "run") == 1
    assert os.strerror(number) in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_a_disk_with_too_little_room_is_refused_before_training(data, tmp_path, capsys, monkeypatch):
    """Case 39."""
    model = lp.load(STORED).model
    monkeypatch.setattr("lamperti.fitting.build_model", lambda *args, **options: model)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("usage", (), {"free": 1000})())
    assert _fit(data, tmp_path / "run") == 1
    assert "MB left; the run needs" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_a_second_writer_is_refused(data, tmp_path, capsys):
    """Case 49."""
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run" / "lock"):
        assert _fit(data, tmp_path / "run", "--overwrite") == 1
        assert f"in use by process {os.getpid()} on " in capsys.readouterr().err


def test_a_lock_that_a_dead_process_left_is_taken_over_aloud(data, tmp_path, capsys):
    """Case 49: the fit goes on, here to the next refusal."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").write_text(json.dumps({"pid": 2**22 + 1, "host": "elsewhere", "since": "then"}))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert _fit(data, tmp_path / "run", "--batch-size", 10**9) == 2
    note, *_, refusal = capsys.readouterr().err.splitlines()
    assert f"process {2**22 + 1} on elsewhere" in note and "its lock is stale and is taken over" in note
    assert "GB of memory" in refusal


# Stops for a while after each record, so that signals come while training is at work.
CHILD = """
import sys, time
from lamperti.cli import main
from lamperti.progress import ProgressLine
def pause(self, record):
    print("at work", flush=True)
    time.sleep(float(sys.argv[1]))
ProgressLine.__call__ = pause
sys.exit(main(sys.argv[2:]))
"""


@contextmanager
def _at_work(seconds, *command):
    """A process that trains, once it has committed something."""
    words = [sys.executable, "-c", CHILD, str(seconds), *(str(part) for part in command)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "at work\n", child.stderr.read()
            yield child
        finally:
            child.kill()


def test_a_process_that_gets_signals_keeps_what_it_committed(several, tmp_path):
    """Case 42: SIGTERM ends the iteration and writes the model; of two SIGINTs the second acts at once."""
    run = tmp_path / "run"
    with _at_work(0.5, *several(max_iterations=10**6, patience=10**6), run) as child:
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 143, err
    assert f"Go on with: lamperti resume {run}" in out
    history = lp.load(run).history
    assert history.status == "terminated" and len(history.records) >= 1
    before = [place.name for place in committed(run / "checkpoints")]
    with _at_work(300, "resume", run) as child:
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err == f"lamperti: interrupted; what was committed is kept. Go on with: lamperti resume {run}\n"
    after = [place.name for place in committed(run / "checkpoints")]
    assert max(after) > max(before)
    assert all(read_commit(run / "checkpoints" / name) for name in after)


def test_training_that_is_never_finite_exits_with_three_and_a_diagnosis(several, tmp_path, capsys, monkeypatch):
    """Case 44: the real loop, from a start whose kernel matrix cannot be factorised."""

    def broken(*args, **options):
        model = build_model(*args, **options)
        return eqx.tree_at(lambda m: m.dynamics.jitter, model, jnp.asarray(jnp.nan))

    monkeypatch.setattr("lamperti.fitting.build_model", broken)
    command = several(max_iterations=100, validate_every=50)
    assert main([*command, str(tmp_path / "run")]) == 3
    err = capsys.readouterr().err
    assert "not finite" in err and "20 × refused step, 3 × rollback, 3 × raised jitter" in err
    assert "larger jitter" in err and "Traceback" not in err
    assert not (tmp_path / "run").exists()


def test_each_rollback_raises_the_present_jitter_tenfold():
    """Case 45: three rungs from where training stands, not from the best state; then a named error."""
    model = lp.load(STORED).model
    walk = prepare(fitted.data().series, fitted.MODEL, fitted.FIT)
    run = _Run(model, walk.segments(model.encoder.lead), None, walk.settings)
    raised = eqx.tree_at(lambda s: s.model.dynamics.jitter, run.at.state, jnp.asarray(3e-5))
    run.at.state = raised
    for rung in (3e-4, 3e-3, 3e-2):
        run.at.refused_in_a_row = 5
        run.roll_back(7)
        np.testing.assert_allclose(run.at.state.model.dynamics.jitter, rung, rtol=1e-12)
        np.testing.assert_array_equal(run.at.state.model.dynamics.Z, model.dynamics.Z)
        assert run.at.refused_in_a_row == 0
    assert run.at.slowdown == pytest.approx(0.3**3)
    assert run.history.counts() == {"rollback": 3, "raised jitter": 3}
    with pytest.raises(lp.TrainingError, match="after 3 returns"):
        run.roll_back(8)


def test_training_that_would_not_fit_into_memory_is_refused(data, tmp_path, capsys, monkeypatch):
    """Case 43."""
    model = lp.load(STORED).model
    monkeypatch.setattr("lamperti.fitting.build_model", lambda *args, **options: model)
    monkeypatch.setattr("lamperti.fitting.train", None)  # it is not reached
    with pytest.raises(lp.ConfigError, match="GB of memory"):
        lp.fit(fitted.data().series, fitted.MODEL, lp.FitConfig(batch_size=10**9))
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # the data is short, which is said first
        assert _fit(data, tmp_path / "run", "--batch-size", 10**9) == 2
    assert "smaller batch_size" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    for name, text in (
        ("_MEMINFO", "MemTotal: 9 kB\nMemAvailable:   4096 kB\n"),
        ("_LIMIT", "3000000"),
        ("_USED", "1"),
    ):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(memory, name, tmp_path / name)
    assert memory.available_bytes() == 2_999_999
    (tmp_path / "_LIMIT").write_text("max")
    assert memory.available_bytes() == 4096 * 1024


def wall_clock_durations(text: str) -> list[str]:
    """Where a source looks at a clock that can be set, to measure how long something takes. A date that is only written
    down is no duration."""
    tree = ast.parse(text)
    modules = {"time"} | {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "time"
    }
    found, dates = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            found += [
                f"from time import {alias.name}" for alias in node.names if alias.name in ("time", "time_ns", "*")
            ]
        if isinstance(node, ast.Attribute) and node.attr in ("time", "time_ns"):
            found += [ast.unparse(node)] if ast.unparse(node.value) in modules else []
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _looks_at_the_date(node.value):
            dates |= {ast.unparse(t) for t in (node.targets if isinstance(node, ast.Assign) else [node.target])}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.expr)]
            found += [ast.unparse(node)] if _looks_at_the_date(node) or dates & set(sides) else []
    return found


def _looks_at_the_date(node: ast.AST) -> bool:
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr in ("now", "utcnow", "today") for call in calls)


def test_durations_are_not_measured_by_a_clock_that_can_jump():
    """Case 50."""
    for file in sorted(SOURCE.rglob("*.py")):
        assert wall_clock_durations(file.read_text("utf-8")) == [], file


@pytest.mark.parametrize(
    "text",
    [
        "import time\nbegan = time.time()",
        "import time as t\nt.time_ns()",
        "from time import time",
        "from time import time as clock",
        "began = datetime.now(UTC)\nwork()\nseconds = later() - began",
        "seconds = (datetime.utcnow() - before).total_seconds()",
        "self.began = datetime.datetime.now()\nspent = end - self.began",
        "clock = time.time",
    ],
)
def test_a_clock_that_can_jump_would_be_found(text):
    assert wall_clock_durations(text)
    assert not wall_clock_durations("import time\nbegan = time.monotonic()\nstamp = datetime.now(UTC).isoformat()")
