"""Targets of recordings: of the simulated ones that stand for what strangers bring, and of the real ones."""

from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from lamperti.bench.beside import beside_best
from lamperti.bench.problems import STAND_INS
from lamperti.bench.recordings import RECORDINGS, Recording
from lamperti.bench.rules import METHOD, Picked, Target, at_most, at_most_on, between, metric
from lamperti.bench.summaries import Results

REAL = tuple(one.name for one in RECORDINGS.values() if isinstance(one, Recording))


def over_best(systems: Collection[str]) -> Callable[[Results], Picked]:
    """Mean CRPS over horizons over that of the best simple method."""
    return lambda results: {s: one.mean for s, one in beside_best(results).items() if s in systems}


def over_best_at_each(systems: Collection[str]) -> Callable[[Results], Picked]:
    """The same at every horizon."""
    return lambda results: {
        f"{s} h={h}": ratio for s, one in beside_best(results).items() if s in systems for h, ratio in one.at.items()
    }


def coverage(systems: Collection[str]) -> Callable[[Results], Picked]:
    """Coverage of 90 % intervals, averaged over horizons."""

    def pick(results: Results) -> Picked:
        found: dict[str, list[float]] = {}
        for (system, _), one in results.values("coverage_90", METHOD).items():
            if system in systems:
                found.setdefault(system, []).append(one.median)
        return {system: float(np.mean(values)) for system, values in found.items()}

    return pick


_measured = partial(metric, noise=None)

RECORDED = (
    Target(
        "stand-ins: share of free-running paths that escape", "0", _measured("escape_share", systems=STAND_INS),
        at_most(0.0), len(STAND_INS),
    ),
    Target(
        "stand-ins: W1 of the values and D_H over the floor, each", "≤ 5",
        _measured("floor_ratio values", "floor_ratio spectrum", systems=STAND_INS), at_most(5.0), 2 * len(STAND_INS),
    ),
    # a linear model may have the right values and the right spectrum, but not the right spikes and beats
    Target(
        "stand-ins: W1 of peaks and D_stsp over the floor, each", "≤ 5",
        _measured("floor_ratio peak heights", "floor_ratio state space", systems=STAND_INS), at_most(5.0),
        2 * len(STAND_INS),
    ),
    Target(
        "stand-ins: 90 % interval coverage, each", "0.85–0.95", coverage(STAND_INS), between(0.85, 0.95), len(STAND_INS)
    ),
    Target(
        "stand-ins: CRPS over the best simple method's, each horizon", "≤ 1.05", over_best_at_each(STAND_INS),
        at_most(1.05), sum(len(one.horizons) for one in STAND_INS.values()),
    ),
    Target(
        "real: mean CRPS over horizons over the best simple method's", f"≤ 1.05 on ≥ 7 of {len(REAL)}", over_best(REAL),
        at_most_on(1.05, 7), len(REAL),
    ),
    Target("real: the same, each", "≤ 1.15", over_best(REAL), at_most(1.15), len(REAL)),
    Target(
        "real: share of forecasts that diverge", "0", _measured("diverging_share", systems=REAL), at_most(0.0),
        len(REAL),
    ),
)  # fmt: skip
