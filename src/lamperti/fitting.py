"""Learning: from series to a fitted model, at once or going on from where a run stood.

check -> scale -> segment -> start -> train -> calibrate -> result. With the folder of a run, what is needed to go on is
committed to it at every validation.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import jax
import numpy as np

from lamperti._errors import ConfigError, RunError, TrainingError
from lamperti._numbers import as_seed
from lamperti._runtime import refuse_fork
from lamperti.alternatives import Found, bounded_of, or_linear, or_regressed, rescaled, tell, that_stays
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.checking.concerns import warn_of_concerns
from lamperti.data.reading import read
from lamperti.data.series import as_series_list
from lamperti.data.starts import REGRESSED, UNTRAINED
from lamperti.data.training_data import record_split
from lamperti.data.windows import Batch
from lamperti.forecasting import smooth
from lamperti.model import LatentSDE
from lamperti.prepared import CALIBRATION_SAMPLES, VALIDATION_SEGMENTS, PreparedData, prepare
from lamperti.progress import Showing, shows_progress
from lamperti.results import FitResult
from lamperti.runs.folder import RunFolder, new_run, unfinished_run
from lamperti.train.build import (
    build_model,
    coordinates_asked,
    skeleton,
)
from lamperti.train.calibrate import calibrate
from lamperti.train.forecast_fit import fit_forecasts
from lamperti.train.history import STOPPED, History
from lamperti.train.interrupts import Terminated, pass_on, termination_raised
from lamperti.train.loop import Progress, Watch, as_segment, part, train
from lamperti.train.memory import check_training
from lamperti.train.position import Position
from lamperti.train.step import make_optimiser

_KEPT_STATES = 512
_CALIBRATION_SHARE = 0.4  # of a time limit, what the likelihood fit may take on top

_C = TypeVar("_C", ModelConfig, FitConfig)


def build(data: Any, model: ModelConfig | None = None, *, seed: int = 0) -> LatentSDE:
    """The model at its start, before training: the Hankel embedding with a regressed drift."""
    refuse_fork()
    model = _config(model, ModelConfig, "model")
    walk = prepare(as_series_list(data), model, FitConfig(seed=as_seed(seed), validation_fraction=0.0))
    return build_model(walk.config.model, walk.training, seed=walk.config.fit.seed)


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
    called with each history record; its method ``stage``, if any, with a word on what comes before and after training,
    and its method ``tell``, if any, with why the latent dimension was chosen.
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
    walk = prepare(as_series_list(data), model, fit)
    if run is None:
        start = _start(walk)
        warn_of_concerns(walk.series)  # once nothing is left that would be refused
        _tell_choice(progress, model, walk)
        result = _learn(walk, start, progress, watch)
    else:
        with new_run(run, overwrite=overwrite) as folder, _failures_kept(folder):
            start = _start(walk)
            folder.begin(walk.config, walk.series, start, origin, walk.dimensions)
            warn_of_concerns(walk.series)
            _tell_choice(progress, model, walk)
            result = _learn(walk, start, progress, watch, folder)
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
        walk = prepare(series, folder.config.model, folder.config.fit, resumed=True)
        walk = replace(walk, dimensions=folder.dimensions)  # the configuration has what was chosen, as if asked for
        blank = skeleton(walk.config.model, len(series[0].names))
        position = folder.last_position(blank, make_optimiser(walk.settings.rates))
        result = _learn(walk, position or _start(walk), progress, folder=folder)
    pass_on(result.history.status)
    return result


def _start(walk: PreparedData) -> LatentSDE:
    if walk.config.model.coordinates == REGRESSED:
        return that_stays(walk, walk.config.model, coordinates_asked(walk.config.model, walk.training))
    return build_model(walk.config.model, walk.training, seed=walk.config.fit.seed)


def _learn(
    walk: PreparedData,
    start: LatentSDE | Position,
    progress: Progress | None,
    watch: Watch | None = None,
    folder: RunFolder | None = None,
) -> FitResult:
    fit = walk.config.fit
    lead = (start.best if isinstance(start, Position) else start).encoder.lead
    segments, validation = walk.segments(lead), walk.validation(lead)
    check_training(walk.config.model, fit, segments.length, likelihood_of=CALIBRATION_SAMPLES)
    commit = None if folder is None else folder.commit
    batch = walk.batch(lead)
    most = _CALIBRATION_SHARE / 2 * walk.settings.max_seconds
    if walk.config.model.coordinates in UNTRAINED and not isinstance(start, Position):
        trained, history = rescaled(walk, start), History(status="closed form")
    else:
        trained, history = train(start, segments, validation, walk.settings, progress, watch, commit)
    config, dimensions = walk.config, walk.dimensions
    if fit.calibrate and history.status not in (*STOPPED, "closed form"):  # who stops training wants it back soon
        tell(progress, "fitting to the likelihood")
        held_out = None if validation is None else as_segment(validation)
        try:
            with termination_raised():
                trained = calibrate(trained, batch, held_out, n_transitions=segments.n_transitions, max_seconds=most)
                trained = _fit_forecasts(walk, trained, progress, most)
                found = Found(trained, config, dimensions)
                if fit.compare_regressed:
                    found = or_regressed(walk, found, progress)
                if fit.compare_linear:
                    found = or_linear(walk, found, progress)
                trained, config, dimensions = found
        except (KeyboardInterrupt, Terminated) as error:  # it takes minutes, and what was trained is worth keeping
            history.status = "terminated" if isinstance(error, Terminated) else "interrupted"
    trained = bounded_of(walk, trained)
    states = _visited(trained, walk.segments(trained.encoder.lead).cover(VALIDATION_SEGMENTS), seed=fit.seed)
    first = walk.series[0]
    repairs = tuple(dict.fromkeys(text for s in walk.series for text in s.repairs))
    result = FitResult(
        trained,
        history,
        config,
        walk.scaler,
        first.names,
        states,
        first.units,
        first.time_unit,
        repairs,
        tuple(walk.series),
        record_split(walk.series, walk.scaler, fit.validation_fraction, walk.config.model.window or 1, fit.seed),
        dimensions=dimensions,
    )
    if folder is not None:
        folder.finish(result)
    return result


def _fit_forecasts(walk: PreparedData, model: LatentSDE, progress: Progress | None, max_seconds: float) -> LatentSDE:
    """The model fitted to its forecasts, where that gains on held-out data."""
    fit = walk.config.fit
    split = walk.split_forecasts(model.encoder.lead)
    if split is None or not fit.forecasts or walk.config.model.smoother == "moment-matching":
        return model
    tell(progress, "fitting to forecasts")
    fitted, gain = fit_forecasts(bounded_of(walk, model), *split, seed=fit.seed, max_seconds=max_seconds)
    tell(progress, _gained(gain))
    return fitted


def _gained(gain: float) -> str:
    if gain:
        return f"fitted to forecasts: their error (CRPS) on held-out data is {gain:.1%} lower"
    return "fitting to forecasts gained nothing clear on held-out data; the model stays as it was"


def _tell_choice(progress: Progress | None, asked: ModelConfig, walk: PreparedData) -> None:
    if asked.latent_dim is None and walk.dimensions is not None:
        tell(progress, walk.dimensions.reason, stays=True)
    if asked.log is None and walk.config.model.log:
        names = ", ".join(walk.config.model.log)
        tell(progress, f"modelled by the logarithm, for it varies in proportion to its level: {names}", stays=True)


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
