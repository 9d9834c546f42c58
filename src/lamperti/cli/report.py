"""``lamperti report`` and ``lamperti evaluate``."""

import dataclasses
import hashlib
import math
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from lamperti._errors import ConfigError, LampertiError, SeriesError
from lamperti._text import visible
from lamperti.cli._output import check_output_file
from lamperti.cli._remembered import Recording, recording
from lamperti.cli._say import say, say_json
from lamperti.cli._source import Source, as_arguments
from lamperti.data.matching import match_channels
from lamperti.data.series import Series
from lamperti.diagnostics.held_out import LEVELS, ForecastCheck, checked
from lamperti.diagnostics.long_run import likeness
from lamperti.diagnostics.origins import forecast_unseen
from lamperti.diagnostics.verdict import Verdict, verdict_on
from lamperti.io import load
from lamperti.results import FitResult
from lamperti.runs.fingerprint import fingerprint
from lamperti.runs.folder import enlist_in_run, is_run
from lamperti.runs.sealed import CONFIG, read_config

Run = Annotated[Path, Parameter(name="RUN")]
Data = Annotated[Path | None, Parameter(name="DATA")]
_DEFAULT_SOURCE = Source()
_FILE = "report.html"


def report(
    run: Run,
    data: Data = None,
    /,
    *,
    out: Path | None = None,
    title: str = "",
    seed: int = 0,
    json: bool = False,
    source: Source = _DEFAULT_SOURCE,
) -> None:
    """Write a report on a run: one HTML file with caveats, figures and tables, which needs no network.

    It begins with a verdict: forecasts of data that training has not seen beside those of simple methods. The model
    knows which rows it learned from, and leaves them out.

    Args:
        run: folder of a run, or a model file
        data: file of the data that the model was trained on, or of new data; by default what the run was fitted to
        out: file to write; report.html in the folder of the run by default
        title: at the top of the page
        seed: of the draws
        json: print one JSON object when done
    """
    from lamperti.report import is_report, write_report

    place = out or (run if run.is_dir() else run.parent) / _FILE
    if out is None and place.is_file() and not is_report(place):  # a name that the user did not choose
        raise ConfigError(f"{place} was not written by lamperti and stays as it is. Choose a name with --out.")
    result = load(run)
    file = recording(run, data, source, result.names, result.time_unit)
    check_output_file(place, file.path)
    series = file.read()
    if is_run(run) and place.absolute().parent == run.absolute():
        enlist_in_run(run, place.name)  # with the run, it will be replaced
    training = _training(run, data, result)
    origin = _origin(run, data, file, series, seed)
    found = write_report(result, series, place, title=title, origin=origin, training=training, seed=seed)
    size = place.stat().st_size
    if not json:
        Console(highlight=False, markup=False).print(visible(found.verdict.sentence), soft_wrap=True)
        for caveat in found.caveats:  # results, which not even --quiet holds back
            Console(highlight=False, markup=False).print(visible(f"- {caveat.text}"), soft_wrap=True)
    facts = {"out": str(place), "bytes": size, "verdict": found.verdict.to_dict()}
    facts["caveats"] = [dataclasses.asdict(caveat) for caveat in found.caveats]
    say(f"{place}: {size / 1e6:.1f} MB.", facts, as_json=json)


def _training(run: Path, data: Path | None, result: FitResult) -> list[Series]:
    """The series that a run was fitted to, for simple methods to learn from, if they can still be read."""
    if data is None or not (run / CONFIG).is_file():
        return []
    try:
        return [match_channels(one, result.names) for one in recording(run, None, Source(), result.names).read()]
    except (LampertiError, OSError):
        return []


def _origin(run: Path, data: Path | None, file: Recording, series: list[Series], seed: int) -> dict[str, str]:
    """What someone needs to make the run and its report again."""
    words = ["lamperti", "report", str(run), *([str(data)] if data else []), *(["--seed", str(seed)] if seed else [])]
    content = read_config(run) if (run / CONFIG).is_file() else {}
    trained = content.get("origin")
    rows = {}
    if trained:
        again = ["lamperti", "fit", trained["path"], *as_arguments(trained["options"])]
        rows["Fit"] = shlex.join([*again, "--config", "config.toml", "--out", "run"]) + "  (config.toml: see below)"
    rows |= {"Report": shlex.join(words), "Model": str(run), "Data": str(file.path)}
    rows["Read with"] = ", ".join(f"{name}={value!r}" for name, value in file.options.items())
    rows["Fingerprint of the data"] = f"{fingerprint(series)['sha256']} (SHA-256 of values, times and masks)"
    if content:
        same = fingerprint(series)["sha256"] == content["data"]["sha256"]
        rows["Fingerprint of the data"] += ", that of the training data" if same else ", not that of the training data"
    if file.path.is_file():
        rows["SHA-256 of the file"] = hashlib.sha256(file.path.read_bytes()).hexdigest()
    return rows


