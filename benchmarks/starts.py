"""Which start does training take: latent dimension, window, coordinates, linear drift or not?

    python benchmarks/starts.py [--seeds 3] [--data FOLDER] [--out benchmarks/results]

On the problems of the core benchmark, with three levels of noise and several seeds, and on the training parts of real
recordings where their folder is given. Nothing is trained; a few seconds each. The table is written to starts.json and
printed.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lamperti.bench.problems import CORE, NOISES, PROBLEMS
from lamperti.bench.recordings import RECORDINGS, Recording
from lamperti.data.bridging import tracks
from lamperti.data.files import atomic_write
from lamperti.data.scaling import Scaler
from lamperti.data.starts import choose_start
from lamperti.data.windows import interpolate


def chosen(series: list) -> dict:
    """What `fit` would take, and the error of the best of each dimension in sds of the data."""
    arrays = [interpolate(track) for track in tracks(series, Scaler.from_series(series))]
    began = time.process_time()
    choice = choose_start(arrays)
    return {
        "dimension": choice.dimension,
        "window": choice.window,
        "coordinates": choice.coordinates,
        "linear": choice.linear,
        "errors": {one.dimension: round(one.error, 4) for one in choice.curve},
        "standard_errors": {one.dimension: round(one.se, 4) for one in choice.curve},
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def simulated(seeds: int) -> list[dict]:
    found = []
    for name in CORE:
        for noise in NOISES:
            for seed in range(seeds):
                row = chosen(PROBLEMS[name].training_data(noise, seed).series)
                found.append({"system": name, "truth": PROBLEMS[name].latent_dim, "noise": noise, "seed": seed, **row})
                _tell(found[-1])
    return found


def recorded(folder: Path) -> list[dict]:
    found = []
    for recording in RECORDINGS.values():
        if isinstance(recording, Recording):
            found.append({"recording": recording.name, **chosen([recording.load(folder).train])})
            _tell(found[-1])
    return found


def _tell(row: dict) -> None:
    name = row.get("system") or row["recording"]
    shape = "linear" if row["linear"] else "not linear"
    errors = " ".join(f"{error:.3f}" for error in row["errors"].values())
    print(f"{name:22} {row.get('noise', ''):>4} {row['dimension']} {shape}, {row['coordinates']}, {errors}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    rows = simulated(options.seeds)
    results = {"simulated": rows, "recordings": recorded(options.data) if options.data else []}
    right = np.mean([row["dimension"] == row["truth"] for row in rows]) if rows else np.nan
    print(f"the true dimension in {right:.0%} of {len(rows)}")
    options.out.mkdir(parents=True, exist_ok=True)
    atomic_write(options.out / "starts.json", json.dumps(results, indent=1).encode())


if __name__ == "__main__":
    main()
