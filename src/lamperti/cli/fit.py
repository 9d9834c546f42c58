"""``lamperti fit``."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from lamperti.api import fit as fit_series
from lamperti.cli._run import conclude, interruptible
from lamperti.cli._say import is_quiet
from lamperti.cli._source import Source
from lamperti.config import FitConfig, ModelConfig
from lamperti.progress import ProgressLine

C = TypeVar("C", ModelConfig, FitConfig)
_DEFAULT_SOURCE = Source()


def fit(
    data: Annotated[Path, Parameter(name="DATA")],
    /,
    *,
    out: Path,
    source: Source = _DEFAULT_SOURCE,
    config: Path | None = None,
    latent_dim: int | None = None,
    kernel: str | None = None,
    n_inducing: int | None = None,
    encoder: str | None = None,
    window: int | None = None,
    smoother: str | None = None,
    seed: int | None = None,
    max_iterations: int | None = None,
    max_minutes: float | None = None,
    batch_size: int | None = None,
    segment_length: int | None = None,
    learning_rate: float | None = None,
    overwrite: bool = False,
    figures: bool = True,
    json: bool = False,
) -> int:
    """Learn a model from a table of series and write it to a folder.

    The folder gets model.safetensors, history.jsonl, config.toml, checkpoints and figures. Ctrl-C stops and keeps what
    was learned; lamperti resume goes on from there.

    Args:
        data: file of data; lamperti check says how it is understood
        out: folder of the run
        config: TOML file with tables [model] and [fit] (lamperti config init writes one); the options below overrule it
        latent_dim: latent dimension; chosen from the data when left out
        kernel: se, matern32, matern52, ... or sums as se+linear
        n_inducing: inducing inputs of the drift
        encoder: window or conv-gru
        window: samples of the encoder's window
        smoother: sigma-point, linearised, linearised-parallel, moment-matching or particle
        seed: of everything random
        max_iterations: stop after so many
        max_minutes: stop training by the clock; compiling, calibration and figures come on top
        batch_size: segments an iteration
        segment_length: samples of a segment
        learning_rate: Adam's, for the networks
        overwrite: replace the run in the folder
        figures: draw phase space, a forecast, drift, training and the choice of the dimension when done
        json: print one JSON object when done
    """
    model_options = {
        "latent_dim": latent_dim,
        "kernel": kernel,
        "n_inducing": n_inducing,
        "encoder": encoder,
        "window": window,
        "smoother": smoother,
    }
    fit_options = {
        "seed": seed,
        "max_iterations": max_iterations,
        "max_minutes": max_minutes,
        "batch_size": batch_size,
        "segment_length": segment_length,
        "learning_rate": learning_rate,
    }
    model_config = _configured(ModelConfig, config, "model", model_options)
    fit_config = _configured(FitConfig, config, "fit", fit_options)
    series = source.read(data)
    origin = {"path": str(data.absolute()), "options": source.options()}
    with interruptible(out), ProgressLine(quiet=is_quiet(), refines=fit_config.calibrate) as progress:
        result = fit_series(
            series, model_config, fit_config, progress=progress, run=out, overwrite=overwrite, origin=origin
        )
    return conclude(result, out, figures=figures, as_json=json)


def _configured(cls: type[C], file: Path | None, table: str, options: dict[str, Any]) -> C:
    """The options that were given, over those of the file."""
    base = {} if file is None else cls.from_toml(file, table).model_dump(exclude_unset=True)
    return cls(**base | {name: value for name, value in options.items() if value is not None})
