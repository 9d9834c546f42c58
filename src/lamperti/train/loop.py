"""The training loop: iterate, watch, select, and give back what was learned whatever happens.

A refused step (not finite) is counted; a run of them rolls back to the best state with a smaller rate and more
jitter; when that does not help, training stops with a diagnosis. All of it is told by the history's events.
Ctrl-C ends the iteration, commits it where checkpoints are kept, and returns the best state so far.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np

from lamperti._compile import to_jax
from lamperti._errors import TrainingError
from lamperti._process import while_training
from lamperti.data.windows import Batch, SegmentSet
from lamperti.model import LatentSDE, Segment
from lamperti.objective import ElboTerms
from lamperti.train.gauge import gauge_move
from lamperti.train.history import History, Record, Status
from lamperti.train.interrupts import Interrupts, Terminated
from lamperti.train.position import Position
from lamperti.train.schedule import Schedule
from lamperti.train.step import (
    LearningRates,
    StepReport,
    make_optimiser,
    make_step,
    score,
    start_state,
)

_REFUSED_BEFORE_ROLLBACK = 5
_MAX_ROLLBACKS = 3
# Scores that differ by less, in nats a transition, are alike.
_TIE = 0.01
_SCORE_SAMPLES = 8


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


Checkpoint = Callable[[Position], None]
Progress = Callable[[Record], None]
Watch = Callable[[int, LatentSDE], None]
"""Called with the iteration and the model as it is; its arrays are the next step's to reuse, so copy what is kept."""


class _Run:
    """One training run: what stays the same, and the position that iterations move."""

    def __init__(self, start: LatentSDE | Position, segments: SegmentSet, validation: Batch | None, settings: Settings):
        self.settings, self.segments = settings, segments
        self.optimiser = make_optimiser(settings.rates)
        self.step = make_step(
            self.optimiser,
            n_samples=settings.n_samples,
            n_transitions=segments.n_transitions,
            span_rate=settings.span_rate,
            follow=settings.follow,
        )
        self.score_key, key = jax.random.split(jax.random.key(settings.seed))
        self.held_out = as_segment(validation) if validation is not None else None
        if isinstance(start, Position):
            self.at = start
        else:
            state = start_state(start, self.optimiser, key=key)
            self.at = Position(state, start, np.random.default_rng(settings.seed), History())
        self.carried = self.at.seconds
        self.began = time.monotonic()

    @property
    def history(self) -> History:
        return self.at.history

    @property
    def elapsed(self) -> float:
        return self.carried + time.monotonic() - self.began

    def spent(self, iteration: int) -> float:
        s = self.settings
        return min(1.0, max(iteration / s.max_iterations, self.elapsed / s.max_seconds))

    def iterate(self, iteration: int) -> StepReport:
        at = self.at
        batch = as_segment(self.segments.draw(at.rng, self.settings.batch_size))
        rates = self.settings.schedule.at(iteration, self.spent(iteration), at.slowdown)
        at.state, report = self.step(batch, at.state, rates)
        halvings = int(report.halvings)
        at.halvings += halvings
        if bool(report.accepted):
            at.refused_in_a_row = 0
            if halvings:  # those of a refused step say nothing of the cone
                self.history.note(iteration, "shortened step", halvings)
        else:
            at.refused += 1
            at.refused_in_a_row += 1
            self.history.note(iteration, "refused step")
            if at.refused_in_a_row >= _REFUSED_BEFORE_ROLLBACK:
                self.roll_back(iteration)
        at.iteration = iteration
        return report

    def roll_back(self, iteration: int) -> None:
        at = self.at
        if self.history.rollbacks == _MAX_ROLLBACKS:
            raise TrainingError(diagnosis(self.history, iteration), history=self.history)
        self.history.rollbacks += 1
        at.slowdown *= 0.3
        at.refused_in_a_row = 0
        self.history.note(iteration, "rollback")
        self.history.note(iteration, "raised jitter")
        # From the present jitter, not the best state's: each return climbs one rung of a short ladder.
        jitter = at.state.model.dynamics.jitter * 10.0
        softer = eqx.tree_at(lambda m: m.dynamics.jitter, at.best, jitter)
        _, key = jax.random.split(at.state.key)
        at.state = start_state(softer, self.optimiser, key=key)

    def turn(self) -> None:
        at = self.at
        batches = [as_segment(self.segments.draw(at.rng, self.settings.batch_size)) for _ in range(8)]
        key_next, key = jax.random.split(at.state.key)
        turned = gauge_move(at.state.model, batches, n_transitions=self.segments.n_transitions, key=key)
        at.state = start_state(turned, self.optimiser, key=key_next)

    def validate(self, iteration: int, terms: ElboTerms) -> float:
        """Score of the held-out segments, or the training bound when nothing was held out."""
        if self.held_out is None:
            value = float(terms.total) / self.segments.n_transitions
        else:
            value = float(score(self.at.state.model, self.held_out, n_samples=_SCORE_SAMPLES, key=self.score_key))
        if np.isfinite(value) and value > self.history.best_score - _TIE:
            # The later of two states that score alike: rates fall towards the end, and with them the noise in it.
            self.at.best = _copy(self.at.state.model)
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
            refused=self.at.refused,
            halvings=self.at.halvings,
            eta_seconds=self.elapsed * (1.0 - spent) / max(spent, 1e-9),
        )
        self.history.records.append(record)
        return record

    def learned(self) -> LatentSDE:
        """The best state by validation; before the first validation, the last one."""
        return self.at.best if self.history.records else _copy(self.at.state.model)


