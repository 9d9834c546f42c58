"""Commands that use a fitted model: ``lamperti forecast``, ``simulate`` and ``embed``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from lamperti import api
from lamperti._errors import ConfigError
from lamperti.cli._output import check_table_file
from lamperti.cli._remembered import recording
from lamperti.cli._say import say
from lamperti.cli._source import Source
from lamperti.data.dates import DATES
from lamperti.data.writing import write_csv
from lamperti.io import load
from lamperti.results import Columns

Run = Annotated[Path, Parameter(name="RUN")]
Data = Annotated[Path, Parameter(name="DATA")]
_DEFAULT_SOURCE = Source()


def forecast(
    run: Run,
    data: Data,
    /,
    *,
    out: Path,
    horizon: int = 200,
    samples: int = 256,
    level: float = 0.9,
    seed: int = 0,
    source: Source = _DEFAULT_SOURCE,
    json: bool = False,
) -> None:
    """Forecast the future of each series in a table: mean, sd, median and interval of every channel.

    Args:
        run: folder of a run, or a model file
        data: file of data that ends where the forecast begins
        out: file to write, as forecast.csv; tab-separated if it ends in .tsv
        horizon: steps ahead
        samples: paths drawn
        level: probability of the interval
        seed: of the draws
        json: print one JSON object when done
    """
    if not 0.0 < level < 1.0:
        raise ConfigError(f"--level must lie between 0 and 1; got {level:g}.")
    check_table_file(out, data)
    result = load(run)
    parts, labels = [], []
    for series in recording(run, data, source, result.names, result.time_unit).read():
        labels.append(series.label)
        f = api.forecast(result, series, horizon=horizon, n_samples=samples, seed=seed)
        parts.append(_dated(f.columns(level), series.time_unit))
    _write(out, parts, labels, as_json=json)


def simulate(
    run: Run,
    /,
    *,
    out: Path,
    steps: int = 1000,
    paths: int = 4,
    seed: int = 0,
    noise: bool = True,
    since_start: bool = False,
    json: bool = False,
) -> None:
    """Draw free-running paths of the learned equation, with their latent states.

    After training with dates, times are dates that go on from the last of them.

    Args:
        run: folder of a run, or a model file
        out: file to write, as paths.csv; tab-separated if it ends in .tsv
        steps: samples of each path
        paths: how many
        seed: of the draws
        noise: add observation noise
        since_start: times from the start of each path, not dates
        json: print one JSON object when done
    """
    check_table_file(out)
    s = api.simulate(
        load(run), n_steps=steps, n_paths=paths, seed=seed, observation_noise=noise, since_start=since_start
    )
    parts = [_dated(s.columns(i), s.time_unit) for i in range(paths)]
    _write(out, parts, [str(i) for i in range(paths)], as_json=json, counted="path")


def embed(run: Run, data: Data, /, *, out: Path, source: Source = _DEFAULT_SOURCE, json: bool = False) -> None:
    """Write the latent state at every sample of each series in a table, with its covariance.

    Args:
        run: folder of a run, or a model file
        data: file of data
        out: file to write, as states.csv; tab-separated if it ends in .tsv
        json: print one JSON object when done
    """
    check_table_file(out, data)
    result = load(run)
    parts, labels = [], []
    for series in recording(run, data, source, result.names, result.time_unit).read():
        labels.append(series.label)
        parts.append(_dated(api.embed(result, series).columns(), series.time_unit))
    _write(out, parts, labels, as_json=json)


def _dated(columns: Columns, time_unit: str) -> Columns:
    """Times as dates (UTC) where the data had dates."""
    if time_unit != DATES:
        return columns
    stamps = np.round(columns["time"] * 1e6).astype("datetime64[us]")
    whole = bool((stamps == stamps.astype("datetime64[s]")).all())
    return columns | {"time": np.datetime_as_string(stamps, unit="s" if whole else "us")}


def _write(out: Path, parts: list[Columns], labels: list[str], *, as_json: bool, counted: str = "series") -> None:
    """Stack the parts below each other, with a column of their labels; those without one are numbered if there are
    several."""
    columns: dict[str, Any] = {}
    if len(parts) > 1 or any(labels):
        marks = [np.full(len(part["time"]), labels[i] or str(i), dtype=object) for i, part in enumerate(parts)]
        columns[counted] = np.concatenate(marks)
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    write_csv(out, columns)
    facts = {"out": str(out), "rows": len(columns["time"]), "columns": list(columns), counted: len(parts)}
    say(f"{out}: {len(columns['time'])} rows.", facts, as_json=as_json)
