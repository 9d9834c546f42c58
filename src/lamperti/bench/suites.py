"""Named choices of problems, noises, methods and training time."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from lamperti._errors import ConfigError
from lamperti.bench import problems, real, simulated, stand_ins
from lamperti.bench.jobs import Job
from lamperti.bench.methods import BASELINES, LEARNED, METHODS
from lamperti.bench.origins import Part
from lamperti.bench.problems import NOISES, STAND_INS, Problem, StandIn
from lamperti.bench.recordings import RECORDINGS


@dataclass(frozen=True)
class Suite:
    """What is run unless the command says otherwise."""

    problems: tuple[Problem, ...]
    noises: tuple[float, ...] = NOISES
    methods: tuple[str, ...] = (*LEARNED, *BASELINES)
    recordings: tuple[str, ...] = ()
    stand_ins: tuple[StandIn, ...] = ()
    seeds: int = 3
    minutes: float = 10.0


def _take(*names: str) -> tuple[Problem, ...]:
    return tuple(problems.PROBLEMS[name] for name in names)


SUITES = {
    # Half an hour on two cores, so fewer origins and a cheaper oracle.
    "quick": Suite(
        tuple(p.scale_down(n_origins=100, n_particles=1000) for p in _take(*problems.QUICK)),
        noises=(0.1,),
        methods=("lamperti", *BASELINES),
        seeds=1,
        minutes=1.8,
    ),
    "paper": Suite(_take(*problems.PAPER)),
    "core": Suite(_take(*problems.CORE)),
    "recordings": Suite((), stand_ins=tuple(STAND_INS.values())),
    "real": Suite((), methods=METHODS, recordings=tuple(RECORDINGS)),
    # all that may be looked at during development
    "all": Suite(
        tuple(p for p in problems.PROBLEMS.values() if p.name not in problems.FINAL),
        recordings=tuple(RECORDINGS),
        stand_ins=tuple(STAND_INS.values()),
    ),
    "final": Suite(_take(*problems.FINAL)),
}


def jobs_of(
    suite: Suite,
    *,
    seeds: int | None = None,
    noises: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    origins: Part = "report",
) -> list[Job]:
    """The cells of a suite: every problem once before the second seed, and cheap methods first.

    Raises `ConfigError` for a name that the suite does not have.
    """
    names = [*(p.name for p in (*suite.problems, *suite.stand_ins)), *suite.recordings]
    chosen = names if systems is None else _pick(systems, names, "system", "this suite")
    taken = list(suite.methods) if methods is None else _pick(methods, METHODS, "method", "the benchmark")
    ordered = sorted(taken, key=lambda m: (m not in BASELINES, METHODS.index(m)))
    levels = suite.noises if noises is None else noises
    if any(not 0 <= level < 10 for level in levels):
        raise ConfigError(f"noise is given in sds of the observable, such as 0.1; got {list(levels)}.")
    n_seeds = suite.seeds if seeds is None else seeds
    if n_seeds < 1:
        raise ConfigError(f"seeds must be at least 1, got {n_seeds}.")
    known = [
        simulated.job(problem, float(level), method, seed)
        for seed in range(n_seeds)
        for level in levels
        for problem in suite.problems
        if problem.name in chosen
        for method in ordered
    ]
    known += stand_ins.jobs([one for one in suite.stand_ins if one.name in chosen], ordered, n_seeds, origins)
    return known + real.jobs([name for name in suite.recordings if name in chosen], ordered, n_seeds, origins)


def _pick(wanted: Sequence[str], known: Sequence[str], kind: str, where: str) -> list[str]:
    """The names asked for, in the order known; an unknown one is refused with the nearest."""
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(known)}."
            raise ConfigError(f"there is no {kind} {name!r} in {where}. {hint}")
    return [name for name in known if name in wanted]
