"""Medians over training seeds, and the seeds behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lamperti.bench.cells import Cell, CellResult, Row


@dataclass(frozen=True)
class Summary:
    """One number of the report: the median over seeds, all of them, and the standard error of a typical one."""

    median: float
    seeds: tuple[float, ...]
    se: float

    @classmethod
    def of(cls, seeds: Sequence[float], errors: Sequence[float]) -> "Summary":
        return cls(float(np.median(seeds)), tuple(map(float, seeds)), float(np.median(errors)))

    def __str__(self) -> str:
        error = f" ± {_short(self.se)}" if np.isfinite(self.se) else ""
        every = f" ({', '.join(map(_short, self.seeds))})" if len(self.seeds) > 1 else ""
        return f"{_short(self.median)}{error}{every}"


def _short(value: float) -> str:
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "-∞"}.get(value, "nan")
    return f"{value:.3f}" if 0.0005 < abs(value) < 100 else f"{value:.3g}"


Key = tuple[str, int | None]
"""System and horizon; no horizon where a metric has none."""


@dataclass(frozen=True, eq=False)
class Results:
    """All numbers of a run, asked by name."""

    entries: tuple[tuple[Cell, Row], ...]

    @classmethod
    def of(cls, cells: Iterable[CellResult]) -> "Results":
        """The rows of the cells that are done, in the order of their seeds."""
        done = sorted((c for c in cells if c.status == "done"), key=lambda c: c.cell.seed)
        return cls(tuple((c.cell, row) for c in done for row in c.rows))

    def values(
        self, metric: str, method: str, noise: float | None = None, horizons: Sequence[int] | None = None
    ) -> dict[Key, Summary]:
        """Summaries by system and horizon. ``noise`` None stands for recordings."""
        found: dict[Key, list[Row]] = {}
        for cell, row in self.entries:
            wanted = horizons is None or row.horizon in horizons
            if row.metric == metric and cell.method == method and cell.noise == noise and wanted:
                found.setdefault((cell.system, row.horizon), []).append(row)
        return {key: Summary.of([r.value for r in rows], [r.se for r in rows]) for key, rows in found.items()}

    def mean_crps(
        self, method: str, noise: float | None, horizons: Sequence[int] | None = None, over: str = "climatology"
    ) -> dict[str, Summary]:
        """CRPS over climatology's (or the oracle's), averaged over horizons before the median over seeds, by system."""
        by_system: dict[str, list[Summary]] = {}
        for (system, _), one in self.values(f"crps_over_{over}", method, noise, horizons).items():
            by_system.setdefault(system, []).append(one)
        # the error is a typical one: horizons share their origins, so averaging over them gains little
        return {
            system: Summary.of(np.mean([p.seeds for p in parts], axis=0).tolist(), [p.se for p in parts])
            for system, parts in by_system.items()
        }

    def metrics(self, method: str | None = None) -> list[str]:
        return list(dict.fromkeys(row.metric for cell, row in self.entries if method in (None, cell.method)))

    def methods(self) -> set[str]:
        return {cell.method for cell, _ in self.entries}

    def noises(self) -> list[float]:
        """Levels of the simulated problems, the usual one first."""
        levels = {cell.noise for cell, _ in self.entries if cell.noise is not None}
        return sorted(levels, key=lambda level: (level != 0.1, level))

    def recordings(self) -> list[str]:
        return list(dict.fromkeys(cell.system for cell, _ in self.entries if cell.noise is None))
