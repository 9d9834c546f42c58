"""All results of a run as one tidy table: a row for each system, noise, method, seed, metric and horizon."""

import io
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from lamperti.bench.cells import CellResult, read_cells
from lamperti.data.files import atomic_write

CSV, PARQUET, RUNS = "results.csv", "results.parquet", "runs.csv"
COLUMNS = (
    "system", "noise", "method", "seed", "metric", "horizon", "value", "se", "n", "minutes", "command", "version",
    "machine",
)  # fmt: skip
_OF_A_RUN = ["minutes", "command", "version", "machine"]


def table_of(results: Iterable[CellResult]) -> pd.DataFrame:
    """The rows of all cells that are done."""
    records = [
        {
            **result.cell._asdict(),
            **row._asdict(),
            "minutes": result.minutes,
            **{name: result.provenance.get(name, "") for name in ("command", "version", "machine")},
        }
        for result in results
        if result.status == "done"
        for row in result.rows
    ]
    table = pd.DataFrame(records, columns=list(COLUMNS))
    kinds = {name: "float64" for name in ("noise", "value", "se", "minutes")} | {"horizon": "Int64", "n": "Int64"}
    return table.astype(kinds | {"seed": "int64"})


def write_table(folder: Path) -> pd.DataFrame:
    """results.csv, and results.parquet where pyarrow is installed."""
    table = table_of(read_cells(folder))
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / CSV, table.to_csv(index=False).encode())
    if find_spec("pyarrow") is not None:
        content = io.BytesIO()
        table.to_parquet(content, index=False)
        atomic_write(folder / PARQUET, content.getvalue())
    return table


def to_publish(table: pd.DataFrame) -> dict[str, str]:
    """The table as text for a repository: six digits, and what many rows share, their run, once in a table of its own
    with which column ``run`` joins it."""
    runs = table[_OF_A_RUN].drop_duplicates(ignore_index=True).rename_axis("run").reset_index()
    numbers = table.merge(runs, how="left", on=_OF_A_RUN).drop(columns=_OF_A_RUN)
    return {CSV: numbers.to_csv(index=False, float_format="%.6g"), RUNS: runs.to_csv(index=False)}
