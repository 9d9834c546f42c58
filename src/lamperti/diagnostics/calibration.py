"""Are forecasts as certain as they should be? Tests by horizon that allow for origins which overlap.

Notation   PIT: place of the truth among the futures, uniform on (0, 1) for a calibrated forecast
One PIT value a block of origins and channel is tested for uniformity (Kolmogorov-Smirnov, exact); p-values are those of
the smallest of all channels, times their number. Coverage has the standard error of blocks, and not less than that of
as many independent values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lamperti.diagnostics.origins import UnseenForecasts
from lamperti.evaluation import scores
from lamperti.evaluation.paired import block_mean, blocks_of

LEVEL = 0.9
_LEAST = 8  # PIT values for a test


@dataclass(frozen=True)
class HorizonCalibration:
    """One horizon."""

    steps: int
    p_uniform: float
    """Of the PIT, NaN where there are too few values."""
    mean_pit: float
    """Below a half, the truth lies low among the futures."""
    coverage: float
    """Share of the values in 90 % intervals."""
    coverage_margin: float
    """Two standard errors of it."""


def calibration(found: UnseenForecasts, horizons: Sequence[int]) -> tuple[HorizonCalibration, ...]:
    """By horizon (steps); those without a known value are left out."""
    pit = scores.pit(found.samples, found.truth, seed=found.seed)
    inside = scores.covered(found.samples, found.truth, LEVEL)
    rows = []
    for h in horizons:
        block = blocks_of(found.place[:, 0], found.place[:, 1], h)
        known = np.isfinite(inside[:, h - 1])
        if not known.any():
            continue
        share = np.where(known, inside[:, h - 1], 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        covered = block_mean(np.where(known.any(axis=1), share, np.nan), block)
        least = np.sqrt(LEVEL * (1 - LEVEL) / covered.blocks)
        margin = max(covered.margin(), 2 * least) if covered.blocks > 1 else np.inf
        values = pit[:, h - 1]
        rows.append(HorizonCalibration(h, _uniform(values, block), float(np.nanmean(values)), covered.mean, margin))
    return tuple(rows)


def _uniform(pit: np.ndarray, block: np.ndarray) -> float:
    """p-value of one value a block, the first that is known."""
    p_values = []
    for column in pit.T:
        known = np.flatnonzero(np.isfinite(column))
        _, first = np.unique(block[known], return_index=True)
        if len(first) >= _LEAST:
            p_values.append(float(stats.kstest(column[known[first]], "uniform").pvalue))
    return min(min(p_values) * len(p_values), 1.0) if p_values else np.nan
