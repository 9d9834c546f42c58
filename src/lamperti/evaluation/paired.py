"""Is one forecast better than another? Differences of their scores at the same origins, which overlap in time.

Notation   d: difference of two scores, one an origin [R]; NaN where one is unknown      b: block of each origin [R]
Equations  mean d;  se^2 = B/(B-1) sum_b (sum_{r in b} (d_r - mean d))^2 / n^2, over B blocks and n known origins

Futures that overlap share what happened, so that their scores go together. Origins of a block may depend on each other
in any way; blocks are as long as the horizon, so that only neighbours touch.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from lamperti._typing import Float, Int


@dataclass(frozen=True)
class Mean:
    """A mean over origins with its standard error over blocks (NaN where there is but one block)."""

    mean: float
    se: float
    n: int
    """Origins that are known."""
    blocks: int

    def margin(self, errors: float = 2.0) -> float:
        """So many standard errors; more with few blocks: what Student's law passes as seldom."""
        if self.blocks < 2:
            return np.inf
        return float(stats.t.isf(stats.norm.sf(errors), self.blocks - 1) * self.se)

    def beyond(self, errors: float = 2.0) -> bool:
        """Whether the mean is further from zero than that."""
        return bool(abs(self.mean) > self.margin(errors))


def block_mean(d: Float[np.ndarray, " R"], block: Int[np.ndarray, " R"]) -> Mean:
    """Mean of the known values, with an error that allows for dependence within blocks."""
    known = np.isfinite(d)
    d, block = d[known], block[known]
    if not len(d):
        return Mean(np.nan, np.nan, 0, 0)
    mean = float(d.mean())
    _, which = np.unique(block, return_inverse=True)
    sums = np.bincount(which, weights=d - mean)
    n = len(sums)
    se = float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(d)) if n > 1 else np.nan
    return Mean(mean, se, len(d), n)


def blocks_of(series: Int[np.ndarray, " R"], row: Int[np.ndarray, " R"], length: float) -> Int[np.ndarray, " R"]:
    """A number for every stretch of ``length`` rows of a series that holds origins."""
    found = np.zeros(len(row), dtype=int)
    for i in np.unique(series):
        own = series == i
        found[own] = found.max(initial=0) + 1 + ((row[own] - row[own].min()) // max(length, 1)).astype(int)
    return found
