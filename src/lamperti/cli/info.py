"""``lamperti info``."""

import json as json_text
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamperti._errors import LampertiWarning
from lamperti._text import visible
from lamperti.cli._run import guard_summary, summary, training_facts
from lamperti.cli._say import say_json
from lamperti.data.dates import DATES
from lamperti.data.dimensions import pack_dimensions
from lamperti.data.durations import in_words, one
from lamperti.diagnostics.caveats import of_training
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.io import MODEL_NAME, load
from lamperti.results import FitResult
from lamperti.runs.folder import HISTORY
from lamperti.runs.sealed import CONFIG, read_config


def info(run: Annotated[Path, Parameter(name="RUN")], /, *, json: bool = False) -> None:
    """Say what a run learned, and how; of a run that is not finished, how far it came.

    Args:
        run: folder of a run, or a model file
        json: print one JSON object instead of a table
    """
    if (run / CONFIG).is_file() and not (run / MODEL_NAME).exists():
        rows, facts = _unfinished(run)
    else:
        result = load(run)
        rows, facts = _rows(result), _facts(result)
    if json:
        say_json(facts)
        return
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(visible(str(value))))
    Console(highlight=False, markup=False).print(table)


def _rows(result: FitResult) -> dict[str, Any]:
    m = result.config.model
    diffusion, sd = (np.mean(moment, axis=0) for moment in result.diffusion(result.states))
    rows = {
        "channels": ", ".join(_with_unit(n, u) for n, u in zip(result.names, _units(result), strict=True)),
        "latent dimension": result.model.latent_dim,
        **({} if result.dimensions is None else {"reason": result.dimensions.reason}),
        "time step": in_words(result.step, result.step_unit),
        "drift": f"{m.kernel} kernel, {m.n_inducing} inducing inputs, {'linear' if m.linear_mean else 'zero'} mean",
        "encoder": f"{m.encoder}, window {m.window}",
        "smoother": m.smoother,
        "diffusion": ", ".join(
            f"x{i + 1} {g:.3g} ± {s:.1g}" for i, (g, s) in enumerate(zip(diffusion, sd, strict=True))
        )
        + (f" per {one(result.step_unit)}" if result.step_unit else ""),
        "training": summary(result),
        "numerical guard": guard_summary(result.history),
    }
    noise = _noise(result)
    if noise is not None:
        rows["observation noise"] = ", ".join(f"{n} {s:.3g}" for n, s in zip(result.names, noise, strict=True))
    if result.repairs:
        rows["repairs"] = "; ".join(result.repairs)
    notes = _notes(result)
    if notes:
        rows["notes"] = " ".join(notes)
    return rows


def _facts(result: FitResult) -> dict[str, Any]:
    diffusion, sd = (np.mean(moment, axis=0) for moment in result.diffusion(result.states))
    noise = _noise(result)
    return {
        "finished": True,
        "names": list(result.names),
        "units": list(_units(result)),
        "repairs": list(result.repairs),
        "time_step": result.step,
        "time_unit": result.step_unit,
        "dates": result.time_unit == DATES,
        "latent_dim": result.model.latent_dim,
        "dimensions": pack_dimensions(result.dimensions),
        "model": result.config.model.model_dump(mode="json"),
        "fit": result.config.fit.model_dump(mode="json"),
        "diffusion": diffusion.tolist(),
        "diffusion_sd": sd.tolist(),
        "noise_sd": None if noise is None else noise.tolist(),
        "training": training_facts(result),
        "notes": _notes(result),
    }


def _notes(result: FitResult) -> list[str]:
    """What the course of training raises."""
    return [caveat.text for caveat in of_training(result.history, calibrates=result.config.fit.calibrate)]


def _unfinished(run: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the files of a run say before there is a model."""
    content = read_config(run)
    lines = _lines(run / HISTORY)
    last = max((line["iteration"] for line in lines if line["kind"] == "record"), default=0)
    end = next((line for line in lines if line["kind"] == "end"), {})
    most = content["fit"]["max_iterations"]
    rows = {
        "channels": ", ".join(content["data"]["names"]),
        "training": f"not finished: {last} of at most {most} iterations committed",
        "next": end.get("message") or f"lamperti resume {run}",
    }
    facts = {"finished": False, "names": content["data"]["names"], "iterations": last, "message": end.get("message")}
    return rows, facts | {"model": content["model"], "fit": content["fit"]}


def _lines(history: Path) -> list[dict[str, Any]]:
    """The lines of a history; those that are damaged are told of, for the commits hold the same."""
    text = history.read_text(encoding="utf-8", errors="replace") if history.is_file() else ""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row = json_text.loads(line)
            intact = row["kind"] == "end" or type(row["iteration"]) is int
        except (ValueError, KeyError, TypeError, RecursionError):
            intact = False
        if intact:
            found.append(row)
        else:
            warnings.warn(
                f"line {number} of {history} is damaged and passed over; lamperti resume writes it anew.",
                LampertiWarning,
                stacklevel=2,
            )
    return found


def _units(result: FitResult) -> tuple[str, ...]:
    return result.units or ("",) * len(result.names)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _noise(result: FitResult) -> np.ndarray | None:
    emission = result.model.emission
    if not isinstance(emission, LinearGaussian):
        return None
    return result.scaler.unscale_sd(np.sqrt(np.asarray(emission.noise)))
