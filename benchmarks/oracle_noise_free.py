"""How good is the oracle without observation noise, beside the one that it replaced and beside everyone else?

    python benchmarks/oracle_noise_free.py [--origins 200] [--context 50] [--particles 800]

CRPS one sample ahead of the core systems, seen without noise. The former oracle was a bootstrap filter that assumed a
noise of 2 % of the sd, coming down to it from 30 %; the new one leads its particles to the observations. For linear
systems both are the exact Kalman filter. The test set is the one of the committed benchmark, so that the lowest CRPS of
any method in its table (which knew only data) stands beside the oracle's. Some six minutes of one core.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from lamperti.bench.problems import CORE, PROBLEMS, Problem
from lamperti.data import systems
from lamperti.data.files import atomic_write
from lamperti.data.systems import Simulated
from lamperti.evaluation import oracles, scores
from lamperti.evaluation.kalman import kalman_forecast

MEMBERS = 200
ROUNDING = 1e-9  # all systems are of the size of 1 or larger
TEST_SEED = 7  # of the committed benchmark
ASSUMED, ASSUMED_FIRST, ASSUMED_DECAY = 0.02, 0.3, 0.8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--origins", type=int, default=200, help="200 are those of the committed benchmark")
    parser.add_argument("--context", type=int, default=50, help="last samples before a forecast that the filters see")
    parser.add_argument("--particles", type=int, default=800, help="of the former filter; the new one takes a quarter")
    parser.add_argument("--systems", nargs="*", choices=CORE, default=CORE)
    parser.add_argument("--table", type=Path, default=Path("docs/benchmarks/core/results.csv"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    table, found = pd.read_csv(given.table), {}
    for name in given.systems:
        found[name] = study(PROBLEMS[name], given.origins, given.context, given.particles)
        found[name] |= best_committed(table, name, found[name]["oracle"])
        print(name, {k: round(v, 4) if isinstance(v, float) else v for k, v in found[name].items()}, flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    settings = {k: getattr(given, k) for k in ("origins", "context", "particles")}
    text = json.dumps({**settings, "test_seed": TEST_SEED, "systems": found}, indent=1) + "\n"
    atomic_write(given.out / "oracle_noise_free.json", text.encode())


def study(problem: Problem, n_origins: int, context: int, n_particles: int) -> dict[str, float]:
    """CRPS of both oracles one sample ahead, and the ratio of the former to the new one with its standard error."""
    n_origins = min(n_origins, problem.n_origins)
    made = getattr(systems, problem.system)(n_origins, problem.context + 1, dt=problem.dt, seed=TEST_SEED)
    contexts, truth = made.clean[:, : problem.context, 0], made.clean[:, problem.context :]
    if made.system.matrix is None:
        seen = contexts[:, -context:]
        former = scores.crps(_former(made, seen, problem.dt, n_particles, np.random.default_rng(3)), truth)
        samples = oracles.particle_forecast(
            made.system, seen, problem.dt, 0.0, 1, n_particles=n_particles, n_samples=MEMBERS, seed=3
        )
        new = scores.crps(samples, truth)
    else:
        law = oracles.linear_law(made.system, problem.dt)
        former = new = kalman_forecast(*law[:3], 0.0, contexts, 1, initial_cov=law.initial_cov).crps(truth)
    ratio, mean = scores.ratio(former, new), scores.horizon_mean(new)
    return {
        "former": float(former.mean()),
        "oracle": mean.mean.item(),
        "oracle_se": mean.se.item(),
        "former_over_oracle": ratio.mean.item(),
        "former_over_oracle_se": ratio.se.item(),
    }


def best_committed(table: pd.DataFrame, system: str, oracle: float) -> dict[str, float | str]:
    """The lowest CRPS that any method has one sample ahead, and that over the oracle's, unless it knows all."""
    if oracle < ROUNDING:
        return {}
    rows = table[(table.system == system) & (table.noise == 0) & (table.metric == "crps") & (table.horizon == 1)]
    rows = rows[rows.seed == 0]
    best = rows.loc[rows.value.idxmin()]
    return {"best_method": str(best.method), "best": float(best.value), "best_over_oracle": float(best.value / oracle)}


def _former(made: Simulated, contexts: np.ndarray, dt: float, n_particles: int, rng: np.random.Generator) -> np.ndarray:
    """Members [R, S, 1, 1] of the forecast one sample ahead by the filter with an assumed noise."""
    system, n_times = made.system, contexts.shape[1]
    assumed = np.maximum(ASSUMED, ASSUMED_FIRST * ASSUMED_DECAY ** np.arange(n_times)) * contexts.std()
    pool = oracles.stationary_draws(system, oracles.POOL * n_particles, dt, rng)
    advance = system.stepper(dt)
    x = pool[_resampled(pool[None, :, 0], contexts[:, 0], assumed[0], n_particles, rng)]
    for k in range(1, n_times):
        x = advance(x.reshape(-1, x.shape[-1]), rng).reshape(x.shape)
        chosen = _resampled(x[..., 0], contexts[:, k], assumed[k], n_particles, rng)
        x = np.take_along_axis(x, chosen[..., None], axis=1)
    x = x[:, np.arange(MEMBERS) * n_particles // MEMBERS]
    return advance(x.reshape(-1, x.shape[-1]), rng).reshape(x.shape)[:, :, None, :1]


def _resampled(predicted: np.ndarray, y: np.ndarray, noise_sd: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of n particles for each origin, drawn in even strides by their likelihood."""
    log_w = -0.5 * ((y[:, None] - predicted) / noise_sd) ** 2
    edges = np.cumsum(np.exp(log_w - log_w.max(axis=1, keepdims=True)), axis=1)
    points = (rng.uniform(size=(len(y), 1)) + np.arange(n)) / n
    return np.stack([np.searchsorted(e / e[-1], p) for e, p in zip(edges, points, strict=True)])


if __name__ == "__main__":
    main()
