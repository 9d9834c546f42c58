"""SIGTERM and Ctrl-C in programs that use the library: all is kept first, then they reach whom they were meant for."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti import fitting
from lamperti.cli import main
from lamperti.data.writing import write_csv
from lamperti.runs.commits import committed
from lamperti.train.interrupts import Terminated, termination_raised

ROOT = Path(__file__).parents[2]


@pytest.fixture
def handled():
    """A handler of the user's own for both signals; what it was called with."""
    calls = []

    def handler(number, frame):
        calls.append((number, frame is not None))

    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    yield calls
    for number, old in before.items():
        signal.signal(number, old)


def _signal(number):
    def at_the_second(record):
        if record.iteration == 2:
            signal.raise_signal(number)

    return at_the_second


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_handler_of_the_users_own_is_called_once_all_is_kept(number, handled, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(fitting, "pass_on", lambda status: (kept.append(lp.load(tmp_path / "run")), PASS_ON(status)))
    result = lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=tmp_path / "run", progress=_signal(number))
    assert handled == [(number, True)]
    assert result.history.status == ("terminated" if number == signal.SIGTERM else "interrupted")
    assert result.history.records[-1].iteration == 2
    assert len(kept) == 1 and kept[0].history.status == result.history.status  # the model was there before the call
    assert len(committed(tmp_path / "run" / "checkpoints")) == 2


PASS_ON = fitting.pass_on

PROGRAM = """
import signal, sys
sys.path[:0] = sys.argv[2:]
import fitted, lamperti as lp
def at_the_second(record):
    if record.iteration == 2:
        signal.raise_signal(signal.SIGTERM)
lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, run=sys.argv[1], progress=at_the_second)
print("went on")
"""


def test_a_program_without_a_handler_ends_by_the_signal_and_its_run_is_kept(tmp_path):
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), str(ROOT / "src"), str(ROOT / "tests")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert "went on" not in done.stdout
    assert lp.load(tmp_path / "run").history.status == "terminated"
    assert len(committed(tmp_path / "run" / "checkpoints")) == 2


def _stop_in_the_likelihood_fit(monkeypatch):
    def calibrate(*args, **options):
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr(fitting, "calibrate", calibrate)
    history = dataclasses.replace(fitted.result().history)
    monkeypatch.setattr(fitting, "train", lambda *args: (fitted.result().model, history))
    return fitted.FIT.model_copy(update={"calibrate": True})


def test_the_likelihood_fit_is_ended_and_what_was_trained_returned(handled, monkeypatch):
    result = lp.fit(fitted.data().series, fitted.MODEL, _stop_in_the_likelihood_fit(monkeypatch))
    assert result.history.status == "terminated" and handled == [(signal.SIGTERM, True)]


@pytest.fixture
def command(tmp_path):
    """The command that fits the small data; the dimension is left to it."""
    series = fitted.data().series
    columns = {"time": np.concatenate([s.times for s in series]), "y": np.concatenate([s.values[:, 0] for s in series])}
    write_csv(tmp_path / "data.csv", columns | {"who": np.repeat(np.arange(len(series)), len(series[0]))})
    small = ["--id", "who", "--window", "6", "--n-inducing", "8", "--segment-length", "30", "--no-figures"]
    return ["fit", str(tmp_path / "data.csv"), "--out", str(tmp_path / "run"), *small]


def test_the_command_line_exits_with_143_in_the_likelihood_fit_and_keeps_the_model(
    command, tmp_path, monkeypatch, capsys
):
    _stop_in_the_likelihood_fit(monkeypatch)
    (tmp_path / "small.toml").write_text('[model]\nlag = 2\nn_components = 4\nkernel = "se"\n')
    assert main([*command, "--latent-dim", "2", "--config", str(tmp_path / "small.toml")]) == 143
    assert "Go on with: lamperti resume" in capsys.readouterr().out
    assert lp.load(tmp_path / "run").history.status == "terminated"


def test_sigterm_outside_training_exits_with_143_and_says_what_is_there(command, tmp_path, monkeypatch, capsys):
    def at_once(*args, **options):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(fitting, "_start", at_once)
    before = signal.getsignal(signal.SIGTERM)
    assert main([*command, "--latent-dim", "2"]) == 143
    assert capsys.readouterr().err == "lamperti: interrupted; nothing was written.\n"
    assert not (tmp_path / "run").exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_while_figures_are_drawn_says_that_the_model_is_saved(command, tmp_path, monkeypatch, capsys):
    def interrupt(*args):
        raise KeyboardInterrupt

    fit_code = sys.modules["lamperti.cli.fit"]
    monkeypatch.setattr(fit_code, "fit_series", lambda *args, **options: fitted.result())
    monkeypatch.setattr("lamperti.cli._run.write_figures", interrupt)
    (tmp_path / "run").mkdir()
    assert main([word for word in command if word != "--no-figures"]) == 130
    assert "while figures were drawn; the model is saved in" in capsys.readouterr().err


def test_an_ignored_signal_stays_ignored_and_other_threads_are_left_alone():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with termination_raised():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    seen = []

    def elsewhere():
        with termination_raised():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]
    with pytest.raises(Terminated), termination_raised():
        signal.raise_signal(signal.SIGTERM)
