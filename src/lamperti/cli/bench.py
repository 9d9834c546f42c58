"""``lamperti bench``: run the benchmark, and report on it."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console

from lamperti._errors import ConfigError
from lamperti.cli._say import is_quiet, say
from lamperti.progress import clock

if TYPE_CHECKING:  # the benchmark loads pandas and all baselines, which no other command should wait for
    from lamperti.bench.runner import Event

bench = App(name="bench", help="Run the benchmark and tell what came of it.")

Names = Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)]


@bench.command
def run(
    *,
    suite: Literal["quick", "paper", "core", "recordings", "real", "all", "final"] = "quick",
    out: Path,
    seeds: int | None = None,
    minutes: float | None = None,
    methods: Names = None,
    systems: Names = None,
    noise: Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True)] = None,
    data: Annotated[Path | None, Parameter(env_var="LAMPERTI_DATA")] = None,
    origins: Literal["development", "report"] = "report",
    retry: bool = False,
    json: bool = False,
) -> int:
    """Fit and measure every method on every problem of a suite. What is done is kept: the same command goes on.

    Args:
        suite: quick (half an hour on two cores), paper, core, recordings (long simulated ones), real (recordings from
            --data), all of these (days with all seeds), or final (three systems that nothing was tuned on)
        out: folder of the results; one of an earlier run is gone on with
        seeds: number of training seeds; each has data of its own
        minutes: training time of each fit of the library
        methods: only these
        systems: only these problems
        noise: only these levels, in sds of the observable
        data: folder of the real recordings; without it they are skipped
        origins: of recordings, simulated or real, forecast from those kept for reports, or from the others, which are
            for development
        retry: try again what has failed
        json: print one JSON object when done
    """
    from lamperti.bench import runner
    from lamperti.bench.jobs import Work
    from lamperti.bench.suites import SUITES, jobs_of

    chosen = SUITES[suite]
    work = Work(out, chosen.minutes if minutes is None else minutes, data)
    if not work.minutes > 0:
        raise ConfigError(f"--minutes must be positive; got {work.minutes:g}.")
    jobs = jobs_of(chosen, seeds=seeds, noises=noise, methods=methods, systems=systems, origins=origins)
    _prepare(out)
    console = Console(stderr=True, highlight=False, markup=False, quiet=is_quiet())
    source = runner.provenance(_command())
    summary = runner.run(jobs, work, source, lambda event: _tell(console, event), retry=retry)
    told = [
        f"{summary.done} cells done",
        f"{summary.kept} there already" if summary.kept else "",
        f"{summary.failed} failed (see their .json files; --retry runs them again)" if summary.failed else "",
        f"{summary.skipped} skipped" if summary.skipped else "",
    ]
    ending = "interrupted; the same command goes on. " if summary.interrupted else ""
    say(f"{ending}{', '.join(filter(None, told))}: {out}", {"out": str(out)} | asdict(summary), as_json=json)
    return 143 if summary.terminated else 130 if summary.interrupted else 0


@bench.command
def report(folder: Annotated[Path, Parameter(name="DIR")], /, *, docs: Path | None = None, json: bool = False) -> int:
    """Tell what a run came to: targets, tables and pictures, as a page of markdown and one HTML file.

    Args:
        folder: what ``lamperti bench run --out`` filled
        docs: folder of the HTML page, the table and the pictures; the markdown page is written beside it, as DOCS.md.
            DIR/report by default
        json: print one JSON object when done
    """
    from lamperti.bench.report import write_report

    written = [str(path) for path in write_report(folder, folder / "report" if docs is None else docs)]
    say(", ".join(written), {"written": written}, as_json=json)
    return 0


def _prepare(out: Path) -> None:
    """Make the folder; one that holds something else than results is refused."""
    from lamperti.bench.runner import open_folder

    try:
        open_folder(out)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written ({error.strerror}). Choose another place.") from None


def _command() -> str:
    """What was typed, so that a number can be made again; of folders only the name, for the rest does not matter."""
    words = ["lamperti", *sys.argv[1:]]
    places = [i + 1 for i, word in enumerate(words[:-1]) if word in ("--out", "--data")]
    return shlex.join(Path(word).name if i in places else word for i, word in enumerate(words))


def _tell(console: Console, event: "Event") -> None:
    place = f"[{event.number}/{event.total}] {event.cell}"
    if event.result is None:
        line = f"{place} ...  left {clock(float(event.left))}"
    else:
        reason = f": {event.result.reason}" if event.result.reason else ""
        line = (
            f"{place}: {event.result.status} in {event.result.seconds:.0f} s{reason}  left {clock(float(event.left))}"
        )
        for note in event.result.notes:
            line += f"\n    {note}"
    console.print(line, soft_wrap=True)
