"""Two hundred hard fits: does each finish, or stop with a diagnosis? And do units matter?

    python benchmarks/stability.py [--kind NAME ...] [--iterations 60] [--out benchmarks/results]

Ten kinds of trouble, each on five systems with four seeds. A fit "finished" when its forecast of ten windows and a
free-running path of 100,000 steps are finite and stay within three times the range of the data, or it was "told" by a
warning that they may not (data with a trend, which a path must follow); it is "diagnosed" when it stopped with a named
error of lamperti; all else is a failure, a silent runaway first. The state of
the grid, with the seconds that each fit took, is written to stability.json after each fit: an interrupted run goes on
where it stopped. A grid of other iterations or free runs is refused, not mixed in. Most of the time goes into compiling
programs for sixty iterations: with XLA_FLAGS=--xla_backend_optimization_level=0 in the environment it takes half of it.
"""

import argparse
import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lamperti as lp
from lamperti.data.files import atomic_write

SYSTEMS = ("lorenz", "rossler", "ornstein_uhlenbeck", "double_well", "fitzhugh_nagumo")
SEEDS = (0, 1, 2, 3)
N_SERIES, N_SAMPLES = 8, 160
FREE_STEPS = 100_000
BOX = 3.0  # of the range of the data, about its middle


class Hard(NamedTuple):
    """Data, and options that make it worse."""

    data: list[lp.Series]
    model: dict = {}  # noqa: RUF012 - never mutated


def clean(system: str, seed: int, noise: float = 0.05, n_samples: int = N_SAMPLES) -> np.ndarray:
    """Values [R, T] of one system, standardised so that the troubles below mean the same on each."""
    made = getattr(lp.systems, system)(N_SERIES, n_samples, observation_noise=noise, seed=seed)
    values = np.stack([s.values[:, 0] for s in made.series])
    return (values - values.mean()) / values.std()


def as_list(values: np.ndarray, **options) -> list[lp.Series]:
    return [lp.Series(v, **options) for v in values]


def short(system: str, seed: int) -> Hard:
    """One recording of a few dozen samples."""
    return Hard(as_list(clean(system, seed, n_samples=30 + 15 * seed)[:1]))


def stiff(system: str, seed: int) -> Hard:
    """Slow motion with jumps a hundred times as fast."""
    values = clean(system, seed)
    return Hard(as_list(np.sign(values) * np.abs(values) ** 0.1 + 0.01 * values))


def noisy(system: str, seed: int) -> Hard:
    """Noise three times as large as the signal."""
    return Hard(as_list(clean(system, seed, noise=3.0)))


def outliers(system: str, seed: int) -> Hard:
    """One sample in fifty is a hundred standard deviations off."""
    values, rng = clean(system, seed), np.random.default_rng(seed)
    hit = rng.random(values.shape) < 0.02
    return Hard(as_list(np.where(hit, 100.0 * rng.standard_normal(values.shape), values)))


def collinear(system: str, seed: int) -> Hard:
    """Three channels that differ by one part in ten million."""
    values, rng = clean(system, seed), np.random.default_rng(seed)
    stacked = values[..., None] + 1e-7 * rng.standard_normal((*values.shape, 3))
    return Hard(as_list(stacked))


def tiny_units(system: str, seed: int) -> Hard:
    return Hard(as_list(1e-12 * clean(system, seed), dt=1e-9))


def huge_units(system: str, seed: int) -> Hard:
    return Hard(as_list(1e12 * clean(system, seed) + 3e12, dt=1e9))


def clustered(system: str, seed: int) -> Hard:
    """At rest but for a few excursions: most inducing inputs fall on one another. No noise."""
    values = clean(system, seed, noise=0.0)
    return Hard(as_list(np.where(np.abs(values) > 1.0, values, 1e-6 * values)), {"n_inducing": 128})


def gaps(system: str, seed: int) -> Hard:
    """Irregular times over four decades, and four samples in ten missing."""
    values, rng = clean(system, seed), np.random.default_rng(seed)
    seen = rng.random(values.shape) > 0.4
    times = np.cumsum(10.0 ** rng.uniform(-2.0, 2.0, values.shape), axis=1)
    return Hard([lp.Series(v, times=t, mask=m) for v, t, m in zip(values, times, seen, strict=True)])


def drifting(system: str, seed: int) -> Hard:
    """A trend ten times as large as the signal: what is held out was never visited."""
    values = clean(system, seed)
    return Hard(as_list(values.reshape(1, -1) + 10.0 * np.linspace(-1.0, 1.0, values.size)))


KINDS: dict[str, Callable[[str, int], Hard]] = {
    make.__name__: make
    for make in (short, stiff, noisy, outliers, collinear, tiny_units, huge_units, clustered, gaps, drifting)
}


