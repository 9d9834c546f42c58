"""Does it learn? Fits of four systems, scored against the truth and, where noisy, against the oracle.

    python benchmarks/learn.py [--case NAME ...] [--seed 0] [--minutes 4.5] [--out benchmarks/results]

Each case writes <out>/learn-<case>.json and two pictures. Skill fraction, oracle and climatology: docs/theory.md.
``--set key=value`` overrides a field of ModelConfig or FitConfig, for experiments.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lamperti as lp
from lamperti import viz
from lamperti.data import systems
from lamperti.evaluation import protocol
from lamperti.evaluation.equation import Alignment, drift_eigenvalues, euler_eigenvalues, true_moments
from lamperti.evaluation.kalman import innovation_variance


class Case(NamedTuple):
    """Data and model of one study."""

    system: str
    n_series: int
    n_samples: int
    dt: float
    noise: float
    latent_dim: int
    horizons: tuple[int, ...]
    n_origins: int
    context: int
    model: dict = {}  # noqa: RUF012 - never mutated


CASES = {
    "lorenz-clean": Case("lorenz", 200, 240, 0.01, 0.0, 3, (1, 10, 20, 50, 100), 100, 200),
    "lorenz-noisy": Case("lorenz", 60, 400, 0.02, 0.1, 3, (1, 5, 10, 20, 50, 100), 300, 200),
    "rossler": Case("rossler", 200, 400, 0.1, 0.0, 3, (1, 10, 20, 50, 100), 100, 200),
    "ou": Case("ornstein_uhlenbeck", 60, 400, 0.1, 0.1, 2, (1, 5, 10, 20, 50), 500, 150),
    "ou-linearised": Case(
        "ornstein_uhlenbeck", 60, 400, 0.1, 0.1, 2, (1, 5, 10, 20, 50), 500, 150, {"smoother": "linearised"}
    ),
    "lorenz-moment-matching": Case(
        "lorenz", 60, 400, 0.02, 0.1, 3, (1, 5, 10, 20, 50, 100), 300, 200, {"smoother": "moment-matching"}
    ),
    "ou-particle": Case(
        "ornstein_uhlenbeck", 60, 400, 0.1, 0.1, 2, (1, 5, 10, 20, 50), 500, 150,
        {"smoother": "particle", "kernel": "matern32"},
    ),
}  # fmt: skip


def training_data(case: Case, seed: int) -> systems.Simulated:
    make = getattr(systems, case.system)
    return make(case.n_series, case.n_samples, dt=case.dt, observation_noise=case.noise, seed=1000 + seed)


def test_data(case: Case) -> systems.Simulated:
    """One forecast origin a series, after the context; never the seed of any training set."""
    make = getattr(systems, case.system)
    length = case.context + max(case.horizons)
    return make(case.n_origins, length, dt=case.dt, observation_noise=case.noise, seed=7)


def score_forecasts(case: Case, result: lp.FitResult, train: systems.Simulated, out: Path) -> dict:
    task = protocol.ForecastTask.against(train, test_data(case), case.context, case.horizons)
    ess = []

    def forecaster(context: lp.Series, seed: int) -> np.ndarray:
        forecast = lp.forecast(
            result, context, horizon=task.furthest, n_samples=256, seed=seed, observation_noise=False
        )
        ess.append(forecast.least_ess)
        return forecast.samples

    # Without observation noise the particle filter is wider than the limit: no skill fraction then.
    oracle = protocol.oracle_scores(task, out) if case.noise > 0 else None
    rows = protocol.score_forecasts(task, forecaster, oracle)
    names = ["crps_over_climatology", "coverage_50", "coverage_90", "log_score"]
    if oracle is not None:
        names += ["skill_fraction", "skill_fraction_se", "oracle_over_climatology", "log_score_above_oracle"]
    tables = {name: {f"h={row.horizon}": round(getattr(row, name), 4) for row in rows} for name in names}
    return tables | {"median_least_ess": float(np.median(ess))}


def score_free_runs(case: Case, result: lp.FitResult) -> dict:
    """Free-running paths beside as many and as long real ones; three real sets give the floor."""
    make = getattr(systems, case.system)
    n_paths, n_steps = 32, 2000
    real = [make(n_paths, n_steps, dt=case.dt, seed=s).clean[:, :, 0] for s in (21, 22, 23, 24)]
    paths = lp.simulate(result, n_steps=n_steps, n_paths=n_paths, seed=5, observation_noise=False).samples[:, :, 0]
    return dataclasses.asdict(protocol.score_free_run(paths, real))


def score_equation(case: Case, result: lp.FitResult, train: systems.Simulated) -> dict:
    """The learned equation of a linear system against the sampled truth.

    One observed coordinate does not determine the diffusion matrix of two: it fixes the eigenvalues of the drift and
    the size of what cannot be foreseen in the observable one step ahead. These are compared as they are; the matrix
    and its trace after an affine fit of the true states to the embedded ones.
    """
    x = np.concatenate([lp.embed(result, s).mean[50:] for s in train.series[:20]])
    states = np.concatenate([s[50:] for s in train.states[:20]])
    dim = x.shape[1]
    T = Alignment.fit(x, states).matrix
    diffusion = np.diag(result.diffusion(np.zeros(dim))[0])
    true = true_moments(train.system, np.zeros((1, dim)), case.dt).diffusion[0]
    found = drift_eigenvalues(lambda at: result.drift(at)[0], x)
    rate = np.linalg.lstsq(np.c_[x, np.ones(len(x))], result.drift(x)[0], rcond=None)[0][:-1].T
    loading = np.asarray(result.model.emission.C)[0] * result.scaler.scale[0]
    learned_step = innovation_variance(np.eye(dim) + case.dt * rate, case.dt * diffusion, loading)
    system = train.system
    true_step = innovation_variance(
        system.transition_matrix(case.dt), system.process_covariance(case.dt), np.eye(dim)[0]
    )
    return {
        "learned": (T @ diffusion @ T.T).round(4).tolist(),
        "true_sampled": true.round(4).tolist(),
        "trace_ratio": float(np.trace(T @ diffusion @ T.T) / np.trace(true)),
        "one_step_variance_ratio": learned_step / true_step,
        "eigenvalues": [str(np.round(e, 3)) for e in found],
        "eigenvalues_true": [str(np.round(e, 3)) for e in euler_eigenvalues(system, case.dt)],
        "noise_variance_ratio": float(
            np.asarray(result.model.emission.noise)[0] * result.scaler.scale[0] ** 2 / np.ravel(train.noise_sd)[0] ** 2
        ),
    }


def split_overrides(pairs: list[str]) -> tuple[dict, dict]:
    """key=value pairs for ModelConfig and FitConfig."""
    given = dict(pair.split("=", 1) for pair in pairs)
    parsed = {k: _literal(v) for k, v in given.items()}
    model = {k: v for k, v in parsed.items() if k in lp.ModelConfig.model_fields}
    return model, {k: v for k, v in parsed.items() if k not in model}


def _literal(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def run(
    name: str, seed: int, minutes: float, overrides: list[str], out: Path
) -> tuple[dict, lp.FitResult, systems.Simulated]:
    case = CASES[name]
    train = training_data(case, seed)
    model, fit = split_overrides(overrides)
    cpu, wall = time.process_time(), time.monotonic()
    result = lp.fit(
        train.series,
        lp.ModelConfig(**{"latent_dim": case.latent_dim, **case.model, **model}),
        lp.FitConfig(**{"seed": seed, "max_iterations": 100_000, "max_minutes": minutes, "patience": 1000, **fit}),
        progress=lambda r: (
            print(
                f"  {r.iteration:5d} {r.seconds:6.1f} s  elbo {r.elbo:.4f}  validation {r.validation:.4f}", flush=True
            )
            if r.iteration % 200 == 0
            else None
        ),
    )
    report = {
        "case": name,
        "seed": seed,
        "overrides": overrides,
        "train_wall_seconds": round(time.monotonic() - wall, 1),
        "train_cpu_seconds": round(time.process_time() - cpu, 1),
        "iterations": result.history.records[-1].iteration,
        "best_iteration": result.history.best_iteration,
        "validation": result.history.best_score,
        "refused": result.history.records[-1].refused,
        "window": result.config.model.window,
        "forecast": score_forecasts(case, result, train, out),
        "free_run": score_free_runs(case, result),
    }
    if case.system == "ornstein_uhlenbeck":
        report["equation"] = score_equation(case, result, train)
    return report, result, train


def draw(name: str, result: lp.FitResult, train: systems.Simulated, out: Path) -> None:
    """Learned state space, and free-running paths beside real ones."""
    case = CASES[name]
    viz.write_png(viz.phase_space(result, train.series[0]), out / f"learn-{name}-space.png")
    # Real paths as long as the model's: a short series may never leave one lobe.
    n_paths, n_steps = 3, 1500
    real = getattr(systems, case.system)(n_paths, n_steps, dt=case.dt, observation_noise=case.noise, seed=23)
    paths = lp.simulate(result, n_steps=n_steps, n_paths=n_paths, seed=1)
    viz.write_png(viz.free_run(paths, real.series), out / f"learn-{name}-paths.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--set", nargs="*", default=[], dest="overrides")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.case:
        print(name, flush=True)
        report, result, train = run(name, args.seed, args.minutes, args.overrides, args.out)
        (args.out / f"learn-{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")

        draw(name, result, train, args.out)
        print(json.dumps(report, indent=1), flush=True)


if __name__ == "__main__":
    main()
