"""Are residuals independent and normal? Autocorrelation, Ljung-Box and Jarque-Bera.

Notation   z: residuals of one coordinate, in stretches that follow each other in time (NaN where unknown)
Equations  r_l = sum z_k z_{k+l} / sum z_k^2 about the common mean, over pairs within a stretch, scaled to n pairs
           Q = sum_l m_l r_l^2 ~ chi^2(L), m_l pairs at lag l      JB = n/6 (skewness^2 + excess^2/4) ~ chi^2(2)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from lamperti._errors import ConfigError

MAX_LAG = 20
_LEAST = 10


@dataclass(frozen=True, eq=False)
class Whiteness:
    """Residuals of one coordinate or channel and what tests say of them."""

    name: str
    values: Float[np.ndarray, " n"]
    mean: float
    sd: float
    autocorrelation: Float[np.ndarray, " L"]
    """At lags 1..L."""
    p_white: float
    skewness: float
    excess_kurtosis: float
    p_normal: float

    @property
    def bound(self) -> float:
        """Autocorrelations of white noise stay within this in 95 of 100 lags."""
        return float(1.96 / np.sqrt(len(self.values)))


def whiteness(name: str, stretches: Sequence[Float[np.ndarray, " _T"]], max_lag: int = MAX_LAG) -> Whiteness:
    """Test residuals for independence over time (Ljung-Box) and normality (Jarque-Bera)."""
    values = np.concatenate([z[np.isfinite(z)] for z in stretches])
    if len(values) < _LEAST or values.std() == 0:
        raise ConfigError(f"a test of residuals needs {_LEAST} that differ; got {len(values)}.")
    centre, variance = values.mean(), values.var()
    longest = max(map(len, stretches))
    lags = range(1, min(max_lag, longest - 1, len(values) // 4) + 1)
    r, pairs = np.zeros(len(lags)), np.zeros(len(lags))
    for i, lag in enumerate(lags):
        products = np.concatenate([(z[:-lag] - centre) * (z[lag:] - centre) for z in stretches if len(z) > lag])
        known = products[np.isfinite(products)]
        r[i], pairs[i] = known.mean() / variance if len(known) else 0.0, len(known)
    skewness, excess = float(stats.skew(values)), float(stats.kurtosis(values))
    return Whiteness(
        name=name,
        values=values,
        mean=float(centre),
        sd=float(np.sqrt(variance)),
        autocorrelation=r,
        p_white=float(stats.chi2.sf(np.sum(pairs * r**2), len(lags))),
        skewness=skewness,
        excess_kurtosis=excess,
        p_normal=float(stats.chi2.sf(len(values) / 6 * (skewness**2 + excess**2 / 4), 2)),
    )