def train(
    start: LatentSDE | Position,
    segments: SegmentSet,
    validation: Batch | None,
    settings: Settings,
    progress: Progress | None = None,
    watch: Watch | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[LatentSDE, History]:
    """Train and return the best state by validation, with the history.

    start: a model, or the position at which an earlier training stood; with the same segments and settings it goes on
    bit by bit as it would have. checkpoint: called with the position after each validation and before an early stop.
    """
    run = _Run(start, segments, validation, settings)
    history = run.history
    with Interrupts() as interrupts, while_training:
        try:
            history.status = _loop(run, interrupts, progress, watch, checkpoint)
        except (KeyboardInterrupt, Terminated) as error:
            if interrupts.asked:  # the second: at once
                raise
            history.status = "terminated" if isinstance(error, Terminated) else "interrupted"
    history.seconds = run.elapsed
    return run.learned(), history


def _loop(
    run: _Run,
    interrupts: Interrupts,
    progress: Progress | None,
    watch: Watch | None,
    checkpoint: Checkpoint | None,
) -> Status:
    settings, history = run.settings, run.history
    first = iteration = run.at.iteration + 1
    if watch is not None:
        watch(run.at.iteration, run.at.state.model)
    while history.status == "running":
        if iteration in settings.gauge_at:
            run.turn()
        report = run.iterate(iteration)
        if iteration == first:
            run.began = time.monotonic()  # compiling is not training: the budget starts here
        if watch is not None:
            watch(iteration, run.at.state.model)
        last = iteration == settings.max_iterations or run.elapsed >= settings.max_seconds
        record = None
        if iteration % settings.validate_every == 0 or last:
            value = run.validate(iteration, report.terms)
            record = run.record(iteration, report.terms, value)
            if iteration - history.best_iteration >= settings.patience * settings.validate_every:
                history.status = "patience"
        if last:
            history.status = "max_iterations" if iteration == settings.max_iterations else "max_minutes"
        if checkpoint is not None and (record is not None or interrupts.asked):
            run.at.seconds = history.seconds = run.elapsed
            checkpoint(run.at)
        if progress is not None and record is not None:
            progress(record)
        if interrupts.asked and history.status == "running":
            return interrupts.asked
        iteration += 1
    return history.status


def diagnosis(history: History, iteration: int) -> str:
    """Why training cannot go on, and what to change."""
    counts = history.counts()
    happened = ", ".join(f"{count} × {kind}" for kind, count in counts.items())
    if history.best_iteration == 0:
        advice = (
            "No state was ever validated, so the start itself does not suit the data: look for outliers with "
            "lamperti.check; use fewer inducing inputs (n_inducing), a larger jitter, a smaller learning_rate."
        )
    else:
        advice = "Use a smaller learning_rate and kernel_rate, fewer inducing inputs (n_inducing), or a larger jitter."
    if counts.get("shortened step", 0) > iteration // 4:
        advice += " Many natural steps had to be shortened: a smaller natural_rate helps, too."
    return (
        f"training gave values that are not finite at iteration {iteration}, after {_MAX_ROLLBACKS} returns to the "
        f"best state (of iteration {history.best_iteration}) with smaller steps and more jitter ({happened}). {advice}"
    )


def _copy(model: LatentSDE) -> LatentSDE:
    # By way of NumPy: a copy by jax would be a program for every shape.
    return jax.tree.map(lambda a: to_jax(a) if isinstance(a, jax.Array) else a, model)


def as_segment(batch: Batch) -> Segment:
    return Segment(*(to_jax(a) for a in batch))


def part(batch: Batch, i: int = 0) -> Segment:
    """One segment of a batch."""
    return Segment(*(to_jax(a[i]) for a in batch))
