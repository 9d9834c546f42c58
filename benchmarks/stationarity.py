"""How often does `lamperti.data.stationarity.assess` call records of known processes stationary?

    python benchmarks/stationarity.py [--records 100] [--out benchmarks/results]

One row a process: whether it has a law that stays on the scale of the record, and the share of simulated records that
were called stationary. Lengths are 30 to 4000 samples; "record" is the length of the record. A single path of a
random walk is often hard to tell from a relaxation over a tenth of the record: no test of level 2 % finds more than
about half of them, and those that are missed mostly end within their own range.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from lamperti.data import Series, systems
from lamperti.data.files import atomic_write
from lamperti.data.stationarity import assess

Rng = np.random.Generator
Maker = Callable[[Rng], list[Series]]


def relaxation(n: int, over: float, rng: Rng, k: int | None = None) -> np.ndarray:
    """Ornstein-Uhlenbeck with a record of ``over`` relaxation times."""
    a = np.exp(-over / n)
    shape = (n,) if k is None else (k, n)
    noise = rng.standard_normal(shape)
    noise[..., 1:] *= np.sqrt(1 - a**2)
    return lfilter([1.0], [1.0, -a], noise)


def walk(n: int, rng: Rng) -> np.ndarray:
    return np.cumsum(rng.standard_normal(n))


def switching(n: int, visits: int, rng: Rng) -> np.ndarray:
    """Two wells with this many visits in all, of random lengths, and fast motion in each."""
    ends = np.sort(rng.uniform(0, n, visits - 1))
    return 2.0 * (np.searchsorted(ends, np.arange(n)) % 2) - 1 + 0.3 * relaxation(n, n / 5, rng)


def slow_cycles(n: int, cycles: float, rng: Rng) -> np.ndarray:
    return np.sin(2 * np.pi * cycles * np.arange(n) / n + rng.uniform(0, 6.28)) + 0.3 * rng.standard_normal(n)


def line(n: int, change: float, over: float | None, rng: Rng) -> np.ndarray:
    """A line that changes by so many sds of the white or relaxing noise about it."""
    noise = rng.standard_normal(n) if over is None else relaxation(n, over, rng)
    return change * rng.choice([-1, 1]) * np.arange(n) / n + noise


def trend_and_season(n: int, rng: Rng) -> np.ndarray:
    t = np.arange(n) / n
    return 20 * t + 10 * t**2 + 3 * np.sin(2 * np.pi * 40 * t) + 0.3 * rng.standard_normal(n)


def growth(n: int, fold: float, rng: Rng) -> np.ndarray:
    return fold ** (np.arange(n) / n) * np.exp(0.1 * rng.standard_normal(n))


def decay(n: int, rng: Rng) -> np.ndarray:
    """A start far away that is forgotten within a tenth of the record."""
    return 10 * np.exp(-10 * np.arange(n) / n) + relaxation(n, 50, rng)


def spikes_on_wander(n: int, rng: Rng) -> np.ndarray:
    """Sharp beats on a baseline that wanders with a tenth of the record, at a quarter of their height."""
    beats = np.exp(-0.5 * ((np.arange(n) % 90 - 45) / 1.5) ** 2)
    return beats + 0.25 * relaxation(n, 10, rng) * 0.5 + 0.02 * rng.standard_normal(n)


def transient_lorenz(rng: Rng) -> list[Series]:
    made = systems.lorenz(1, 1500, 0.02, seed=int(rng.integers(1 << 31)), noise=0.5)
    y = made.series[0].values[:, 0].copy()
    y[:500] = 8.5 + np.exp(0.005 * np.arange(500)) * 0.3 * np.sin(np.arange(500) * 0.16)  # spirals out of a focus
    return one(y)


def gappy(y: np.ndarray, rng: Rng) -> list[Series]:
    """Irregular times, a tenth missing, a hole of a sixth of the record."""
    kept = rng.uniform(size=len(y)) > 0.1
    kept[len(y) // 2 : 2 * len(y) // 3] = False
    times = np.arange(len(y)) + rng.uniform(-0.3, 0.3, len(y))
    return [Series(y[kept], times=times[kept])]


def one(y: np.ndarray) -> list[Series]:
    return [Series(y)]


def many(rows: np.ndarray) -> list[Series]:
    return [Series(y) for y in rows]


def ensemble(name: str) -> Maker:
    def make(rng: Rng) -> list[Series]:
        return getattr(systems, name)(60, 400, seed=int(rng.integers(1 << 31)), observation_noise=0.1).series

    return make


def single(name: str, n: int) -> Maker:
    return lambda rng: getattr(systems, name)(1, n, seed=int(rng.integers(1 << 31)), observation_noise=0.1).series


STATIONARY: dict[str, Maker] = {
    "white noise, 30 samples": lambda rng: one(rng.standard_normal(30)),
    "white noise, 1000": lambda rng: one(rng.standard_normal(1000)),
    "Student-t noise with 2 degrees, 1000": lambda rng: one(rng.standard_t(2, 1000)),
    "noise with one value of 1e12, 900": lambda rng: one(np.append(rng.standard_normal(899), 1e12)),
    "relaxation over record / 10, 100": lambda rng: one(relaxation(100, 10, rng)),
    "relaxation over record / 10, 1000": lambda rng: one(relaxation(1000, 10, rng)),
    "relaxation over record / 10, gaps, 1000": lambda rng: gappy(relaxation(1000, 10, rng), rng),
    "relaxation over record / 20, 1000": lambda rng: one(relaxation(1000, 20, rng)),
    "its exponential, 1000": lambda rng: one(np.exp(2 * relaxation(1000, 20, rng))),
    "3 slow cycles, 1000": lambda rng: one(slow_cycles(1000, 3, rng)),
    "4.5 slow cycles, 100": lambda rng: one(slow_cycles(100, 4.5, rng)),
    "two wells, 4 visits, 2000": lambda rng: one(switching(2000, 4, rng)),
    "two wells, 6 visits, 2000": lambda rng: one(switching(2000, 6, rng)),
    "two wells, 12 visits, 2000": lambda rng: one(switching(2000, 12, rng)),
    "one jump, 1000": lambda rng: one(switching(1000, 2, rng)),
    "decay from afar, 1000": lambda rng: one(decay(1000, rng)),
    "spikes on a wandering baseline, 4000": lambda rng: one(spikes_on_wander(4000, rng)),
    "Lorenz after a third of spiralling out, 1500": transient_lorenz,
    "60 relaxations over 5 records, 400": lambda rng: many(relaxation(400, 0.2, rng, 60)),
    "60 relaxations over the record, 400": lambda rng: many(relaxation(400, 1, rng, 60)),
    "4 relaxations over record / 5, 400": lambda rng: many(relaxation(400, 5, rng, 4)),
    "60 decays from afar, 400": lambda rng: many(np.stack([decay(400, rng) for _ in range(60)])),
}
WITHOUT_LAW: dict[str, Maker] = {
    "line over 3 sds of white noise, 60": lambda rng: one(line(60, 3, None, rng)),
    "line over 3 sds of white noise, 1000": lambda rng: one(line(1000, 3, None, rng)),
    "line over 4 sds of relaxing noise (record / 20), 1000": lambda rng: one(line(1000, 4, 20, rng)),
    "line over 6 sds of relaxing noise (record / 10), 1000": lambda rng: one(line(1000, 6, 10, rng)),
    "trend and season, 1000": lambda rng: one(trend_and_season(1000, rng)),
    "trend and season, gaps, 1000": lambda rng: gappy(trend_and_season(1000, rng), rng),
    "growth to the 10-fold, 100": lambda rng: one(growth(100, 10, rng)),
    "growth to the 1000-fold, 1000": lambda rng: one(growth(1000, 1000, rng)),
    "random walk, 100": lambda rng: one(walk(100, rng)),
    "random walk, 1000": lambda rng: one(walk(1000, rng)),
    "random walk with drift, 1000": lambda rng: one(walk(1000, rng) + 0.1 * np.arange(1000)),
    "random walk that ends beyond its range, 1000": lambda rng: one(_ends_outside(rng)),
    "twice integrated noise, 1000": lambda rng: one(np.cumsum(walk(1000, rng))),
    "60 random walks from 0, 400": lambda rng: many(np.stack([walk(400, rng) for _ in range(60)])),
    "60 lines over 3 sds of white noise, 400": lambda rng: many(
        np.arange(400) / 400 * 3 + rng.standard_normal((60, 400))
    ),
    "60 lines up or down, 400": lambda rng: many(np.stack([line(400, 4, None, rng) for _ in range(60)])),
    "3 trends with season, 1000": lambda rng: many(np.stack([trend_and_season(1000, rng) for _ in range(3)])),
}


def _ends_outside(rng: Rng) -> np.ndarray:
    """The first walk whose last tenth lies wholly above or below all that came before."""
    while True:
        y = walk(1000, rng)
        if y[900:].min() > y[:900].max() or y[900:].max() < y[:900].min():
            return y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100, help="simulated records of each process")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    found = study(given.records)
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"records": given.records, "called stationary": found}, indent=1) + "\n"
    atomic_write(given.out / "stationarity.json", text.encode())


def study(records: int) -> dict[str, dict[str, float]]:
    """Share of records called stationary, for processes that have a law that stays and for others."""
    few = max(records // 50, 1)  # simulating the systems takes most of the time
    found = {"stationary": _rows(STATIONARY, records), "without a law": _rows(WITHOUT_LAW, records)}
    names = [n for n in systems.__all__ if n[0].islower()]
    found["stationary"] |= _rows({f"60 x 400 of {name}": ensemble(name) for name in names}, few)
    found["stationary"] |= _rows({f"{name}, 2000": single(name, 2000) for name in names}, few)
    return found


def _rows(makers: dict[str, Maker], records: int) -> dict[str, float]:
    rows = {}
    for k, (name, make) in enumerate(makers.items()):
        called = [assess(make(np.random.default_rng([k, i]))).stationary for i in range(records)]
        rows[name] = round(float(np.mean(called)), 4)
        print(f"{rows[name]:6.3f}  {name}", flush=True)
    return rows


if __name__ == "__main__":
    main()
