"""One result of the benchmark: who it belongs to, what was measured, and its file.

A cell is a JSON file of its own, written at once, so that a run can be interrupted anywhere and go on later.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lamperti._errors import ConfigError
from lamperti.data.files import atomic_write

Status = Literal["done", "failed", "skipped"]
FOLDER = "cells"


class Cell(NamedTuple):
    """Who a result belongs to."""

    system: str
    noise: float | None
    """Sd of the observation noise in sds of the observable; None for recordings, whose noise nobody knows."""
    method: str
    seed: int

    @property
    def stem(self) -> Path:
        """Where it is kept, without an ending, below the folder of the run."""
        level = "recorded" if self.noise is None else f"noise-{self.noise:g}"
        return Path(FOLDER) / self.system / level / f"{self.method}-{self.seed}"

    def __str__(self) -> str:
        level = "" if self.noise is None else f" {self.noise:.0%} noise"
        return f"{self.system}{level}, {self.method}, seed {self.seed}"


class Row(NamedTuple):
    """One measured number."""

    metric: str
    value: float
    se: float = math.nan
    horizon: int | None = None
    """Samples ahead, for what is measured at a horizon."""
    n: int | None = None
    """Forecast origins (or the like) behind it."""


@dataclass(frozen=True)
class CellResult:
    """What came of a cell, and how it was made."""

    cell: Cell
    status: Status
    rows: tuple[Row, ...] = ()
    reason: str = ""
    """Why it failed or was skipped."""
    notes: tuple[str, ...] = ()
    """Measures that could not be taken, each with its reason."""
    pictures: tuple[str, ...] = ()
    """Names of the PNG files beside it, without the stem of the cell."""
    verdict: str = ""
    """What a fit says of itself beside simple methods, if it does."""
    seconds: float = 0.0
    minutes: float | None = None
    """Training time allowed, for methods that train by the clock."""
    fingerprint: str = ""
    """Of the problem's definition."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Command, version, machine."""


def picture_path(folder: Path, cell: Cell, name: str) -> Path:
    stem = folder / cell.stem
    return stem.with_name(f"{stem.name}.{name}.png")


def path_of(folder: Path, cell: Cell) -> Path:
    # not with_suffix: the noise level and names of methods may hold a dot
    stem = folder / cell.stem
    return stem.with_name(f"{stem.name}.json")


def write_cell(folder: Path, result: CellResult) -> None:
    path = path_of(folder, result.cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = asdict(result) | {"cell": result.cell._asdict(), "rows": [_plain(row) for row in result.rows]}
    atomic_write(path, (json.dumps(fields, indent=1, allow_nan=False) + "\n").encode())


def read_cell(path: Path) -> CellResult:
    """Raises `ConfigError` for a file that is not a cell."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        rows = tuple(Row(**{**row, "value": float(row["value"]), "se": float(row["se"])}) for row in fields["rows"])
        lists = {name: tuple(fields[name]) for name in ("notes", "pictures")}
        return CellResult(**{**fields, **lists, "cell": Cell(**fields["cell"]), "rows": rows})
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a result of the benchmark ({error}). Delete it and run again.") from None


def read_cells(folder: Path) -> Iterator[CellResult]:
    """All cells of a run, in the order of their names."""
    for path in sorted((folder / FOLDER).rglob("*.json")):
        yield read_cell(path)


def _plain(row: Row) -> dict[str, Any]:
    """JSON has no infinities and no NaN: they are kept as text, which float() reads."""
    fields = row._asdict()
    for name in ("value", "se"):
        number = float(fields[name])
        fields[name] = number if math.isfinite(number) else str(number)
    return fields
