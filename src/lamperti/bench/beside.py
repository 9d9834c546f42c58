"""The library beside the best simple method of each recording, over all horizons and at each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lamperti.bench.methods import BASELINES
from lamperti.bench.rules import METHOD
from lamperti.bench.summaries import Results


@dataclass(frozen=True)
class Beside:
    """CRPS of the library over that of the best simple method; below 1 is better."""

    best: str
    """The simple method that is best over all horizons."""
    mean: float
    """Of CRPS over climatology's, averaged over horizons."""
    at: Mapping[int, float]
    """At each horizon, beside the one that is best there."""


def beside_best(results: Results) -> dict[str, Beside]:
    """Every recording, real or simulated, that the library and a simple method have been on."""
    ours, ours_at = _scores(results, METHOD)
    simple = {name: _scores(results, name) for name in BASELINES}
    found = {}
    for system, mean in ours.items():
        means = {name: scores[system] for name, (scores, _) in simple.items() if system in scores}
        if not means:
            continue
        best = min(means, key=lambda name: means[name])
        at = {
            h: _over(value, min((other[s, h] for _, other in simple.values() if (s, h) in other), default=math.nan))
            for (s, h), value in ours_at.items()
            if s == system
        }
        found[system] = Beside(best, _over(mean, means[best]), at)
    return found


def _scores(results: Results, method: str) -> tuple[dict[str, float], dict[tuple[str, int], float]]:
    """Medians over seeds: over all horizons by recording, and at each."""
    at = {(s, h): one.median for (s, h), one in results.values("crps", method).items() if h is not None}
    return {s: one.median for s, one in results.mean_crps(method, None).items()}, at


def _over(ours: float, theirs: float) -> float:
    """Their ratio; infinite where only the simple method gave finite futures, and where neither did."""
    return ours / theirs if math.isfinite(ours) and theirs > 0 else math.inf