def attempt(hard: Hard, seed: int, iterations: int) -> tuple[str, str]:
    """What became of one fit: finished, told, diagnosed or failed, and the sentence or traceback."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("error")  # a warning of NumPy or JAX is a finding
            warnings.simplefilter("always", lp.LampertiWarning)
            result = lp.fit(hard.data, lp.ModelConfig(**hard.model), fit_config(seed, iterations))
            if result.history.status in ("interrupted", "terminated"):
                raise KeyboardInterrupt  # fit gives back what it has; the grid is to end, and this fit not to count
            window = result.config.model.window or 1
            ahead = lp.forecast(result, hard.data[0], horizon=10 * window, n_samples=64).samples
            free = lp.simulate(result, n_steps=FREE_STEPS, n_paths=1).samples
    except lp.LampertiError as error:
        return "diagnosed", f"{type(error).__name__}: {error}"
    except Exception:
        return "failed", traceback.format_exc()
    for name, paths in (("the forecast", ahead), ("a free-running path", free)):
        if not stays(paths, hard.data):
            if said and not result.config.model.bounded:
                return "told", f"{name} leaves the data; warned: {said[0].message}"
            return "failed", f"{name} runs away"
    return "finished", f"bound {result.history.best_score:.4f}, {result.history.rollbacks} returns"


def stays(paths: np.ndarray, data: list[lp.Series]) -> bool:
    """Whether paths [S, H, P] stay within a box of three times the range of the data."""
    seen = np.concatenate([np.where(s.mask, s.values, np.nan) for s in data])
    low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    return bool((np.abs(paths - (low + high) / 2) <= BOX / 2 * (high - low)).all())  # not of NaN


def fit_config(seed: int, iterations: int) -> lp.FitConfig:
    return lp.FitConfig(seed=seed, max_iterations=iterations, start_iterations=10, gauge_at=(20, 40), batch_size=8)


def unit_changes(iterations: int) -> dict[str, float]:
    """Largest relative change of forecast and drift when values or times change their unit."""
    values = clean("lorenz", 0)
    data = {
        "reference": as_list(values, dt=0.02),
        "values in thousandths": as_list(1000.0 * values, dt=0.02),
        "times in milliseconds": as_list(values, dt=20.0),
        "both": as_list(1e-9 * values, dt=0.02 / 86400.0),
    }
    found = {}
    for name, series in data.items():
        result = lp.fit(series, None, fit_config(0, iterations))
        ahead = lp.forecast(result, series[0], horizon=50, n_samples=64).samples / result.scaler.scale
        per_step = result.drift(result.states)[0] * result.step
        found[name] = (ahead, per_step)
    base = found.pop("reference")
    return {
        name: float(max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(pair, base, strict=True)))
        for name, pair in found.items()
    }


def summary(fits: dict[str, dict]) -> dict:
    """Counts of outcomes by kind, and the seconds of all fits together (of older files: as far as they are known)."""
    counts = {kind: dict(Counter(v["outcome"] for k, v in fits.items() if k.split()[0] == kind)) for kind in KINDS}
    return {"counts": counts} | {
        f"{c}_s": round(sum(v.get(f"{c}_s", 0.0) for v in fits.values())) for c in ("wall", "cpu")
    }


def grid(kinds: list[str]) -> Iterator[tuple[str, str, int]]:
    return ((kind, system, seed) for kind in kinds for system in SYSTEMS for seed in SEEDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "stability.json"
    asked = {"iterations": options.iterations, "free_steps": FREE_STEPS}
    report = json.loads(file.read_text()) if file.is_file() else asked
    if other := [name for name, value in asked.items() if report.get(name) != value]:
        parser.error(f"{file} holds fits of other {' and '.join(other)}. Remove it, or choose another --out.")
    fits = report.get("fits", {})
    for kind, system, seed in grid(options.kind or list(KINDS)):
        name = f"{kind} {system} {seed}"
        if name in fits:
            continue
        wall, cpu = time.monotonic(), time.process_time()
        outcome, detail = attempt(KINDS[kind](system, seed), seed, options.iterations)
        spent = {"wall_s": round(time.monotonic() - wall, 1), "cpu_s": round(time.process_time() - cpu, 1)}
        fits[name] = {"outcome": outcome, "detail": detail, **spent}
        print(f"{name}: {outcome} ({detail.splitlines()[-1]}), {spent['cpu_s']:.0f} CPU-s", flush=True)
        report |= summary(fits) | {"fits": fits}
        atomic_write(file, json.dumps(report, indent=1).encode())
    if "units" not in report:
        report["units"] = unit_changes(options.iterations)
        atomic_write(file, json.dumps(report, indent=1).encode())
    print(json.dumps({name: value for name, value in report.items() if name != "fits"}, indent=1))


if __name__ == "__main__":
    main()
