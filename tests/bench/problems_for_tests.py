"""A problem so small that baselines run on it in no time."""

from lamperti.bench.problems import Problem
from lamperti.bench.simulated import job

TINY = Problem(
    "tiny", "ornstein_uhlenbeck", 8, 120, 0.1, 2, context=40, horizons=(1, 5), n_origins=12, n_particles=50,
    n_paths=4, n_steps=200,
)  # fmt: skip
METHODS = ("climatology", "persistence", "ar")


def jobs(seeds: int = 2) -> list:
    return [job(TINY, 0.1, method, seed) for seed in range(seeds) for method in METHODS]
