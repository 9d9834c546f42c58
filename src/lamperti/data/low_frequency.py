"""What the slowest motions of a record say of its law: likelihood ratios that do not depend on anything faster.

Notation   m: values averaged over equal parts of the record [B]   s in (0, 1): time as a share of the record
           a_j = mean of sqrt(2) cos(pi j s) m: the slow amplitudes, j = 1..Q   v_j: their variances up to a scale
           c: length of the record over the relaxation time

Whatever a process does at high frequencies, its slow amplitudes are nearly independent Gaussians (Müller and Watson,
Econometrica 76, 2008): v_j = 1/((pi j)² + c²) for a relaxation, 1 for anything fast, 1/(pi j)² for a random walk,
1/(pi j)⁴ for an integrated one, and a line adds a fixed multiple of 1/(pi j)² at odd j. The unknown scale drops out of
the density of the direction a/|a|, which is proportional to |V|^(-1/2) (a' V^-1 a)^(-Q/2).

Of a stationary record with c >= 10 the mean density of the alternatives exceeds K times the largest one of the
stationary laws with a probability of at most 1/K (Markov's inequality), and in fact of much less.
"""

import numpy as np
from scipy import stats

from lamperti._typing import Float

_PARTS, _AMPLITUDES = 128, 16
_RELAXATIONS = (10.0, 20.0, 40.0, 80.0)  # records as long as this many relaxation times, and white noise
_NOISE = (0.0, 0.1, 1.0)  # of a walk, over its own slow variance
_SLOPES = tuple(4.0**k for k in range(6))  # variance of a line over that of what it is seen in


def normal_scores(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Normal quantiles of the ranks: outliers and units do not matter, and any steady growth becomes a line."""
    return stats.norm.ppf((stats.rankdata(x) - 0.5) / len(x))


def part_means(x: Float[np.ndarray, " N"], times: Float[np.ndarray, " N"], parts: int) -> Float[np.ndarray, " B"]:
    """Means over equal lengths of time; a part without a sample is interpolated."""
    place = (times - times[0]) / (times[-1] - times[0]) * parts
    part = np.minimum(place.astype(int), parts - 1)
    counts = np.bincount(part, minlength=parts)
    filled = np.flatnonzero(counts)
    return np.interp(np.arange(parts), filled, np.bincount(part, x, minlength=parts)[filled] / counts[filled])


def slow_amplitudes(x: Float[np.ndarray, " N"], times: Float[np.ndarray, " N"]) -> Float[np.ndarray, " Q"]:
    """The first cosine amplitudes of a record: at most sixteen, and no more than a quarter of its samples."""
    parts = min(_PARTS, len(x))
    s = (np.arange(parts) + 0.5) / parts
    j = np.arange(1, min(_AMPLITUDES, len(x) // 4) + 1)
    return np.sqrt(2.0) * np.cos(np.pi * np.outer(j, s)) @ part_means(x, times, parts) / parts


def log_ratios(a: Float[np.ndarray, " Q"]) -> tuple[float, float]:
    """Logarithms of the likelihood ratios of a trend, and of a random walk, to the best stationary law."""
    w2 = (np.pi * np.arange(1, len(a) + 1)) ** 2
    stationary = [_shares(1 / (w2 + c**2)) for c in _RELAXATIONS] + [_shares(np.ones(len(a)))]
    walk = _shares(1 / w2)
    walks = [walk + noise / len(a) for noise in _NOISE] + [_shares(1 / w2**2)]
    line = np.where(np.arange(len(a)) % 2 == 0, 1 / w2, 0.0)
    line /= np.linalg.norm(line)
    null = max(_log_density(a, v) for v in stationary)
    trend = _log_mean([_log_density(a, v, np.sqrt(slope) * line) for v in stationary for slope in _SLOPES])
    return trend - null, _log_mean([_log_density(a, v) for v in walks]) - null


def _shares(v: np.ndarray) -> np.ndarray:
    return v / v.sum()


def _log_density(a: np.ndarray, v: np.ndarray, line: np.ndarray | None = None) -> float:
    """Log-density of a/|a| under the covariance diag(v) + line line', up to a constant (Sherman and Morrison)."""
    square, determinant = np.sum(a**2 / v), np.sum(np.log(v))
    if line is not None:
        size = np.sum(line**2 / v)
        square -= np.sum(a * line / v) ** 2 / (1 + size)
        determinant += np.log1p(size)
    return float(-0.5 * determinant - 0.5 * len(a) * np.log(max(square, np.finfo(float).tiny)))


def _log_mean(logs: list[float]) -> float:
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))
