"""How much of the misfit of free-running paths is due to a noise that does not depend on the state?

    python benchmarks/constant_noise.py [--grid 101] [--draws 1000] [--out benchmarks/results]

A system kicked with constant strength, once it is sampled, has a noise that depends on the state: within one step a
fast jump amplifies what went before. The library's model has one covariance for all states. Here the true mean of the
next state and its true covariance are simulated on a grid of starts, and free paths are made from them in three ways:
by the true law, by Gaussian steps with the covariance of each state, and by Gaussian steps with the mean covariance.
All have the true mean, so the last is what constant noise in the system's own coordinates costs. Its floor ratios are
those of the benchmark. Coordinates that bend noise away are not ruled out by this.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from scipy.interpolate import RectBivariateSpline

from lamperti.bench.problems import PROBLEMS, Problem
from lamperti.data import systems
from lamperti.data.files import atomic_write
from lamperti.data.systems import System
from lamperti.evaluation import protocol

SYSTEMS = ("double_well", "van_der_pol", "fitzhugh_nagumo")
SEED = 41
MARGIN = 0.15  # of the range of the states, beyond them
Step = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", type=int, default=101, help="starts along each coordinate")
    parser.add_argument("--draws", type=int, default=1000, help="steps from each start")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    found = {name: study(PROBLEMS[name], given.grid, given.draws) for name in SYSTEMS}
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"grid": given.grid, "draws": given.draws, "seed": SEED, "systems": found}, indent=1) + "\n"
    atomic_write(given.out / "constant_noise.json", text.encode())


def study(problem: Problem, n_grid: int, n_draws: int) -> dict[str, dict[str, float]]:
    """Scores of the three kinds of steps."""
    made = getattr(systems, problem.system)(problem.n_paths, problem.n_steps, dt=problem.dt, seed=SEED)
    steps = true_and_gaussian(made.system, made.states.reshape(-1, 2), problem.dt, n_grid, n_draws)
    real, rows = problem.real_runs(), {}
    for name, step in steps.items():
        paths = run(step, made.states[:, 0], problem.n_steps)
        scored = asdict(protocol.score_free_run(paths, real))
        rows[name] = scored.pop("ratio_to_floor") | scored
        print(problem.name, name, {k: round(float(v), 3) for k, v in rows[name].items()}, flush=True)
    return rows


def true_and_gaussian(system: System, states: np.ndarray, dt: float, n_grid: int, n_draws: int) -> dict[str, Step]:
    """One step by the true law, with the covariance of each state, and with the mean covariance."""
    advance, rng = system.stepper(dt), np.random.default_rng(SEED)
    low, high = states.min(axis=0), states.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    axes = [np.linspace(a, b, n_grid) for a, b in zip(low, high, strict=True)]
    starts = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)  # [G, G, 2]
    mean, cov = np.empty(starts.shape), np.empty((*starts.shape, 2))
    for i, row in enumerate(starts):
        ends = advance(np.repeat(row, n_draws, axis=0), rng).reshape(n_grid, n_draws, 2)
        mean[i], left = ends.mean(axis=1), ends - ends.mean(axis=1, keepdims=True)
        cov[i] = np.einsum("gni,gnj->gij", left, left) / (n_draws - 1)
    spline = {index: RectBivariateSpline(*axes, mean[..., index]) for index in (0, 1)}
    # linear, so that a covariance stays one
    covs = {ij: RectBivariateSpline(*axes, cov[(..., *ij)], kx=1, ky=1) for ij in ((0, 0), (0, 1), (1, 1))}

    def expected(x: np.ndarray) -> np.ndarray:
        inside = np.clip(x, low, high)
        return np.stack([spline[i].ev(*inside.T) for i in (0, 1)], axis=1)

    def covariance(x: np.ndarray) -> np.ndarray:
        inside = np.clip(x, low, high)
        a, b, c = (covs[ij].ev(*inside.T) for ij in ((0, 0), (0, 1), (1, 1)))
        return np.stack([np.stack([a, b], axis=1), np.stack([b, c], axis=1)], axis=1)

    def gaussian(cov_of: Callable[[np.ndarray], np.ndarray]) -> Step:
        def step(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            values, vectors = np.linalg.eigh(cov_of(x))
            root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
            return expected(x) + np.einsum("...ij,...j->...i", root, rng.standard_normal(x.shape))

        return step

    average = covariance(states).mean(axis=0)
    return {
        "true": advance,
        "noise of the state": gaussian(covariance),
        "constant noise": gaussian(lambda x: np.broadcast_to(average, (len(x), 2, 2))),
    }


def run(step: Step, start: np.ndarray, n_steps: int) -> np.ndarray:
    """The observable along paths of these steps [R, T]; the start is not counted."""
    rng, x, seen = np.random.default_rng(SEED + 1), start, []
    for _ in range(n_steps):
        x = step(x, rng)
        seen.append(x[:, 0])
    return np.stack(seen, axis=1)


if __name__ == "__main__":
    main()
