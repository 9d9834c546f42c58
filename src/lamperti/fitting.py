"""Learning: from series to a fitted model, at once or going on from where a run stood.

check -> scale -> segment -> start -> train -> calibrate -> result. With the folder of a run, what is needed to go on is
committed to it at every validation.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np

from lamperti._errors import ConfigError, RunError, TrainingError
from lamperti._numbers import as_seed
from lamperti._runtime import refuse_fork
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.bridging import tracks
from lamperti.data.checking.concerns import warn_of_concerns
from lamperti.data.holding import hold_out
from lamperti.data.reading import read
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series, as_series_list, check_for_training
from lamperti.data.training_data import record_split
from lamperti.data.windows import Batch, SegmentSet, Track, segment
from lamperti.forecasting import smooth
from lamperti.model import LatentSDE
from lamperti.progress import Showing, shows_progress
from lamperti.results import Config, FitResult
from lamperti.runs.folder import RunFolder, new_run, unfinished_run
from lamperti.train.build import build_model, choose, settings_of, skeleton
from lamperti.train.calibrate import calibrate
from lamperti.train.history import STOPPED, History, Status
from lamperti.train.interrupts import Terminated, pass_on, termination_raised
from lamperti.train.loop import Checkpoint, Progress, Settings, Watch, as_segment, part, train
from lamperti.train.memory import check_training
from lamperti.train.position import Position
from lamperti.train.step import make_optimiser

_KEPT_STATES = 512
_VALIDATION_SEGMENTS = 32
_CALIBRATION_SAMPLES = 24_000
_LEAST_TRIED = 3  # coordinates, from which on one more is tried
_TRIAL_ITERATIONS = 150
_WORTH_TRIALS = 4  # trainings that are shorter than so many trials do without
_TRIAL_SHARE, _CALIBRATION_SHARE = 0.2, 0.4  # of a time limit, what each trial and calibration may take on top

_C = TypeVar("_C", ModelConfig, FitConfig)


def build(data: Any, model: ModelConfig | None = None, *, seed: int = 0) -> LatentSDE:
    """The model at its start, before training: the Hankel embedding with a regressed drift."""
    refuse_fork()
    model = _config(model, ModelConfig, "model")
    series = as_series_list(data)
    check_for_training(series)
    standard = tracks(series, Scaler.from_series(series))
    return build_model(choose(model, standard), standard, seed=as_seed(seed))


@shows_progress
def fit(
    data: Any,
    model: ModelConfig | None = None,
    fit: FitConfig | None = None,
    *,
    progress: Showing = None,
    watch: Watch | None = None,
    run: str | os.PathLike | None = None,
    overwrite: bool = False,
    origin: Mapping[str, Any] | None = None,
) -> FitResult:
    """Learn a latent stochastic differential equation from one or many series.

    data: a Series, a list of them (ragged allowed), or an array [T], [R, T] or [R, T, P].
    progress: one line in a terminal or notebook by default; True shows it everywhere, False nowhere. A function is
    called with each history record; its method ``stage``, if any, with a word on what comes before and after training.
    watch: called with every iteration and the model as it is then; copy what is to be kept of it.
    run: a folder that gets configuration, history, checkpoints and the model; `resume` goes on from it.
    overwrite: replace the run that is in the folder already.
    origin: how to read the data again, ``{"path": ..., "options": {...}}``, so that `resume` needs no data.

    Ctrl-C ends the iteration, commits it to the run and returns the best state so far; a second one stops at once.
    SIGTERM does so, too, and then ends the process, or calls the handler that you have set for it.
    Raises `SeriesError`, `ConfigError`, `TrainingError`, and `RunError` when the run cannot be written.
    """
    refuse_fork()
    model, fit = _config(model, ModelConfig, "model"), _config(fit, FitConfig, "fit")
    walk = _prepare(as_series_list(data), model, fit)
    ask = model.latent_dim is None
    if run is None:
        start = _start(walk)
        warn_of_concerns(walk.series)  # once nothing is left that would be refused
        tried, stopped = _try_dimensions(walk, progress) if ask else (walk, None)
        start = start if tried.config == walk.config else _start(tried)
        result = _learn(tried, stopped or start, progress, watch)
    else:
        with new_run(run, overwrite=overwrite) as folder, _failures_kept(folder):
            start = _start(walk)
            folder.begin(walk.config, walk.series, start, origin)
            warn_of_concerns(walk.series)
            tried, stopped = _try_dimensions(walk, progress) if ask else (walk, None)
            if tried.config != walk.config:
                walk, start = tried, _start(tried)
                folder.begin(walk.config, walk.series, start, origin)
            result = _learn(walk, stopped or start, progress, watch, folder)
    pass_on(result.history.status)
    return result


@shows_progress
def resume(path: str | os.PathLike, data: Any = None, *, progress: Showing = None) -> FitResult:
    """Go on with a run from its last commit, as if it had never stopped (on the same machine, with the same versions).

    path: the folder that `fit` was given as ``run``. data: as `fit` got it; when left out it is read again from where
    the run says it came from. A run that is done gives its result at once.
    Raises `RunError` when there is no run, another process works on it, or the data is not that of the run.
    """
    refuse_fork()
    with unfinished_run(path) as folder, _failures_kept(folder):
        if data is None:
            if folder.origin is None:
                raise RunError(f"{path} does not say where its data came from. Give the data, as fit got it.")
            data = read(folder.origin["path"], **folder.origin["options"])
        series = as_series_list(data)
        folder.check_data(series)
        walk = _prepare(series, folder.config.model, folder.config.fit)
        blank = skeleton(walk.config.model, len(series[0].names))
        position = folder.last_position(blank, make_optimiser(walk.settings.rates))
        result = _learn(walk, position or _start(walk), progress, folder=folder)
    pass_on(result.history.status)
    return result


@dataclass(frozen=True, eq=False)
class _Walk:
    """The data on its way: what training needs of it."""

    series: list[Series]
    scaler: Scaler
    config: Config
    training: list[Track]
    held_out: list[Track]

    @property
    def settings(self) -> Settings:
        return settings_of(self.config.fit)


def _prepare(series: list[Series], model: ModelConfig, fit: FitConfig) -> _Walk:
    check_for_training(series)
    scaler = Scaler.from_series(series)
    standard = tracks(series, scaler)
    config = choose(model, standard)
    rng = np.random.default_rng(fit.seed)
    training, held_out = hold_out(standard, fit.validation_fraction, config.window or 1, rng)
    return _Walk(series, scaler, Config(config, fit), training, held_out)


@dataclass(frozen=True, eq=False)
class _Stopped:
    """Where a training stood that a signal ended while dimensions were compared."""

    position: Position
    status: Status

    def keep(self, commit: Checkpoint | None) -> tuple[LatentSDE, History]:
        """What was learned until then; committed as what can be gone on with."""
        at = self.position
        at.history.status = "running"
        if commit is not None:
            commit(at)
        at.history.status = self.status
        return at.best if at.history.records else at.state.model, at.history


def _try_dimensions(walk: _Walk, progress: Progress | None) -> tuple[_Walk, _Stopped | None]:
    """With the dimension that the data suggest or one more, whichever a short training likes better; and, when a signal
    ended that, what was trained until then.

    Two coordinates are left as they are: a third has never been better (docs/adr/0024)."""
    config = walk.config.model
    dim, window, n_channels = config.latent_dim or 1, config.window or 1, len(walk.series[0].names)
    settings = walk.settings
    worth_it = walk.held_out and settings.max_iterations >= _WORTH_TRIALS * _TRIAL_ITERATIONS
    if dim < _LEAST_TRIED or window * n_channels <= dim or not worth_it:
        return walk, None
    _tell(progress, f"comparing {dim} and {dim + 1} coordinates")
    settings = dataclasses.replace(
        settings, max_iterations=_TRIAL_ITERATIONS, max_seconds=_TRIAL_SHARE * settings.max_seconds, gauge_at=()
    )
    trials: list[tuple[float, _Walk, list[Position]]] = []
    for n in (dim, dim + 1):
        more = {"latent_dim": n, "n_components": max(config.n_components, n)}
        tried = dataclasses.replace(walk, config=Config(config.model_copy(update=more), walk.config.fit))
        model = _start(tried)
        segments, validation = _segments(tried, model.encoder.lead)
        check_training(tried.config.model, tried.config.fit, segments.length)
        at: list[Position] = []
        try:
            _, history = train(model, segments, validation, settings, checkpoint=at.append)
        except TrainingError:  # what cannot be trained is not chosen; with the suggestion, training will say why
            continue
        trials.append((history.best_score, tried, at))
        if history.status in STOPPED:
            _, first, at = trials[0]
            if not at:  # nothing has been learned yet
                raise Terminated if history.status == "terminated" else KeyboardInterrupt
            return first, _Stopped(at[-1], history.status)
        if history.status == "max_minutes":
            return walk, None  # too early to tell
    return max(trials, key=lambda t: t[0])[1] if len(trials) == 2 else walk, None


def _start(walk: _Walk) -> LatentSDE:
    return build_model(walk.config.model, walk.training, seed=walk.config.fit.seed)


def _learn(
    walk: _Walk,
    start: LatentSDE | Position | _Stopped,
    progress: Progress | None,
    watch: Watch | None = None,
    folder: RunFolder | None = None,
) -> FitResult:
    fit = walk.config.fit
    at = start.position if isinstance(start, _Stopped) else start
    segments, validation = _segments(walk, (at.best if isinstance(at, Position) else at).encoder.lead)
    check_training(walk.config.model, fit, segments.length, likelihood_of=_CALIBRATION_SAMPLES)
    commit = None if folder is None else folder.commit
    if isinstance(start, _Stopped):
        trained, history = start.keep(commit)
    else:
        trained, history = train(start, segments, validation, walk.settings, progress, watch, commit)
    if fit.calibrate and history.status not in STOPPED:  # who stops training wants it back soon
        _tell(progress, "calibrating")
        held_out = None if validation is None else as_segment(validation)
        batch = as_segment(segments.cover(max(_CALIBRATION_SAMPLES // segments.length, 1)))
        try:
            with termination_raised():
                trained = calibrate(
                    trained,
                    batch,
                    held_out,
                    n_transitions=segments.n_transitions,
                    max_seconds=_CALIBRATION_SHARE * walk.settings.max_seconds,
                )
        except (KeyboardInterrupt, Terminated) as error:  # it takes minutes, and what was trained is worth keeping
            history.status = "terminated" if isinstance(error, Terminated) else "interrupted"
    states = _visited(trained, segments.cover(_VALIDATION_SEGMENTS), seed=fit.seed)
    first = walk.series[0]
    repairs = tuple(dict.fromkeys(text for s in walk.series for text in s.repairs))
    result = FitResult(
        trained,
        history,
        walk.config,
        walk.scaler,
        first.names,
        states,
        first.units,
        first.time_unit,
        repairs,
        tuple(walk.series),
        record_split(walk.series, walk.scaler, fit.validation_fraction, walk.config.model.window or 1, fit.seed),
    )
    if folder is not None:
        folder.finish(result)
    return result


def _tell(progress: Progress | None, stage: str) -> None:
    tell = getattr(progress, "stage", None)
    if callable(tell):
        tell(stage)


def _segments(walk: _Walk, lead: int) -> tuple[SegmentSet, Batch | None]:
    length = min(walk.config.fit.segment_length, max(len(t.y) for t in walk.training))
    segments = segment(walk.training, length, lead)
    return segments, segment(walk.held_out, length, lead).cover(_VALIDATION_SEGMENTS) if walk.held_out else None


@contextmanager
def _failures_kept(folder: RunFolder) -> Iterator[None]:
    """The events that led to a stop stay in the run."""
    try:
        yield
    except TrainingError as error:
        folder.fail(error)
        raise


def _config(given: _C | None, kind: type[_C], name: str) -> _C:
    if given is not None and not isinstance(given, kind):
        raise ConfigError(f"{name} must be a lamperti.{kind.__name__}(...); got a {type(given).__name__}.")
    return kind() if given is None else given


def _visited(model: LatentSDE, batch: Batch, *, seed: int) -> np.ndarray:
    """States that the training data went through: smoothed means, thinned."""
    lead = model.encoder.lead
    means = [np.asarray(smooth(model, part(batch, i), key=jax.random.key(seed)).mean) for i in range(len(batch.y))]
    linked = np.concatenate([batch.link[:, lead:], np.zeros((len(batch.y), 1), bool)], axis=1)
    x = np.concatenate(means)[linked.reshape(-1)]
    return x[np.linspace(0, len(x) - 1, min(len(x), _KEPT_STATES)).astype(int)]
