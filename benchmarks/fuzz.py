"""Random damage to good files, against the readers: anything but a documented error is reported.

    python benchmarks/fuzz.py --target csv --minutes 10 [--seed 0] [--keep FOLDER] [--out results.json]

Targets: csv (plain and packed), npz (and npy), zarr (metadata and chunks), model (a model file).
A finding is an exception that is no `LampertiError`, a warning that is no `LampertiWarning`, or a reading that takes
longer than a minute. Each is written to FOLDER with its traceback. The exit code counts findings, up to 100.
--target may be given several times, or left out for all; each gets the minutes. --out gets the results of each target
as it ends, beside those that the file has of others.
"""

import argparse
import gzip
import io
import json
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lamperti as lp
from lamperti.config import Config
from lamperti.data import Scaler
from lamperti.data.files import atomic_write
from lamperti.train.history import History

_WORDS = [
    b"nan",
    b"inf",
    b"-",
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b"\0",
    b"1e999",
    b"1e-999",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
]
_WORDS += [
    b"99999999999999999999999",
    b"-1",
    b"{}",
    b"[",
    b"]",
    b"null",
    b"true",
    b"\x80\x04",
    b"PK\x03\x04",
    b"2024-02-30",
    b"__class__",
]
_OPTIONS = [
    {},
    {"missing": "nan"},
    {"missing": ["nan", -1, "x"], "sort": True, "duplicates": "mean"},
    {"decimal": ",", "separator": ";"},
    {"time": "time", "id": "who"},
    {"channel": "who", "value": "x", "missing": "nan"},
    {"codes": "who", "split_gaps": 3, "drop_constant": True},
]


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """A few random changes: bytes set, words put in, parts cut, doubled or exchanged."""
    data = bytearray(content)
    for _ in range(rng.geometric(0.5)):
        place = int(rng.integers(0, len(data) + 1))
        match rng.integers(0, 6):
            case 0 if data:
                data[place % len(data)] = int(rng.integers(0, 256))
            case 1:
                data[place:place] = _WORDS[rng.integers(0, len(_WORDS))]
            case 2:
                del data[place : place + int(rng.integers(1, 20))]
            case 3:
                data[place:place] = data[place : place + int(rng.integers(1, 60))]
            case 4:
                del data[place:]
            case 5 if data:
                data[place % len(data)] ^= 1 << int(rng.integers(0, 8))
    return bytes(data)


class Csv:
    """Tables with dates, subjects, gaps and words, plain or packed."""

    def __init__(self, folder: Path):
        rows = [f"{i * 0.5},{'ab'[i % 2]},{np.sin(i):.6g},{i}" for i in range(20)]
        dated = [f"2024-03-{i + 1:02d}T00:00:00Z,a,{np.sin(i):.6g},{i}" for i in range(20)]
        self.seeds = ["\n".join(["time,who,x,n", *r]).encode() for r in (rows, dated)]
        self.folder = folder

    def run(self, rng: np.random.Generator) -> Path:
        content = mutate(self.seeds[rng.integers(0, 2)], rng)
        packed = rng.random() < 0.2
        if packed:
            content = mutate(gzip.compress(content), rng) if rng.random() < 0.5 else gzip.compress(content)
        path = self.folder / ("a.csv.gz" if packed else "a.csv")
        path.write_bytes(content)
        lp.read(path, **_OPTIONS[rng.integers(0, len(_OPTIONS))])
        return path


class Npz:
    """Archives of arrays, and single arrays."""

    def __init__(self, folder: Path):
        archive, array = io.BytesIO(), io.BytesIO()
        np.savez_compressed(archive, time=np.arange(9.0), x=np.sin(np.arange(9.0)), who=np.arange(9))
        np.save(array, np.arange(24.0).reshape(2, 6, 2))
        self.seeds, self.folder = [archive.getvalue(), array.getvalue()], folder

    def run(self, rng: np.random.Generator) -> Path:
        kind = int(rng.integers(0, 2))
        path = self.folder / ("a.npz", "a.npy")[kind]
        path.write_bytes(mutate(self.seeds[kind], rng))
        lp.read(path, **_OPTIONS[rng.integers(0, 3)])
        return path


