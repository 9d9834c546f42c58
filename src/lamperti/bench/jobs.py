"""A piece of work and what comes of it: all that the runner knows of the benchmark."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lamperti.bench.cells import Cell, Row
from lamperti.train.loop import Progress


@dataclass(frozen=True)
class Work:
    """What every piece of work is given."""

    folder: Path
    minutes: float
    data: Path | None = None
    """Folder of real recordings, if there is one."""
    progress: Progress | None = None


@dataclass(frozen=True)
class Outcome:
    """What was measured, and what could not be."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    verdict: str = ""


@dataclass(frozen=True, eq=False)
class Job:
    """One cell and how it is filled."""

    cell: Cell
    fingerprint: str
    timed: bool
    """Whether it trains by the clock."""
    run: Callable[[Work], Outcome]


def fingerprint(definition: object) -> str:
    """A short name for the definition of a problem: results of two definitions must not stand in one table."""
    return hashlib.sha256(repr(definition).encode()).hexdigest()[:12]
