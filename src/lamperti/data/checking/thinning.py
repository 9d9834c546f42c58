"""How far samples may be thinned out without losing anything sharp.

Notation   y: one standardised channel [T, 1], NaN where missing   f: cycles a sample
"""

from collections.abc import Sequence

import numpy as np

from lamperti._typing import Float

_POWER = 0.99


def fastest_frequency(y: Sequence[Float[np.ndarray, "_ 1"]]) -> float:
    """The frequency below which 99 % of the power of the steps lies, in the longest series.

    Steps, not values: a short, sharp wave on a slow one holds little of the power but is fast.
    """
    one = max(y, key=len)[:, 0]
    seen = np.isfinite(one)
    if seen.sum() < 8:
        return 0.5
    steps = np.diff(np.interp(np.arange(len(one)), np.flatnonzero(seen), one[seen]))
    power = np.abs(np.fft.rfft((steps - steps.mean()) * np.hanning(len(steps)))) ** 2
    total = np.cumsum(power)
    k = int(np.searchsorted(total, _POWER * total[-1])) + 1
    return min(k / len(steps), 0.5)


def most_thinning(y: Sequence[Float[np.ndarray, "_ 1"]]) -> int:
    """Every how many-th sample still comes at twice the fastest frequency; 1 where none can be spared."""
    return max(int(0.5 / fastest_frequency(y)), 1)
