"""Named choices of problems, noises, methods and training time."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from lamperti._errors import ConfigError
from lamperti.bench import problems, simulated
from lamperti.bench.jobs import Job
from lamperti.bench.methods import BASELINES, METHODS
from lamperti.bench.problems import NOISES, Problem

NAMES = ("quick", "paper", "core", "real", "all")


@dataclass(frozen=True)
class Suite:
    """What is run unless the command says otherwise."""

    problems: tuple[Problem, ...]
    noises: tuple[float, ...]
    methods: tuple[str, ...]
    seeds: int
    minutes: float


def _take(*names: str) -> tuple[Problem, ...]:
    return tuple(problems.PROBLEMS[name] for name in names)


SUITES = {
    # Half an hour on two cores, so fewer origins and a cheaper oracle.
    "quick": Suite(
        tuple(p.scale_down(n_origins=100, n_particles=1000) for p in _take(*problems.QUICK)),
        (0.1,),
        ("lamperti", *BASELINES),
        seeds=1,
        minutes=2.5,
    ),
    "paper": Suite(_take(*problems.PAPER), NOISES, METHODS, seeds=3, minutes=10.0),
    "core": Suite(_take(*problems.CORE), NOISES, METHODS, seeds=3, minutes=10.0),
    "all": Suite(tuple(problems.PROBLEMS.values()), NOISES, METHODS, seeds=3, minutes=10.0),
}


def simulated_jobs(
    suite: Suite,
    *,
    seeds: int | None = None,
    noises: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
) -> list[Job]:
    """The cells of a suite: every problem once before the second seed, and cheap methods first."""
    names = [p.name for p in suite.problems]
    chosen = names if systems is None else pick(systems, names, "system", "this suite")
    taken = suite.methods if methods is None else pick(methods, METHODS, "method", "the benchmark")
    ordered = sorted(taken, key=lambda m: (m not in BASELINES, METHODS.index(m)))
    levels = suite.noises if noises is None else noises
    if any(not 0 <= level < 10 for level in levels):
        raise ConfigError(f"noise is given in sds of the observable, such as 0.1; got {list(levels)}.")
    n_seeds = suite.seeds if seeds is None else seeds
    if n_seeds < 1:
        raise ConfigError(f"seeds must be at least 1, got {n_seeds}.")
    return [
        simulated.job(problem, float(level), method, seed)
        for seed in range(n_seeds)
        for level in levels
        for problem in suite.problems
        if problem.name in chosen
        for method in ordered
    ]


def pick(wanted: Sequence[str], known: Sequence[str], kind: str, where: str) -> list[str]:
    """The names asked for, in the order known; an unknown one is refused with the nearest."""
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(known)}."
            raise ConfigError(f"there is no {kind} {name!r} in {where}. {hint}")
    return [name for name in known if name in wanted]