def evaluate(
    run: Run,
    data: Data = None,
    /,
    *,
    horizon: int | None = None,
    origins: int = 24,
    samples: int = 200,
    seed: int = 0,
    json: bool = False,
    source: Source = _DEFAULT_SOURCE,
) -> None:
    """Score forecasts of data that training has not seen, beside simple methods; the verdict comes first.

    Args:
        run: folder of a run, or a model file
        data: file of new data, or of the training data (the default); rows that training learned from are left out
        horizon: steps ahead; up to 100 as the data allows
        origins: places to forecast from
        samples: paths drawn from each
        seed: of the draws
        json: print one JSON object instead of tables
    """
    for name, value in {"horizon": horizon, "origins": origins, "samples": samples}.items():
        if value is not None and value < 1:
            raise ConfigError(f"--{name} must be at least 1; got {value}.")
    result = load(run)
    series = [
        match_channels(one, result.names) for one in recording(run, data, source, result.names, result.time_unit).read()
    ]
    found = forecast_unseen(
        result,
        series,
        training=_training(run, data, result),
        horizon=horizon,
        n_origins=origins,
        n_samples=samples,
        seed=seed,
    )
    if found is None:
        raise SeriesError(
            "the data has no part that training has not seen and that is long enough to forecast from twice. "
            "Give longer or newer data."
        )
    check, verdict = checked(found, result), verdict_on(found, result, likeness(result, series, seed=seed)[0])
    if json:
        _print_json(check, verdict)
    else:
        _print_verdict(verdict)
        _print(check)


def _coverage(level: float) -> str:
    return f"coverage_{level:.0%}".rstrip("%")


def _rows(check: ForecastCheck, p: int) -> list[dict[str, float]]:
    return [
        {
            "steps": h,
            "time": h * check.step,
            "values": int(check.counts[h - 1, p]),
            "crps": float(check.crps[h - 1, p]),
            "climatology": float(check.climatology[h - 1, p]),
            "persistence": float(check.persistence[h - 1, p]),
            **{_coverage(level): float(check.coverage[level][h - 1, p]) for level in LEVELS},
        }
        for h in check.shown_horizons()
    ]


def _print_verdict(verdict: Verdict) -> None:
    console = Console(highlight=False, markup=False)
    console.print(visible(verdict.sentence), soft_wrap=True)
    rows = verdict.short_rows()
    table = Table(title="CRPS in sds of the data, lower is better", title_justify="left", box=None, pad_edge=False)
    for column in rows[0] if rows else ():
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*row)
    if rows:
        console.print(table)
    for text in verdict.advice:
        console.print(visible(f"try: {text}"), soft_wrap=True)
    for text in verdict.notes:
        console.print(visible(f"note: {text}"), soft_wrap=True)
    console.print()


def _print_json(check: ForecastCheck, verdict: Verdict) -> None:
    about = {"origins": check.origins, "data": "validation" if check.validation else "new", "notes": _notes(check)}
    about |= {"time_unit": check.time_unit, "least_values": check.least}
    about |= {f"average_{_coverage(level)}": check.average_coverage(level) for level in LEVELS}
    about |= {"overlap": check.overlap, "verdict": verdict.to_dict()}
    say_json({**about, "channels": {name: _rows(check, p) for p, name in enumerate(check.names)}})


def _notes(check: ForecastCheck) -> list[str]:
    return [*check.remarks, *filter(None, [check.why_not()])]


def _print(check: ForecastCheck) -> None:
    console = Console(highlight=False, markup=False)
    kind = "the held-out part of the training data" if check.validation else "data new to the model"
    console.print(f"forecasts from {check.origins} origins in {kind}; CRPS, lower is better", soft_wrap=True)
    unit = check.time_unit or "the units of the data's times"
    console.print(f"time in {unit}; in 50%, 80%, 90%: share of values inside the intervals", soft_wrap=True)
    for note in _notes(check):
        console.print(visible(f"note: {note}"), soft_wrap=True)
    for p, name in enumerate(check.names):
        rows = _rows(check, p)
        table = Table(title=visible(name), title_justify="left", box=None, pad_edge=False)
        for column in rows[0] if rows else ():
            percent = column.startswith("coverage_")
            header = f"in {column.removeprefix('coverage_')}%" if percent else column
            table.add_column(header, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(_cell(k, v) for k, v in row.items()))
        console.print(table)


def _cell(column: str, value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.0%}" if column.startswith("coverage_") else f"{value:.4g}"
