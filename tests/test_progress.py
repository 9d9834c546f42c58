"""Progress is shown where someone sees it, and nowhere else."""

import io
import sys
from typing import Any

import pytest

import fitted
import lamperti as lp
from lamperti.progress import ProgressLine, shows_progress
from lamperti.train.history import Record

RECORD = Record(
    iteration=50,
    seconds=60.0,
    elbo=-1.0,
    emission=0.0,
    initial=0.0,
    transition=0.0,
    entropy=0.0,
    kl=0.0,
    validation=-2.0,
    refused=0,
    halvings=0,
    eta_seconds=140.0,
)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@shows_progress
def _job(*, progress=None):
    """A job of three parts, as a fit is."""
    if progress is not None:
        progress.stage("comparing 3 and 4 coordinates")
        progress(RECORD)
        progress.stage("refining")
    return progress


def test_nothing_is_shown_where_nobody_sees_it(capsys):
    assert _job() is None and _job(progress=False) is None
    captured = capsys.readouterr()
    assert not captured.err and not captured.out


def test_true_shows_a_line_a_report_everywhere(capsys):
    assert isinstance(_job(progress=True), ProgressLine)
    captured = capsys.readouterr()
    assert not captured.out
    first, second, third = captured.err.splitlines()
    assert first.startswith("comparing") and second.startswith("iteration 50") and third == "refining"


def test_a_terminal_shows_one_line_without_being_asked_and_none_when_told_so(monkeypatch):
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(_job(), ProgressLine)
    assert "comparing" in sys.stderr.getvalue() or "\x1b[2K" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert _job(progress=False) is None and not sys.stderr.getvalue()


def test_a_notebook_shows_one_line_that_is_written_over(monkeypatch, capsys):
    monkeypatch.setattr("lamperti.progress.in_notebook", lambda: True)
    _job()
    err = capsys.readouterr().err
    assert "\n" not in err and err.count("\r") >= 4 and "iteration 50" in err and err.endswith(" \r")


@shows_progress
def _telling(*, progress: Any = None):
    progress.tell("2 latent coordinates: " + "because " * 20 + "of this.")
    progress(RECORD)


def test_what_is_told_stays_above_the_line(monkeypatch, capsys):
    _telling(progress=True)
    told, record = capsys.readouterr().err.splitlines()
    assert told.endswith("because of this.") and record.startswith("iteration 50")
    monkeypatch.setattr("lamperti.progress.in_notebook", lambda: True)
    _telling()
    told, record = capsys.readouterr().err.split("\n")
    assert told.endswith("because of this.") and "iteration 50" in record
    monkeypatch.setattr("lamperti.progress.in_notebook", lambda: False)
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    _telling()
    assert "because of this." in " ".join(sys.stderr.getvalue().split())


def test_a_function_gets_the_records_as_before(capsys):
    seen = []
    lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, progress=seen.append)
    assert [r.iteration for r in seen] == [1, 2, 3] and not capsys.readouterr().err


def test_time_left_counts_the_fits_after_training():
    with_fit, without = ProgressLine(quiet=True, refines=True), ProgressLine(quiet=True, refines=False)
    for line in (with_fit, without):
        line(RECORD)
    assert without._left() == pytest.approx(140.0, abs=1.0)
    assert with_fit._left() == pytest.approx(140.0 + 0.8 * 200.0, abs=1.0)
    with_fit.stage("refining")
    assert with_fit._left() == pytest.approx(160.0, abs=1.0)


@pytest.mark.parametrize("progress", ["yes", 1, 0.5, []])
def test_what_is_no_choice_of_progress_is_refused(progress):
    with pytest.raises(lp.ConfigError, match="progress must be True, False or a function"):
        lp.fit(fitted.data().series, fitted.MODEL, fitted.FIT, progress=progress)