class Zarr:
    """Stores of version 2 and 3, whose metadata or chunks are damaged."""

    def __init__(self, folder: Path):
        import zarr

        self.folder = folder
        self.seeds = []
        for version in (2, 3):
            store = folder / f"good{version}.zarr"
            group = zarr.open_group(store, mode="w", zarr_format=version)
            names = {"dimension_names": ["time"]} if version == 3 else {}
            for name, values in (("time", np.arange(12.0)), ("x", np.sin(np.arange(12.0)))):
                array = group.create_array(name, shape=(12,), chunks=(5,), dtype="f8", **names)
                array[:] = values + 1
                array.attrs["_ARRAY_DIMENSIONS"] = ["time"]
            self.seeds.append(store)

    def run(self, rng: np.random.Generator) -> Path:
        path = self.folder / "a.zarr"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.seeds[rng.integers(0, 2)], path)
        files = sorted(p for p in path.rglob("*") if p.is_file())
        # Most damage goes to the metadata: chunks are decoded in a process of their own, which takes a second.
        metadata = [p for p in files if p.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup")]
        file = files[rng.integers(0, len(files))] if rng.random() < 0.1 else metadata[rng.integers(0, len(metadata))]
        file.write_bytes(mutate(file.read_bytes(), rng))
        lp.read(path, **_OPTIONS[rng.integers(0, 3)])
        return path


class Model:
    """The file of a small model, not trained."""

    def __init__(self, folder: Path):
        series = lp.systems.ornstein_uhlenbeck(4, 60, dt=0.1, observation_noise=0.1, seed=3).series
        config = lp.ModelConfig(latent_dim=2, n_inducing=8, window=6, lag=2, n_components=4, kernel="se")
        # The model at its start: what is in the file does not matter, and nothing has to be compiled for it.
        model, scaler = lp.build(series, config), Scaler.from_series(series)
        settings = Config(config, lp.FitConfig())
        result = lp.FitResult(model, History(status="interrupted"), settings, scaler, series[0].names, np.zeros((3, 2)))
        lp.save(result, folder / "good.safetensors")
        self.good, self.folder = (folder / "good.safetensors").read_bytes(), folder

    def run(self, rng: np.random.Generator) -> Path:
        # Half of the damage goes to the header, a small part of the file in which all meaning is.
        end = min(8 + int.from_bytes(self.good[:8], "little"), len(self.good))
        content = mutate(self.good[:end], rng) + self.good[end:] if rng.random() < 0.5 else mutate(self.good, rng)
        path = self.folder / "a.safetensors"
        path.write_bytes(content)
        lp.load(path)
        return path


TARGETS: dict[str, Callable[[Path], Csv | Npz | Zarr | Model]] = {"csv": Csv, "npz": Npz, "zarr": Zarr, "model": Model}


def run(target: str, minutes: float, seed: int, keep: Path) -> dict:
    """Damage and read until the time is over; the counts of what happened."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lp.LampertiWarning)
        subject = TARGETS[target](Path(place))
        start = time.monotonic()
        end = start + 60 * minutes
        i = 0
        while time.monotonic() < end and len(findings) < 100:
            began = time.monotonic()
            try:
                subject.run(np.random.default_rng([seed, i]))
                counts["read"] += 1
            except lp.LampertiError as error:
                counts[type(error).__name__] += 1
            except Exception as error:
                name = f"{target}-{seed}-{i}"
                findings.append(f"{name}: {type(error).__name__}: {error}")
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}.txt").write_text(traceback.format_exc())
                _keep(Path(place), keep / name)
            if time.monotonic() - began > 60:
                findings.append(f"{target}-{seed}-{i}: took {time.monotonic() - began:.0f} s")
            i += 1
        seconds = round(time.monotonic() - start, 1)
    return {"files": i, "seconds": seconds, "seed": seed, "outcomes": dict(counts), "findings": findings}


def _keep(place: Path, to: Path) -> None:
    """The damaged file (or store) beside its traceback."""
    for path in place.glob("a.*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, to.with_name(to.name + path.suffix))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out and args.out.is_file() else {}
    findings = 0
    for target in args.target or TARGETS:
        results[target] = run(target, args.minutes, args.seed, args.keep)
        findings += len(results[target]["findings"])
        print(json.dumps({target: results[target]}, indent=1), flush=True)
        if args.out:
            atomic_write(args.out, (json.dumps(results, indent=1) + "\n").encode())
    sys.exit(min(findings, 100))


if __name__ == "__main__":
    main()
