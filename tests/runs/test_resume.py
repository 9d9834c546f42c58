"""Runs of the trainer: what is interrupted goes on bit by bit, and nothing else than its own data is taken."""

import dataclasses
import errno
import json
import os
import shutil
import signal

import jax
import numpy as np
import pytest
from tests.refusals import Refusal

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.runs.commits import committed, read_commit
from lamperti.runs.folder import unfinished_run
from lamperti.runs.lock import locked
from lamperti.train.history import History

CLOCK = {"seconds", "eta_seconds"}


def _same(one: lp.FitResult, two: lp.FitResult) -> None:
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(two.model), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_array_equal(one.states, two.states)
    assert _timeless(one.history) == _timeless(two.history)
    assert one.dimensions == two.dimensions


def _timeless(history):
    """The history but for what the clock says."""
    plain = dataclasses.asdict(history)
    plain["records"] = [{k: v for k, v in record.items() if k not in CLOCK} for record in plain["records"]]
    return {k: v for k, v in plain.items() if k not in CLOCK}


def _ctrl_c(record):
    if record.iteration == 2:
        # As if the user pressed Ctrl-C while the next iteration runs: noted now, obeyed after it.
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A run that Ctrl-C stopped, and what it gave back."""
    path = tmp_path_factory.mktemp("runs") / "run"
    result = lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=path, progress=_ctrl_c)
    return path, result


@pytest.fixture
def stopped(interrupted, tmp_path):
    return shutil.copytree(interrupted[0], tmp_path / "run")


def test_ctrl_c_commits_and_gives_back_what_was_learned(interrupted):
    path, result = interrupted
    assert result.history.status == "interrupted"
    assert result.history.records[-1].iteration == 2
    names = sorted(p.name for p in path.iterdir())
    assert names == ["checkpoints", "config.json", "history.jsonl", "lock", "manifest.json", "model.safetensors"]
    assert len(committed(path / "checkpoints")) == 2
    lines = [json.loads(line) for line in (path / "history.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["record", "record", "end"]
    assert (path / "lock").read_bytes() == b""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_resumed_run_is_bit_identical_to_one_that_never_stopped(stopped):
    resumed = lp.resume(stopped, fitted.data().series)
    _same(resumed, fitted.result())
    assert resumed.history.status == "max_iterations"
    again = lp.resume(stopped, fitted.data().series)  # done: nothing is trained
    _same(again, fitted.result())
    _same(lp.load(stopped), fitted.result())


def test_a_damaged_commit_is_passed_over_aloud_and_the_one_before_it_used(stopped):
    place = committed(stopped / "checkpoints")[0] / "state.safetensors"
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 16
    place.write_bytes(content)
    with pytest.warns(lp.LampertiWarning, match="000002 is damaged and passed over: the checksum"):
        _same(lp.resume(stopped, fitted.data().series), fitted.result())


def test_a_run_without_an_intact_commit_is_refused(stopped):
    for place in committed(stopped / "checkpoints"):
        (place / "SHA256SUMS").unlink()
    with pytest.warns(lp.LampertiWarning, match="passed over"), pytest.raises(lp.RunError, match="none of the 2 "):
        lp.resume(stopped, fitted.data().series)


def test_other_data_is_refused_with_what_differs(stopped):
    series = fitted.data().series
    for other, match in (
        (series[:3], "it has 3 series of 180 samples in all, the run has 4 of 240"),
        ([lp.Series(s.values, s.times, names="z") for s in series], "channels are z, those of the run y"),
        ([lp.Series(s.values + 1e-9, s.times) for s in series], "values or times differ"),
    ):
        with pytest.raises(lp.RunError, match=match):
            lp.resume(stopped, other)
    with pytest.raises(lp.RunError, match="does not say where its data came from"):
        lp.resume(stopped)


def test_an_edited_configuration_is_refused(stopped):
    text = (stopped / "config.json").read_text()
    (stopped / "config.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(lp.RunError, match="damaged or was edited"):
        lp.resume(stopped, fitted.data().series)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(lp.RunError, match=r"has no config\.json"):
        lp.resume(tmp_path, fitted.data().series)


def test_a_run_is_neither_replaced_nor_written_by_two(stopped):
    series = fitted.data().series
    with pytest.raises(lp.ConfigError, match="holds a model already"):
        lp.fit(series, fitted.MODEL, fitted.FIT, run=stopped)
    (stopped / "model.safetensors").unlink()
    with pytest.raises(lp.ConfigError, match=r"not finished\. Resume it"):
        lp.fit(series, fitted.MODEL, fitted.FIT, run=stopped)
    with locked(stopped / "lock"):
        with pytest.raises(lp.RunError, match="in use by process"):
            lp.fit(series, fitted.MODEL, fitted.FIT, run=stopped, overwrite=True)
        with pytest.raises(lp.RunError, match="in use by process"):
            lp.resume(stopped, series)
    assert len(committed(stopped / "checkpoints")) == 2


def test_other_versions_are_told_of(stopped, monkeypatch):
    monkeypatch.setattr("lamperti.runs.fingerprint.versions", lambda: {"jax": "99"})
    monkeypatch.setattr("lamperti.fitting._learn", lambda *args, **options: fitted.result())
    with pytest.warns(lp.LampertiWarning, match="jax .* is now 99"):
        lp.resume(stopped, fitted.data().series)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_place_that_cannot_be_written_is_refused_before_training(tmp_path, monkeypatch, number):
    def refuse(*args, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("lamperti.runs.folder.atomic_write", refuse)
    monkeypatch.setattr("lamperti.fitting.build_model", None)
    with pytest.raises(lp.RunError, match=os.strerror(number)):
        lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_disk_without_room_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("usage", (), {"free": 1000})())
    model = fitted.result().model
    monkeypatch.setattr("lamperti.fitting.build_model", lambda *args, **options: model)
    with pytest.raises(lp.RunError, match=r"0\.0 MB left; the run needs"):
        lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_disk_that_is_full_at_the_second_commit_keeps_the_first_to_go_on_from(tmp_path):
    """Case 39."""
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:

        def fill(record):
            Refusal(patch, 3, errno.ENOSPC)  # the folder is made, the file is opened; its content finds no room

        with pytest.raises(lp.RunError, match=r"No space left on device.*committed before is intact"):
            lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=run, progress=fill)
    (only,) = committed(run / "checkpoints")
    assert json.loads(read_commit(only)["state.json"])["iteration"] == 1
    assert sorted(path.name for path in run.iterdir()) == [
        "checkpoints",
        "config.json",
        "history.jsonl",
        "lock",
        "manifest.json",
    ]
    assert [path.name for path in (run / "checkpoints").iterdir()] == [only.name]
    _same(lp.resume(run, fitted.data().series), fitted.result())


def test_a_run_that_is_opened_sweeps_what_a_killed_process_left_and_nothing_else(stopped):
    left = [stopped / f".{name}.0123456789ab.tmp" for name in ("config.json", "history.jsonl", "model.safetensors")]
    others = [stopped / ".notes.tmp", stopped / ".probe", stopped / ".config.json.mine.tmp", stopped / "notes"]
    for path in (*left, stopped / ".lamperti.probe", *others):
        path.write_bytes(b"part")
    with unfinished_run(stopped):
        pass
    assert not any(path.exists() for path in (*left, stopped / ".lamperti.probe"))
    assert all(path.exists() for path in others)


def test_a_second_ctrl_c_stops_at_once_and_the_last_commit_is_intact(stopped):
    def twice(record):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        lp.resume(stopped, fitted.data().series, progress=twice)
    _same(lp.resume(stopped, fitted.data().series), fitted.result())


def test_what_led_to_a_stop_stays_in_the_run(stopped, monkeypatch, capsys):
    history = History()
    history.note(4, "rollback")

    def fail(*args):
        raise lp.TrainingError("values stay not finite; use a smaller learning_rate.", history)

    monkeypatch.setattr("lamperti.fitting.train", fail)
    (stopped / "model.safetensors").unlink()
    with pytest.raises(lp.TrainingError):
        lp.resume(stopped, fitted.data().series)
    lines = [json.loads(line) for line in (stopped / "history.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["rollback", "end"]
    assert main(["info", str(stopped)]) == 0
    assert "use a smaller learning_rate" in capsys.readouterr().out
