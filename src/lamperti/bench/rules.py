"""What numbers must be, and whether they are: the rules of targets, and how a target is judged by one."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lamperti.bench.summaries import Results

METHOD = "lamperti"
"""Whose numbers count: the library with its defaults."""

Picked = Mapping[str, float]
Outcome = Literal["met", "missed", "partly run", "not run"]


@dataclass(frozen=True)
class Rule:
    """What numbers must be, and the words for what they are."""

    holds: Callable[[list[float]], bool]
    reached: Callable[[Picked], str]
    each: bool
    """Whether one number alone can break it."""


@dataclass(frozen=True)
class Target:
    what: str
    goal: str
    pick: Callable[[Results], Picked]
    rule: Rule
    needed: int
    """How many numbers it speaks of."""


@dataclass(frozen=True)
class Verdict:
    what: str
    goal: str
    reached: str
    outcome: Outcome
    basis: str
    """How many of the numbers needed were there."""


def judge(target: Target, results: Results) -> Verdict:
    """Compare one target with what was reached."""
    picked = target.pick(results)
    if not picked:
        return Verdict(target.what, target.goal, "", "not run", f"0 of {target.needed}")
    holds = target.rule.holds(list(picked.values()))
    complete = len(picked) >= target.needed
    outcome: Outcome = "partly run"
    if complete or (target.rule.each and not holds):
        outcome = "met" if holds else "missed"
    basis = f"{len(picked)} of {max(len(picked), target.needed)}" if target.needed > 1 or not complete else ""
    return Verdict(target.what, target.goal, target.rule.reached(picked), outcome, basis)


def _named(picked: Picked, label: str) -> str:
    return f"{picked[label]:.3g} ({label})"


def at_least(limit: float) -> Rule:
    return Rule(
        lambda v: all(x >= limit for x in v), lambda p: f"lowest {_named(p, min(p, key=lambda k: p[k]))}", each=True
    )


def at_most(limit: float) -> Rule:
    return Rule(
        lambda v: all(x <= limit for x in v), lambda p: f"highest {_named(p, max(p, key=lambda k: p[k]))}", each=True
    )


def between(low: float, high: float) -> Rule:
    middle = 0.5 * (low + high)
    return Rule(
        lambda v: all(low <= x <= high for x in v),
        lambda p: f"furthest off {_named(p, max(p, key=lambda k: abs(p[k] - middle)))}",
        each=True,
    )


def median_at_least(limit: float) -> Rule:
    return Rule(lambda v: float(np.median(v)) >= limit, lambda p: f"median {np.median(list(p.values())):.3g}", False)


def median_at_most(limit: float) -> Rule:
    return Rule(lambda v: float(np.median(v)) <= limit, lambda p: f"median {np.median(list(p.values())):.3g}", False)


def mean_between(low: float, high: float) -> Rule:
    return Rule(
        lambda v: low <= float(np.mean(v)) <= high, lambda p: f"mean {np.mean(list(p.values())):.3g}", each=False
    )


def below_one_at_least(count: int) -> Rule:
    return Rule(
        lambda v: sum(x < 1 for x in v) >= count,
        lambda p: f"{sum(x < 1 for x in p.values())} of {len(p)}; better on {_listed(k for k in p if p[k] < 1)}",
        each=False,
    )


def at_most_on(limit: float, count: int) -> Rule:
    """So many of the numbers."""
    return Rule(
        lambda v: sum(x <= limit for x in v) >= count,
        lambda p: (
            f"{sum(x <= limit for x in p.values())} of {len(p)}; above on {_listed(k for k in p if p[k] > limit)}"
        ),
        each=False,
    )


def _listed(names) -> str:
    return ", ".join(names) or "none"


def metric(
    *names: str, systems: Collection[str], noise: float | None = 0.1, horizons: tuple[int, ...] | None = None
) -> Callable[[Results], Picked]:
    """Medians over seeds of some metrics; a name that ends in a space stands for all metrics that begin with it."""

    def pick(results: Results) -> Picked:
        known = results.metrics(METHOD)
        wanted = [m for n in names for m in known if m == n or (n.endswith(" ") and m.startswith(n))]
        found = {}
        for name in wanted:
            for (system, horizon), one in results.values(name, METHOD, noise, horizons).items():
                if system in systems:
                    words = [system, name if len(wanted) > 1 else "", f"h={horizon}" if horizons else ""]
                    found[" ".join(filter(None, words))] = one.median
        return found

    return pick
