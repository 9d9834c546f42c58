"""What is measured of a method on a simulated problem; every function gives rows of the table.

All of it is computed by ``lamperti.evaluation``. Here is only which of it, under which name.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from lamperti._typing import Float
from lamperti.api import embed
from lamperti.bench.cells import Row
from lamperti.bench.methods import Fitted
from lamperti.bench.problems import Problem, noise_free
from lamperti.data.systems import Simulated
from lamperti.evaluation import protocol
from lamperti.evaluation._paths import Paths
from lamperti.evaluation.embedding import kernel_r2
from lamperti.evaluation.equation import drift_eigenvalues, euler_eigenvalues
from lamperti.evaluation.invariants import escape_share
from lamperti.evaluation.kalman import innovation_variance, kalman_filter
from lamperti.evaluation.oracles import DEFINITION, enough_particles, linear_law, particle_filter
from lamperti.results import FitResult

FREE_SEED = 5
_EMBEDDED = 16  # test series whose states are compared with the true ones
_FAR = 50  # test series with a long forecast
_SKIPPED = 50  # first samples of a series, where the state is hardly known yet, that fits of an equation leave out


def forecast_rows(task: protocol.ForecastTask, fitted: Fitted, oracle: protocol.OracleScores) -> list[Row]:
    """Scores at every horizon."""
    scored = protocol.score_forecasts(task, lambda c, seed: fitted.forecast(c, task.furthest, seed), oracle)
    return horizon_rows(scored)


def horizon_rows(scored: Sequence[protocol.HorizonScores]) -> list[Row]:
    """A row for each score of each horizon; a field ``x_se`` is the standard error of ``x``."""
    rows = []
    for one in scored:
        fields = dataclasses.asdict(one)
        horizon, n = fields.pop("horizon"), fields.pop("n_origins")
        for name, value in fields.items():
            if not name.endswith("_se") and not np.isnan(value):
                rows.append(Row(name, value, fields.get(f"{name}_se", np.nan), horizon, n))
    return rows


def free_run_rows(
    fitted: Fitted, real: Sequence[Paths], settle: int = 0, recording: Float[np.ndarray, " N"] | None = None
) -> list[Row]:
    """Long-run behaviour beside the real system's; nothing for a method that only forecasts.

    The first ``settle`` samples are left out, but for paths that escape: those leave a box of three times the range of
    the first real set, or of the ``recording`` that was learned from.
    """
    if fitted.simulate is None:
        return []
    n_paths, n_steps = real[0].shape
    # a path that leaves the range of floats is counted by escape_share, not complained of
    with np.errstate(over="ignore", invalid="ignore"):
        paths = fitted.simulate(n_paths, settle + n_steps, FREE_SEED)[:, :, 0]
        scored = protocol.score_free_run(paths[:, settle:], real)
    if recording is not None:
        scored = dataclasses.replace(scored, escape_share=escape_share(paths, recording[None]))
    fields = dataclasses.asdict(scored)
    ratios = fields.pop("ratio_to_floor")
    rows = [Row(f"floor_ratio {name}", value, n=n_paths) for name, value in ratios.items()]
    return rows + [Row(name, value, n=n_paths) for name, value in fields.items()]


def far_rows(problem: Problem, test: Simulated, fitted: Fitted) -> list[Row]:
    """One long forecast a series: the error of its mean, and how its highest points vary.

    ``relative_rmse`` is the root mean square of the error over that of the truth. ``peak_sd_ratio`` is the sd, over
    series and futures, of the maximum of the window, over that of the real windows.
    """
    contexts = [s[: problem.context] for s in test.series[:_FAR]]
    samples = np.stack([fitted.forecast(c, problem.far, seed)[:, :, 0] for seed, c in enumerate(contexts)])
    truth = noise_free(test)[:, problem.context : problem.context + problem.far]
    error = samples.mean(axis=1) - truth[: len(samples)]
    rmse = np.sqrt(np.mean(error**2) / np.mean(truth[: len(samples)] ** 2))
    ratio = samples.max(axis=2).std() / truth.max(axis=1).std()
    return [
        Row("relative_rmse", float(rmse), horizon=problem.far, n=len(samples)),
        Row("peak_sd_ratio", float(ratio), horizon=problem.far, n=len(samples)),
    ]


def embedding_rows(problem: Problem, test: Simulated, result: FitResult, folder: Path) -> list[Row]:
    """How well the hidden coordinates can be read off the latent state: kernel R2, alone and over the oracle's.

    The latent states know the whole series and the oracle's only its past, so a ratio above 1 is possible.
    """
    latent = [embed(result, s).mean for s in test.series[:_EMBEDDED]]
    states = list(test.states[:_EMBEDDED])
    found, best = kernel_r2(latent, states)[1:], oracle_r2(problem, test, folder)[1:]
    rows = [Row("latent_dim", float(result.model.latent_dim))]
    for i, (ours, theirs) in enumerate(zip(found, best, strict=True), start=2):
        rows += [Row(f"hidden_r2 x{i}", float(ours)), Row(f"hidden_r2_over_oracle x{i}", float(ours / theirs))]
    return rows


def oracle_r2(problem: Problem, test: Simulated, folder: Path) -> np.ndarray:
    """The same R2 for the filtered means of someone who knows the equations; computed once and kept in the folder."""
    y = np.stack([s.values[:, 0] for s in test.series[:_EMBEDDED]])
    digest = hashlib.sha256(f"{DEFINITION} {problem!r}".encode() + np.ascontiguousarray(y).tobytes()).hexdigest()[:12]
    path = folder / f"oracle-affine-kernel-r2-{problem.name}-{digest}.txt"  # named for its definition
    if not path.exists():
        means = _filtered_means(problem, test, y)
        kept = path.with_suffix(".partial")
        np.savetxt(kept, kernel_r2(list(means), list(test.states[:_EMBEDDED])))
        kept.replace(path)
    return np.atleast_1d(np.loadtxt(path))


def _filtered_means(problem: Problem, test: Simulated, y: np.ndarray) -> np.ndarray:
    system, noise_sd = test.system, float(np.ravel(test.noise_sd)[0])
    if system.matrix is None:
        rng = np.random.default_rng(3)
        taken = enough_particles(y, noise_sd, problem.n_particles)
        return particle_filter(system, y, problem.dt, noise_sd, n_particles=taken, rng=rng).mean
    law = linear_law(system, problem.dt)
    return kalman_filter(*law[:3], noise_sd**2, y, initial_cov=law.initial_cov).means


def equation_rows(problem: Problem, test: Simulated, result: FitResult) -> list[Row]:
    """The learned equation of a linear system beside the sampled truth, in what one observable determines of it.

    Eigenvalues are those of the affine fit of the drift, each true one beside the nearest learned one. The diffusion
    is compared through what nobody can foresee of the observable one step ahead; a matrix would depend on coordinates.
    """
    system, dt = test.system, problem.dt
    x = np.concatenate([embed(result, s).mean[_SKIPPED:] for s in test.series[:_EMBEDDED]])
    g = result.diffusion(x)[0]
    steps = np.concatenate([np.diff(embed(result, s).mean[_SKIPPED:], axis=0) for s in test.series[:_EMBEDDED]])
    rows = [Row("diffusion_share", float(dt * g.mean(axis=0).sum() / (steps**2).mean(axis=0).sum()))]
    found, true = drift_eigenvalues(lambda at: result.drift(at)[0], x), euler_eigenvalues(system, dt)
    nearest = np.array([found[np.argmin(np.abs(found - e))] for e in true])
    rows.append(Row("eigenvalue_error", float(np.max(np.abs(nearest - true) / np.abs(true)))))
    for i, one in enumerate(nearest, start=1):
        rows += [Row(f"eigenvalue {i} real", float(one.real)), Row(f"eigenvalue {i} imaginary", float(one.imag))]
    Q = system.process_covariance(dt)
    if np.any(Q):
        row = system.observe(np.eye(system.dimension))[:, 0]
        true_step = innovation_variance(system.transition_matrix(dt), Q, row)
        rows.append(Row("one_step_variance_ratio", one_step_variance(result, x, dt) / true_step))
    return rows


def one_step_variance(result: FitResult, x: Float[np.ndarray, "N D"], dt: float) -> float:
    """What the learned equation, taken as linear over the states x, cannot foresee of its observable."""
    seen = np.asarray(result.model.emission.mean(jnp.asarray(x)))[:, 0] * result.scaler.scale[0]
    affine = np.column_stack([x, np.ones(len(x))])
    rate, loading = (np.linalg.lstsq(affine, values, rcond=None)[0][:-1] for values in (result.drift(x)[0], seen))
    diffusion = np.diag(result.diffusion(x)[0].mean(axis=0))
    return innovation_variance(np.eye(len(rate)) + dt * rate.T, dt * diffusion, loading)


def verdict_of(fitted: Fitted) -> str:
    """What the library says of its own fit beside simple methods, on what training held out."""
    return "" if fitted.result is None else fitted.result.verdict.sentence


def fit_rows(fitted: Fitted) -> list[Row]:
    """What the fit cost."""
    rows = [Row("fit_minutes", fitted.minutes)]
    if fitted.result is not None:
        history = fitted.result.history
        rows.append(Row("iterations", float(history.records[-1].iteration if history.records else 0)))
        rows.append(Row("best_iteration", float(history.best_iteration)))
        rows.append(Row("validation", float(history.best_score)))
    return rows
