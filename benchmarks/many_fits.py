"""Two hundred fits over twenty shapes in one process: do memory and memory maps stay where they are?

    python benchmarks/many_fits.py [--fits 200] [--shapes 20] [--out benchmarks/results/many_fits.json]

Each shape once, then each many times running; small models, a few iterations, one in four with gauge moves and the fit
to the likelihood. With every result: an embedding, a forecast and a simulation, of series of many lengths. Resident
memory may grow by 300 MB after the first ten fits, and the process may hold 20,000 memory maps (Linux grants 65,530).
A shape that comes again after others were fitted may be compiled again; within its run only what the first fit did not
need, as where a fit to the likelihood was refused. Functions that were compiled again within a run are counted.

Most of the time goes into compiling: with XLA_FLAGS=--xla_backend_optimization_level=0 in the environment it takes half
of it. It needs Linux, where memory maps can be counted.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import jax

import lamperti as lp
from lamperti._compile import PROGRAMS
from lamperti.data.files import atomic_write

SETTLED = 10  # fits, after which memory counts
MOST_GROWTH_MB, MOST_MAPS = 300, 20_000
_COMPILED = "/jax/core/compile/backend_compile_duration"


def order(n_fits: int, n_shapes: int) -> Iterator[int]:
    """The shape of each fit: all of them once, then each in a run of its own."""
    yield from range(n_shapes)
    rest = n_fits - n_shapes
    yield from (k * n_shapes // rest for k in range(rest))


def fit_and_use(shape: int, seed: int) -> None:
    """One fit, and what people do with it. Shapes differ in everything that a shape can differ in."""
    n_series, n_samples = 4 + shape % 3, 60 + 10 * shape
    data = lp.systems.ornstein_uhlenbeck(n_series, n_samples, dt=0.1, observation_noise=0.1, seed=seed)
    calibrate = shape % 4 == 0
    result = lp.fit(
        data.series,
        lp.ModelConfig(latent_dim=2 + (shape % 5 == 4), n_inducing=6 + shape, window=6, lag=2, n_components=4),
        lp.FitConfig(
            seed=seed,
            max_iterations=4,
            batch_size=3 + shape % 4,
            segment_length=30 + shape,
            n_samples=2,
            validate_every=2,
            validation_fraction=0.25,
            gauge_at=(2,) if calibrate else (),
            calibrate=calibrate,
        ),
    )
    one, _ = data.series[0].split(40 + seed % 20)  # all are padded to one length
    lp.embed(result, one)
    lp.forecast(result, one, horizon=10, n_samples=16, n_particles=50)
    lp.simulate(result, n_steps=10)


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def memory_maps() -> int:
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def summary(fits: list[dict]) -> dict:
    settled = fits[min(SETTLED, len(fits)) - 1 :]
    again, known = [], set()
    for before, fit in pairwise([{"shape": None}, *fits]):
        known = known if fit["shape"] == before["shape"] else set()
        again += [name for name in fit["compiled"] if name in known]
        known |= set(fit["compiled"])
    found = {
        "fits": len(fits),
        "shapes": len({f["shape"] for f in fits}),
        "growth_mb": round(max(f["resident_mb"] for f in settled) - settled[0]["resident_mb"], 1),
        "most_maps": max(f["maps"] for f in fits),
        "most_programs": max(f["programs"] for f in fits),
        "compiled_again_within_runs": len(again),
        "minutes": round(sum(f["seconds"] for f in fits) / 60, 1),
    }
    good = found["growth_mb"] <= MOST_GROWTH_MB and found["most_maps"] <= MOST_MAPS
    return {"good": good, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/many_fits.json"))
    options = parser.parse_args()
    compiled: list[str] = []

    def count(event: str, *_: float, **about: str) -> None:
        if event == _COMPILED:
            compiled.append(about["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(count)
    fits, report = [], {}
    for seed, shape in enumerate(order(options.fits, options.shapes)):
        compiled.clear()
        began = time.monotonic()
        fit_and_use(shape, seed)
        fits.append(
            {
                "shape": shape,
                "resident_mb": round(resident_mb(), 1),
                "maps": memory_maps(),
                "programs": len(PROGRAMS),
                "compiled": sorted(set(compiled)),
                "seconds": round(time.monotonic() - began, 1),
            }
        )
        told = fits[-1] | {"compiled": len(fits[-1]["compiled"])}
        print(seed + 1, *(f"{name} {value}" for name, value in told.items()), flush=True)
        versions = {"jax": jax.__version__, "python": platform.python_version()}
        report = {"versions": versions, **summary(fits), "each": fits}
        atomic_write(options.out, json.dumps(report, indent=1).encode())
    print(json.dumps({name: value for name, value in report.items() if name != "each"}, indent=1))
    sys.exit(not report["good"])


if __name__ == "__main__":
    main()
