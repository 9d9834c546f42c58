"""Run what is not done yet, one cell after the other, keeping each as it is finished.

Results are files; nothing is remembered otherwise. So a run that was interrupted, or that stopped with the machine,
goes on when the same command is given again, and several commands may fill one folder.
"""

import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import lamperti
from lamperti._errors import CapabilityError, ConfigError, DependencyError, LampertiWarning
from lamperti.bench.cells import Cell, CellResult, path_of, read_cell, read_cells, write_cell
from lamperti.bench.jobs import Job, Work
from lamperti.bench.table import CSV, PARQUET, write_table
from lamperti.runs.manifest import listed, refuse_strangers, start_manifest
from lamperti.train.interrupts import Terminated

KIND = "bench"  # of the folder, in its manifest
_AROUND_A_FIT = 90.0  # seconds of compiling and measuring, until there is experience
_BASELINE = 20.0


@dataclass(frozen=True)
class Event:
    """A cell begins (``result`` is None) or has ended."""

    number: int
    total: int
    cell: Cell
    left: float
    """Seconds until all is done, as far as can be told."""
    result: CellResult | None = None


@dataclass(frozen=True)
class Summary:
    done: int
    failed: int
    skipped: int
    kept: int
    """Cells that were there already."""
    interrupted: bool = False
    terminated: bool = False
    """Interrupted by SIGTERM."""


def open_folder(folder: Path) -> None:
    """Make the folder of the results, or go on with one. Raises `ConfigError` for that of something else."""
    folder.mkdir(parents=True, exist_ok=True)
    if listed(folder, KIND) is None:
        if next(read_cells(folder), None) is None:  # those of older versions have no list of their files
            refuse_strangers(folder, "a folder of results of the benchmark", folder.iterdir())
        start_manifest(folder, KIND, (CSV, PARQUET))


def provenance(command: str) -> dict[str, str]:
    """Where a number comes from: what was typed, which version ran, on what machine."""
    return {
        "command": command,
        "version": lamperti.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }


def run(
    jobs: Sequence[Job],
    work: Work,
    source: Mapping[str, str],
    report: Callable[[Event], None],
    *,
    retry: bool = False,
) -> Summary:
    """Fill the cells that are not there; ``retry`` also those that failed. Ends with the table, whatever happens.

    A cell that fails is kept with its reason. One that cannot run here (a package is missing) is kept as skipped and
    looked at again the next time. Raises `ConfigError` where the folder holds results of other settings.
    """
    known = {job.cell: found for job in jobs if (found := _existing(job, work)) is not None}
    again = {"skipped", "failed"} if retry else {"skipped"}
    todo = [job for job in jobs if job.cell not in known or known[job.cell].status in again]
    results: list[CellResult] = []
    stopped: BaseException | None = None
    try:
        for number, job in enumerate(todo, start=1):
            seen = [*known.values(), *results]
            report(Event(number, len(todo), job.cell, _left(todo[number - 1 :], seen, work.minutes)))
            result = replace(_fill(job, work), provenance=source)
            write_cell(work.folder, result)
            results.append(result)
            report(Event(number, len(todo), job.cell, _left(todo[number:], [*seen, result], work.minutes), result))
    except (KeyboardInterrupt, Terminated) as error:
        stopped = error
    write_table(work.folder)
    count = {status: sum(r.status == status for r in results) for status in ("done", "failed", "skipped")}
    return Summary(
        **count, kept=len(jobs) - len(todo), interrupted=stopped is not None, terminated=isinstance(stopped, Terminated)
    )


def _existing(job: Job, work: Work) -> CellResult | None:
    path = path_of(work.folder, job.cell)
    if not path.exists():
        return None
    found = read_cell(path)
    if found.fingerprint != job.fingerprint:
        raise ConfigError(
            f"{path} is of another definition of the problem {job.cell.system} (or of other --origins). Choose another "
            "--out, or delete it."
        )
    if job.timed and found.status == "done" and found.minutes != work.minutes:
        raise ConfigError(
            f"{path} was trained for {found.minutes:g} minutes, not {work.minutes:g}. Give the same --minutes, choose "
            "another --out, or delete it."
        )
    return found


def _fill(job: Job, work: Work) -> CellResult:
    result = CellResult(job.cell, "done", minutes=work.minutes if job.timed else None, fingerprint=job.fingerprint)
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            # notes to a user about his data; here the data is what it is
            warnings.simplefilter("ignore", LampertiWarning)
            outcome = job.run(work)
        result = replace(
            result, rows=outcome.rows, notes=outcome.notes, pictures=outcome.pictures, verdict=outcome.verdict
        )
    except (CapabilityError, DependencyError) as error:
        result = replace(result, status="skipped", reason=str(error))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        result = replace(result, status="failed", reason=f"{type(error).__name__} at {place}: {error}")
    return replace(result, seconds=time.monotonic() - began)


def _left(jobs: Sequence[Job], seen: Sequence[CellResult], minutes: float) -> float:
    """Cells take as long as earlier ones of the same method."""
    times: dict[str, list[float]] = {}
    for result in seen:
        if result.status == "done" and result.minutes in (None, minutes):
            times.setdefault(result.cell.method, []).append(result.seconds)
    guess = {True: 60.0 * minutes + _AROUND_A_FIT, False: _BASELINE}
    return sum(mean(times.get(job.cell.method, [guess[job.timed]])) for job in jobs)
