"""The training loop: iterate, watch, select, and give back what was learned whatever happens.

A refused step (not finite) is counted; a run of them rolls back to the best state with a smaller rate and more
jitter; when that does not help, training stops with a diagnosis. Ctrl-C returns the best state so far.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._errors import TrainingError
from lamperti.data.windows import Batch, SegmentSet
from lamperti.model import LatentSDE, Segment
from lamperti.objective import ElboTerms
from lamperti.train.gauge import gauge_move
from lamperti.train.schedule import Schedule
from lamperti.train.step import (
    LearningRates,
    StepReport,
    make_optimiser,
    make_score,
    make_step,
    start_state,
)

_REFUSED_BEFORE_ROLLBACK = 5
_MAX_ROLLBACKS = 3
# Scores that differ by less, in nats a transition, are alike.
_TIE = 0.01
_SCORE_SAMPLES = 8

Status = Literal["running", "max_iterations", "max_minutes", "patience", "interrupted"]


@dataclass(frozen=True)
class Settings:
    """Plain numbers that the loop works with."""

    max_iterations: int
    max_seconds: float
    batch_size: int
    n_samples: int
    span_rate: float
    follow: float
    gauge_at: tuple[int, ...]
    validate_every: int
    patience: int
    rates: LearningRates
    schedule: Schedule
    seed: int


@dataclass(frozen=True)
class Record:
    """One line of the history: the bound per transition by terms (nats), and the validation score."""

    iteration: int
    seconds: float
    elbo: float
    emission: float
    initial: float
    transition: float
    entropy: float
    kl: float
    validation: float | None = None
    refused: int = 0
    halvings: int = 0
    eta_seconds: float = 0.0


@dataclass
class History:
    """What happened during training."""

    records: list[Record] = field(default_factory=list)
    status: Status = "running"
    best_iteration: int = 0
    best_score: float = -np.inf
    rollbacks: int = 0
    seconds: float = 0.0


Progress = Callable[[Record], None]
Watch = Callable[[int, LatentSDE], None]
"""Called with the iteration and the model as it is; its arrays are the next step's to reuse, so copy what is kept."""


