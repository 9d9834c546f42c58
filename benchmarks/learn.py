"""Does it learn? Fits of four systems, scored against the truth and, where noisy, against the oracle.

    python benchmarks/learn.py [--case NAME ...] [--seed 0] [--minutes 4.5] [--out benchmarks/results]

Each case writes <out>/learn-<case>.json and two pictures. Skill fraction, oracle and climatology: docs/theory.md.
``--set key=value`` overrides a field of ModelConfig or FitConfig, for experiments.
"""

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lamperti as lp
from lamperti import viz
from lamperti.data import systems
from lamperti.evaluation import invariants, kalman, oracles, scores
from lamperti.evaluation.climatology import Climatology


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
    "lorenz-noisy": Case("lorenz", 60, 400, 0.02, 0.1, 3, (1, 5, 10, 20, 50, 100), 100, 200),
    "rossler": Case("rossler", 200, 400, 0.1, 0.0, 3, (1, 10, 20, 50, 100), 100, 200),
    "ou": Case("ornstein_uhlenbeck", 60, 400, 0.1, 0.1, 2, (1, 5, 10, 20, 50), 500, 150),
    "ou-sigma-point": Case(
        "ornstein_uhlenbeck", 60, 400, 0.1, 0.1, 2, (1, 5, 10, 20, 50), 500, 150, {"smoother": "sigma-point"}
    ),
    "lorenz-moment-matching": Case(
        "lorenz", 60, 400, 0.02, 0.1, 3, (1, 5, 10, 20, 50, 100), 100, 200, {"smoother": "moment-matching"}
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
    test = test_data(case)
    last = max(case.horizons)
    truth = test.clean[:, case.context :]
    ensembles, ess = [], []
    for i, series in enumerate(test.series):
        forecast = lp.forecast(
            result, series[: case.context], horizon=last, n_samples=256, seed=i, observation_noise=False
        )
        ensembles.append(forecast.samples)
        ess.append(forecast.least_ess)
    samples = np.stack(ensembles)
    model = scores.crps(samples, truth)
    climatology = Climatology.of_values(train.clean.reshape(-1, 1)).crps(truth)
    at = np.array(case.horizons) - 1
    relative = model.mean(axis=0)[:, 0] / climatology.mean(axis=0)[:, 0]
    report = {
        "crps_over_climatology": _table(case, relative[at]),
        "coverage_90": _table(case, scores.covered(samples, truth, 0.9).mean(axis=0)[at, 0]),
        "median_least_ess": float(np.median(ess)),
    }
    if case.noise > 0:
        oracle = cached_oracle_crps(case, test, out)
        fraction = scores.skill(climatology, model, oracle)
        report["skill_fraction"] = _table(case, fraction.mean[at, 0])
        report["skill_fraction_se"] = _table(case, fraction.se[at, 0])
        report["oracle_over_climatology"] = _table(case, (oracle.mean(axis=0) / climatology.mean(axis=0))[at, 0])
    return report


def cached_oracle_crps(case: Case, test: systems.Simulated, folder: Path) -> np.ndarray:
    """The oracle depends on the test set alone; it is computed once a folder."""
    path = folder / f"oracle-{case.system}.npy"
    if not path.exists():
        np.save(path, oracle_crps(case, test).astype(np.float32))
    return np.load(path)


def oracle_crps(case: Case, test: systems.Simulated) -> np.ndarray:
    contexts = np.stack([s.values[: case.context, 0] for s in test.series])
    truth = test.clean[:, case.context :]
    horizon = max(case.horizons)
    noise_sd = float(np.ravel(test.noise_sd)[0])
    if case.system == "ornstein_uhlenbeck":
        system = test.system
        row = np.array([1.0] + [0.0] * (test.states.shape[-1] - 1))
        exact = kalman.kalman_forecast(
            system.transition_matrix(case.dt), system.process_covariance(case.dt), row, noise_sd**2, contexts, horizon
        )
        return exact.crps(truth)
    return scores.crps(oracles.particle_forecast(test.system, contexts, case.dt, noise_sd, horizon, seed=3), truth)


def score_free_runs(case: Case, result: lp.FitResult) -> dict:
    """Free-running paths beside as many and as long real ones."""
    make = getattr(systems, case.system)
    n_paths, n_steps = 32, 2000
    real = [make(n_paths, n_steps, dt=case.dt, seed=s).clean[:, :, 0] for s in (21, 22)]
    paths = lp.simulate(result, n_steps=n_steps, n_paths=n_paths, seed=5, observation_noise=False).samples[:, :, 0]
    centre, threshold = float(real[0].mean()), 0.1 * float(real[0].std())
    half = [invariants.half_cycles(p, centre, threshold) for p in (paths, *real)]
    return {
        "escape_share": float(invariants.escape_share(paths, real[0])),
        "sd_ratio": float(paths.std() / np.mean([r.std() for r in real])),
        "half_cycle_ratio": float(np.mean(half[0]) / np.mean(np.concatenate(half[1:]))),
        "half_cycle_ratio_of_two_real_sets": float(np.mean(half[1]) / np.mean(half[2])),
        "switches_per_path": float(invariants.lobe_switches(paths, centre, threshold).mean()),
        "switches_per_path_real": float(invariants.lobe_switches(real[0], centre, threshold).mean()),
        "roughness_ratio": float(np.var(np.diff(paths, 2)) / np.var(np.diff(real[0], 2))),
        "ratio_to_floor": {
            name: float(invariants.ratio_to_floor(fn, paths, *real)) for name, fn in invariants.DISTANCES.items()
        },
    }


def score_diffusion(case: Case, result: lp.FitResult, train: systems.Simulated) -> dict:
    """Diffusion of the learned equation mapped to the true state by an affine fit, against the sampled truth."""
    latent, state = [], []
    for i in range(20):
        latent.append(lp.embed(result, train.series[i]).mean[50:])
        state.append(train.states[i, 50:])
    x, s = np.concatenate(latent), np.concatenate(state)
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    T = np.linalg.lstsq(design, s, rcond=None)[0][:-1].T
    learned = T @ np.diag(result.diffusion(np.zeros(x.shape[1]))[0]) @ T.T
    true = train.system.process_covariance(case.dt) / case.dt
    return {
        "learned": learned.round(4).tolist(),
        "true_sampled": true.round(4).tolist(),
        "trace_ratio": float(np.trace(learned) / np.trace(true)),
        "noise_variance_ratio": float(
            np.asarray(result.model.emission.noise)[0] * result.scaler.scale[0] ** 2 / np.ravel(train.noise_sd)[0] ** 2
        ),
    }


def _table(case: Case, values: np.ndarray) -> dict[str, float]:
    return {f"h={h}": round(float(v), 4) for h, v in zip(case.horizons, values, strict=True)}


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
        report["diffusion"] = score_diffusion(case, result, train)
    return report, result, train


def draw(name: str, result: lp.FitResult, train: systems.Simulated, out: Path) -> None:
    """Learned state space, and free-running paths beside real ones."""
    series = train.series[0]
    viz.write_png(viz.phase_space(result, series), out / f"learn-{name}-space.png")
    paths = lp.simulate(result, n_steps=max(400, len(series)), n_paths=3, seed=1)
    viz.write_png(viz.free_run(paths, series), out / f"learn-{name}-paths.png")


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
