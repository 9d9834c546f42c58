"""The work of one cell on a stand-in for a recording: simulate, fit its first part, forecast the rest, run freely."""

from functools import lru_cache

from lamperti.bench import pictures, problems
from lamperti.bench.cells import Cell
from lamperti.bench.futures import future_rows, overlap
from lamperti.bench.jobs import Job, Outcome, Work, fingerprint
from lamperti.bench.measures import fit_rows, free_run_rows, verdict_of
from lamperti.bench.methods import BASELINES, Training, fit_method, is_learned
from lamperti.bench.origins import Part, part_of
from lamperti.bench.problems import StandIn
from lamperti.data.series import Series
from lamperti.evaluation._paths import Paths

METHODS = (*BASELINES, "lamperti")


def jobs(stand_ins: list[StandIn], methods: list[str], seeds: int, part: Part) -> list[Job]:
    """Cells of the stand-ins, cheap methods first."""
    return [
        _job(stand_in, method, seed, part)
        for seed in range(seeds)
        for stand_in in stand_ins
        for method in METHODS
        if method in methods
    ]


def _job(stand_in: StandIn, method: str, seed: int, part: Part) -> Job:
    cell = Cell(stand_in.name, None, method, seed)
    definition = stand_in, problems.RECORDING_SEED, problems.REAL_SEEDS, part
    return Job(cell, fingerprint(definition), is_learned(method), lambda work: run(stand_in, cell, part, work))


def run(stand_in: StandIn, cell: Cell, part: Part, work: Work) -> Outcome:
    """Fit and score. A free run that cannot be measured is noted and leaves the forecasts standing."""
    series, context, horizons = _recording(stand_in, cell.seed), stand_in.context, stand_in.horizons
    train = series[: stand_in.train]
    training = Training(cell.seed, work.minutes, max(horizons), noise=True, progress=work.progress)
    fitted = fit_method(cell.method, [train], training)
    starts = part_of(stand_in.origins(), part, overlap(horizons, stand_in.stride))
    rows, notes, names = fit_rows(fitted), [], []
    rows += future_rows(fitted, train, series, starts, context, horizons, stand_in.stride)
    try:
        rows += free_run_rows(fitted, _real(stand_in), stand_in.settle, train.values[:, 0])
    except Exception as error:
        notes.append(f"free runs were not measured ({type(error).__name__}: {error})")
    if fitted.result is not None and cell.seed == 0:
        drawings = pictures.of_recording(fitted.result, series, context, max(horizons), starts[0])
        names, missing = pictures.draw(drawings, work.folder, cell)
        notes += missing
    return Outcome(tuple(rows), tuple(notes), tuple(names), verdict_of(fitted))


# Methods of one stand-in follow each other, so one recording kept in memory saves most simulations.
@lru_cache(maxsize=2)
def _recording(stand_in: StandIn, seed: int) -> Series:
    return stand_in.recording(seed)


@lru_cache(maxsize=2)
def _real(stand_in: StandIn) -> list[Paths]:
    return stand_in.real_runs()
