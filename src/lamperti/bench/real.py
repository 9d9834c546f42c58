"""The work of one cell on a real recording: read, fit, forecast what was observed."""

import numpy as np

from lamperti._errors import DependencyError
from lamperti.bench import pictures
from lamperti.bench.cells import Cell, Row
from lamperti.bench.futures import future_rows, overlap
from lamperti.bench.jobs import Job, Outcome, Work, fingerprint
from lamperti.bench.measures import fit_rows, one_step_variance, verdict_of
from lamperti.bench.methods import Training, fit_method, is_learned
from lamperti.bench.origins import Part, part_of
from lamperti.bench.recordings import RECORDINGS, VARIABLE, Recording, Walks
from lamperti.data.series import Series
from lamperti.evaluation.equation import drift_eigenvalues
from lamperti.results import FitResult

METHODS = ("lamperti",)
"""Of the library's methods: nobody can tell the other one the true dimension."""
_STILL = 1e-6  # sd of a channel that does not move


def jobs(names: list[str], methods: list[str], seeds: int, part: Part) -> list[Job]:
    """Cells of the recordings, cheap methods first."""
    found = []
    for seed in range(seeds):
        for recording in (RECORDINGS[name] for name in names):
            taken = [m for m in (*recording.baselines, *METHODS) if m in methods]
            found += [_job(recording, method, seed, part) for method in taken]
    return found


def _job(recording: Recording | Walks, method: str, seed: int, part: Part) -> Job:
    cell = Cell(recording.name, None, method, seed)
    # all walks are for the report: they have no origins that could be shared out
    definition = recording if isinstance(recording, Walks) else (recording, part)
    return Job(cell, fingerprint(definition), is_learned(method), lambda work: run(recording, cell, part, work))


def run(recording: Recording | Walks, cell: Cell, part: Part, work: Work) -> Outcome:
    """Fit and score. Raises `DependencyError`, which counts as skipped, where the recording is absent."""
    if work.data is None:
        raise DependencyError(f"no folder of recordings was given. Pass --data, or set {VARIABLE}.")
    if isinstance(recording, Walks):
        return _walks(recording, cell, work)
    split, context, horizons = recording.load(work.data), recording.context, recording.horizons
    training = Training(cell.seed, work.minutes, max(horizons), noise=True, progress=work.progress)
    fitted = fit_method(cell.method, [split.train], training)
    starts = part_of(recording.origins(split), part, overlap(horizons, recording.stride))
    rows = future_rows(fitted, split.train, split.tested, starts, context, horizons, recording.stride)
    if fitted.result is not None and recording.relaxation is not None:
        variance = float(split.train.values.var())
        rows += relaxation_rows(fitted.result, split.train.dt, recording.relaxation, variance)
    names, notes = [], []
    if fitted.result is not None and cell.seed == 0:
        drawings = pictures.of_recording(fitted.result, split.tested, context, max(horizons), starts[0])
        names, notes = pictures.draw(drawings, work.folder, cell)
    return Outcome((*fit_rows(fitted), *rows), tuple(notes), tuple(names), verdict_of(fitted))


def relaxation_rows(result: FitResult, dt: float, relaxation: float, variance: float) -> list[Row]:
    """The learned relaxation time of an Ornstein-Uhlenbeck process, and its diffusion, over those of physics.

    Euler steps of dt see the rate (exp(-dt/tau) - 1)/dt, and the variance(1 - exp(-2 dt/tau)) of a step follows from
    the stationary variance; the diffusion is compared through it.
    """
    slowest = drift_eigenvalues(lambda x: result.drift(x)[0], result.states)[0].real
    kept = 1 + slowest * dt
    found = -dt / np.log(kept) if 0 < kept < 1 else np.inf
    step = variance * -np.expm1(-2 * dt / relaxation)
    return [
        Row("relaxation_time", float(found)),
        Row("relaxation_ratio", float(found / relaxation)),
        Row("one_step_variance_ratio", one_step_variance(result, result.states, dt) / step),
        Row("latent_dim", float(result.model.latent_dim)),
    ]


def _walks(walks: Walks, cell: Cell, work: Work) -> Outcome:
    """Mean squared error of the mean forecast of all later frames, over frames, channels and test walks."""
    assert work.data is not None  # run() has looked
    train, test = walks.load(work.data)
    moving = train.std(axis=(0, 1)) > _STILL
    horizon = test.shape[1] - walks.frames
    training = Training(cell.seed, work.minutes, horizon, progress=work.progress)
    fitted = fit_method(cell.method, [Series(walk[:, moving]) for walk in train], training)
    # joints that never moved in training are taken to stay where they were
    means = np.broadcast_to(train.mean(axis=(0, 1)), test[:, walks.frames :].shape).copy()
    for i, walk in enumerate(test):
        means[i][:, moving] = fitted.forecast(Series(walk[: walks.frames, moving]), horizon, i).mean(axis=0)
    errors = np.mean((means - test[:, walks.frames :]) ** 2, axis=(1, 2))
    se = float(errors.std(ddof=1) / np.sqrt(len(errors)))
    return Outcome((*fit_rows(fitted), Row("test_mse", float(errors.mean()), se, n=len(errors))))