class _Run:
    """The mutable side of one training run."""

    def __init__(self, model: LatentSDE, segments: SegmentSet, validation: Batch | None, settings: Settings):
        self.settings, self.segments = settings, segments
        self.optimiser = make_optimiser(settings.rates)
        self.step = make_step(
            self.optimiser,
            n_samples=settings.n_samples,
            n_transitions=segments.n_transitions,
            span_rate=settings.span_rate,
            follow=settings.follow,
        )
        self.score = make_score(n_samples=_SCORE_SAMPLES)
        self.rng = np.random.default_rng(settings.seed)
        self.score_key, key = jax.random.split(jax.random.key(settings.seed))
        self.state = start_state(model, self.optimiser, key=key)
        self.held_out = as_segment(validation) if validation is not None else None
        self.best = model
        self.history = History()
        self.slowdown = 1.0
        self.refused_in_a_row = 0
        self.refused = self.halvings = 0
        self.began = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def spent(self, iteration: int) -> float:
        s = self.settings
        return min(1.0, max(iteration / s.max_iterations, self.elapsed / s.max_seconds))

    def iterate(self, iteration: int) -> StepReport:
        batch = as_segment(self.segments.draw(self.rng, self.settings.batch_size))
        rates = self.settings.schedule.at(iteration, self.spent(iteration), self.slowdown)
        self.state, report = self.step(batch, self.state, rates)
        self.halvings += int(report.halvings)
        if bool(report.accepted):
            self.refused_in_a_row = 0
        else:
            self.refused += 1
            self.refused_in_a_row += 1
            if self.refused_in_a_row >= _REFUSED_BEFORE_ROLLBACK:
                self.roll_back(iteration)
        return report

    def roll_back(self, iteration: int) -> None:
        self.history.rollbacks += 1
        if self.history.rollbacks > _MAX_ROLLBACKS:
            raise TrainingError(
                f"training gave values that are not finite at iteration {iteration}, after {_MAX_ROLLBACKS} returns to "
                "the best state with smaller steps. Use a smaller learning_rate and kernel_rate, fewer inducing "
                "inputs (n_inducing), or a larger jitter."
            )
        self.slowdown *= 0.3
        self.refused_in_a_row = 0
        softer = eqx.tree_at(lambda m: m.dynamics.jitter, self.best, self.best.dynamics.jitter * 10.0)
        _, key = jax.random.split(self.state.key)
        self.state = start_state(softer, self.optimiser, key=key)

    def turn(self) -> None:
        batches = [as_segment(self.segments.draw(self.rng, self.settings.batch_size)) for _ in range(8)]
        key_next, key = jax.random.split(self.state.key)
        turned = gauge_move(self.state.model, batches, n_transitions=self.segments.n_transitions, key=key)
        self.state = start_state(turned, self.optimiser, key=key_next)

    def validate(self, iteration: int, terms: ElboTerms) -> float:
        """Score of the held-out segments, or the training bound when nothing was held out."""
        if self.held_out is None:
            value = float(terms.total) / self.segments.n_transitions
        else:
            value = float(self.score(self.state.model, self.held_out, self.score_key))
        if np.isfinite(value) and value > self.history.best_score - _TIE:
            # The later of two states that score alike: rates fall towards the end, and with them the noise in it.
            self.best = jax.tree.map(lambda a: a.copy() if isinstance(a, jax.Array) else a, self.state.model)
            self.history.best_iteration = iteration
            self.history.best_score = max(value, self.history.best_score)
        return value

    def record(self, iteration: int, terms: ElboTerms, validation: float | None) -> Record:
        n = self.segments.n_transitions
        parts = {
            name: float(getattr(terms, name)) / n for name in ("emission", "initial", "transition", "entropy", "kl")
        }
        spent = self.spent(iteration)
        record = Record(
            iteration=iteration,
            seconds=self.elapsed,
            elbo=float(terms.total) / n,
            **parts,
            validation=validation,
            refused=self.refused,
            halvings=self.halvings,
            eta_seconds=self.elapsed * (1.0 - spent) / max(spent, 1e-9),
        )
        self.history.records.append(record)
        return record


def train(
    model: LatentSDE,
    segments: SegmentSet,
    validation: Batch | None,
    settings: Settings,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[LatentSDE, History]:
    """Train and return the best state by validation, with the history."""
    run = _Run(model, segments, validation, settings)
    history = run.history
    try:
        history.status = _loop(run, progress, watch)
    except KeyboardInterrupt:
        history.status = "interrupted"
    history.seconds = run.elapsed
    return run.best, history


def _loop(run: _Run, progress: Progress | None, watch: Watch | None) -> Status:
    settings = run.settings
    if watch is not None:
        watch(0, run.state.model)
    for iteration in range(1, settings.max_iterations + 1):
        if iteration in settings.gauge_at:
            run.turn()
        report = run.iterate(iteration)
        if iteration == 1:
            run.began = time.monotonic()  # compiling is not training: the budget starts here
        if watch is not None:
            watch(iteration, run.state.model)
        last = iteration == settings.max_iterations or run.elapsed >= settings.max_seconds
        if iteration % settings.validate_every == 0 or last:
            value = run.validate(iteration, report.terms)
            record = run.record(iteration, report.terms, value)
            if progress is not None:
                progress(record)
            if iteration - run.history.best_iteration >= settings.patience * settings.validate_every:
                return "patience"
        if last:
            return "max_iterations" if iteration == settings.max_iterations else "max_minutes"
    return "max_iterations"


def as_segment(batch: Batch) -> Segment:
    return Segment(*(jnp.asarray(a) for a in batch))
