"""The work of one cell on a simulated problem: simulate, fit, measure."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from lamperti.bench import measures, pictures, problems
from lamperti.bench.cells import Cell, Row
from lamperti.bench.jobs import Job, Outcome, Work, fingerprint
from lamperti.bench.methods import Fitted, Training, fit_method, is_learned
from lamperti.bench.problems import Problem
from lamperti.data.systems import Simulated
from lamperti.evaluation import oracles, protocol
from lamperti.evaluation._paths import Paths

ORACLES = "oracles"


def job(problem: Problem, noise: float, method: str, seed: int) -> Job:
    """One method on one problem."""
    cell = Cell(problem.name, noise, method, seed)
    return Job(cell, fingerprint(definition(problem)), is_learned(method), lambda work: run(problem, cell, work))


def definition(problem: Problem) -> tuple[object, ...]:
    """All that a result depends on besides its own name: cells of two definitions are not mixed."""
    return problem, problems.TRAIN_SEED, problems.TEST_SEED, problems.REAL_SEEDS, oracles.DEFINITION


def run(problem: Problem, cell: Cell, work: Work) -> Outcome:
    """Fit and measure. A measure that fails is noted and leaves the others standing: a fit may have cost minutes."""
    noise = 0.0 if cell.noise is None else cell.noise
    snapshots = pictures.Snapshots()
    train, test = _training(problem, noise, cell.seed), _test(problem, noise, cell.seed)
    training = Training(
        seed=cell.seed,
        minutes=work.minutes,
        horizon=max(problem.horizons),
        latent_dim=problem.latent_dim,
        progress=work.progress,
        watch=snapshots if problem.evolves and cell.seed == 0 else None,
    )
    fitted = fit_method(cell.method, train.series, training)
    rows, notes, names = measures.fit_rows(fitted), [], []
    for name, measure in _measures(problem, train, test, fitted, work.folder / ORACLES).items():
        try:
            rows += measure()
        except Exception as error:
            notes.append(f"{name} was not measured ({type(error).__name__}: {error})")
    if fitted.result is not None and cell.seed == 0:
        real = _real(problem) if problem.n_paths else []
        drawings = pictures.of_simulated(problem, test, fitted.result, real, snapshots)
        names, missing = pictures.draw(drawings, work.folder, cell)
        notes += missing
    return Outcome(tuple(rows), tuple(notes), tuple(names))


def _measures(
    problem: Problem, train: Simulated, test: Simulated, fitted: Fitted, folder: Path
) -> dict[str, Callable[[], list[Row]]]:
    folder.mkdir(parents=True, exist_ok=True)
    task = protocol.ForecastTask.against(train, test, problem.context, problem.horizons)
    chosen = {"forecasts": lambda: measures.forecast_rows(task, fitted, _oracle(task, problem, folder))}
    if problem.n_paths:
        chosen["free runs"] = lambda: measures.free_run_rows(fitted, _real(problem))
    result = fitted.result
    if result is not None:
        chosen["embedding"] = lambda: measures.embedding_rows(problem, test, result, folder)
        if test.system.matrix is not None:
            chosen["equation"] = lambda: measures.equation_rows(problem, test, result)
        if problem.far:
            chosen["the long forecast"] = lambda: measures.far_rows(problem, test, fitted)
    return chosen


def _oracle(task: protocol.ForecastTask, problem: Problem, folder: Path) -> protocol.OracleScores:
    return protocol.oracle_scores(task, folder, n_particles=problem.n_particles)


# Methods of one problem follow each other, so a few sets kept in memory save most simulations.
@lru_cache(maxsize=2)
def _training(problem: Problem, noise: float, seed: int) -> Simulated:
    return problem.training_data(noise, seed)


@lru_cache(maxsize=2)
def _test(problem: Problem, noise: float, seed: int) -> Simulated:
    return problem.test_data(noise, seed)


@lru_cache(maxsize=2)
def _real(problem: Problem) -> list[Paths]:
    return problem.real_runs()
