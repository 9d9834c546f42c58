"""What is kept of a run: the model, its history and the configuration in force."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from lamperti.data.files import atomic_write
from lamperti.data.writing import write_csv
from lamperti.io import MODEL_NAME, save
from lamperti.results import Config, FitResult
from lamperti.train.loop import History, Record


def write_run(result: FitResult, folder: Path) -> None:
    """model.safetensors, history.csv and config.toml, which ``lamperti fit --config`` reads."""
    atomic_write(folder / "config.toml", to_toml(result.config).encode())
    write_history(result.history, folder / "history.csv")
    save(result, folder / MODEL_NAME)


def write_history(history: History, path: Path) -> None:
    columns = [field.name for field in dataclasses.fields(Record)]
    write_csv(path, {name: _column([getattr(r, name) for r in history.records]) for name in columns})


def _column(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


def to_toml(config: Config) -> str:
    """The configuration as TOML; what is None is left out, which means the same."""
    tables = {"model": config.model, "fit": config.fit}
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.model_dump().items() if value is not None]
        lines.append("")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    # JSON's strings, numbers, booleans and lists of them are TOML's.
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def summary(result: FitResult) -> str:
    """One sentence on how training ended."""
    h = result.history
    last = h.records[-1].iteration if h.records else 0
    ends = {
        "patience": "stopped by patience",
        "max_iterations": "all iterations done",
        "max_minutes": "stopped by the clock",
        "interrupted": "interrupted",
    }
    kept = f"best validation {h.best_score:.4f}, iteration {h.best_iteration} kept" if h.records else "not validated"
    return f"{last} iterations in {h.seconds:.0f} s ({ends.get(h.status, h.status)}), {kept}"
