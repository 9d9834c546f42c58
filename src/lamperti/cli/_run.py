"""What is kept of a run beside its model, and what is told of it."""

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from lamperti._errors import LampertiError, LampertiWarning
from lamperti.cli._say import is_quiet, say
from lamperti.cli._toml import to_toml
from lamperti.data.files import atomic_write
from lamperti.data.writing import write_csv
from lamperti.diagnostics.summary import guard_events, how_it_ended
from lamperti.io import MODEL_NAME, write_model
from lamperti.results import FitResult
from lamperti.runs.commits import committed
from lamperti.runs.folder import CHECKPOINTS, FIGURES, claim_in_run
from lamperti.train.history import History, Record
from lamperti.train.interrupts import Terminated

_EXIT_CODES = {"interrupted": 130, "terminated": 143}


TABLES = ("config.toml", "history.csv")
RUN_FILES = (MODEL_NAME, *TABLES)


def write_run(result: FitResult, folder: Path) -> None:
    """model.safetensors, history.csv and config.toml, which ``lamperti fit --config`` reads."""
    write_tables(result, folder)
    write_model(result, folder / MODEL_NAME)


def write_tables(result: FitResult, folder: Path) -> None:
    atomic_write(folder / "config.toml", to_toml(result.config).encode())
    write_history(result.history, folder / "history.csv")


def write_figures(result: FitResult, run: Path) -> None:
    """What ``result.plot`` draws of the data, as PNG. A figure that cannot be drawn is told of: the model is safe."""
    from lamperti.viz import write_png  # loads matplotlib

    drawn = ["phase_space", "forecast", "drift"]
    drawn += ["training"] if result.history.records else []
    drawn += ["dimensions"] if result.dimensions is not None and result.dimensions.compared else []
    for name in drawn:
        with told_of(f"the figure {name}"):
            file = f"{FIGURES}/{name}.png"
            claim_in_run(run, file)
            (run / FIGURES).mkdir(exist_ok=True)
            write_png(getattr(result.plot, name)(), run / file)


@contextmanager
def told_of(what: str) -> Iterator[None]:
    """The model is safe: whatever goes wrong with ``what`` beside it must not hide that, nor how training ended."""
    try:
        yield
    except Exception as error:
        reason = getattr(error, "strerror", None) or error
        if not isinstance(error, LampertiError | OSError):
            reason = f"unexpected {type(error).__name__}: {error}"
        said = str(reason).rstrip(".")
        warnings.warn(f"{what} could not be made: {said}. The model is saved.", LampertiWarning, stacklevel=4)


def write_history(history: History, path: Path) -> None:
    columns = [field.name for field in dataclasses.fields(Record)]
    write_csv(path, {name: _column([getattr(r, name) for r in history.records]) for name in columns})


def _column(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


@contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """An interrupt at once says whether there is something to go on from."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as error:
        if committed(folder / CHECKPOINTS):
            raise type(error)(
                f"interrupted; what was committed is kept. Go on with: lamperti resume {folder}"
            ) from None
        raise


@contextmanager
def _what_is_saved(folder: Path, while_: str) -> Iterator[None]:
    """An interrupt when training is done says that nothing is lost."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as error:
        raise type(error)(f"interrupted while {while_}; the model is saved in {folder}.") from None


def conclude(result: FitResult, folder: Path, *, figures: bool, as_json: bool) -> int:
    """Write the tables of a run and, if it came to its end, judge it and draw its figures; say how it ended, and the
    verdict last. The exit code."""
    with told_of("config.toml and history.csv"):
        claim_in_run(folder, *TABLES)
        write_tables(result, folder)
    status = result.history.status
    verdict = None
    if status not in _EXIT_CODES:  # who pressed Ctrl-C does not want to wait
        stage = Console(stderr=True, highlight=False, quiet=is_quiet())
        with _what_is_saved(folder, "forecasts were compared with simple methods"):
            stage.print("comparing forecasts with simple methods")
            with told_of("the comparison with simple methods"):
                verdict = result.verdict
        if figures:
            stage.print("drawing figures")
            with _what_is_saved(folder, "figures were drawn"):
                write_figures(result, folder)
    go_on = f" Go on with: lamperti resume {folder}" if status in _EXIT_CODES else ""
    facts = {"out": str(folder)} | training_facts(result) | {"verdict": verdict and verdict.to_dict()}
    say(f"{folder}: {summary(result)}.{go_on}", facts, as_json=as_json)
    if verdict and not as_json:
        say(verdict.sentence, {}, as_json=False)
    return exit_code(result)


def exit_code(result: FitResult) -> int:
    """Of a command that trained: 0, or that of the signal which ended training."""
    return _EXIT_CODES.get(result.history.status, 0)


def summary(result: FitResult) -> str:
    """One sentence on how training ended."""
    h = result.history
    last = h.records[-1].iteration if h.records else 0
    return f"{last} iterations in {h.seconds:.0f} s ({how_it_ended(h.status)}), {h.what_was_kept()}"


def guard_summary(history: History) -> str:
    """What the numerical guard had to do, and when it began to."""
    found = guard_events(history).items()
    return ", ".join(f"{n} × {kind} (first at iteration {first})" for kind, (n, first) in found) or "nothing to do"


def training_facts(result: FitResult) -> dict[str, Any]:
    h = result.history
    return {
        "status": h.status,
        "iterations": h.records[-1].iteration if h.records else 0,
        "best_iteration": h.best_iteration,
        "best_score": h.best_score,
        "kept_score": None if h.kept is None else h.kept.validation,
        "seconds": h.seconds,
        "events": h.counts(),
    }
