"""Faults of model files, runs and resources (cases 33-50), through the command line and, where cheap, the library.

Nothing is trained here: models come from the stored file of the first format."""

import ast
import errno
import json
import os
import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.data.writing import write_csv
from lamperti.io import _checksum
from lamperti.runs.lock import locked
from lamperti.train import memory

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
        assert json.loads(opened.metadata()["lamperti"])["schema"] == 2
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


def test_training_that_would_not_fit_into_memory_is_refused(data, tmp_path, capsys, monkeypatch):
    """Case 43."""
    model = lp.load(STORED).model
    monkeypatch.setattr("lamperti.fitting.build_model", lambda *args, **options: model)
    monkeypatch.setattr("lamperti.fitting.train", None)  # it is not reached
    with pytest.raises(lp.ConfigError, match="GB of memory"):
        lp.fit(fitted.data().series, fitted.MODEL, lp.FitConfig(batch_size=10**9))
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


def test_durations_are_not_measured_by_a_clock_that_can_jump():
    """Case 50."""
    wall = {"time.time", "time.time_ns"}
    for file in sorted(SOURCE.rglob("*.py")):
        calls = [node.func for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not wall & {ast.unparse(call) for call in calls}, file
