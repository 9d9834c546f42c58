"""How long a series remembers: autocorrelation and average mutual information, pooled over series.

Notation   y: one series [T] or [T, P], NaN where missing   lag: in samples   channels are treated one by one

Lags count samples. For irregular sampling they are lags of the typical step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.data.series import Series

_MAX_LAG = 500
_MAX_PAIRS = 50_000


@dataclass(frozen=True)
class LagChoice:
    """A delay in samples and the rule that gave it."""

    lag: int
    rule: str


def channel_arrays(series_list: Sequence[Series | np.ndarray]) -> list[Float[np.ndarray, "T P"]]:
    """Series or arrays as arrays [T, P] with NaN at missing values."""
    arrays = [s.values if isinstance(s, Series) else np.asarray(s, dtype=np.float64) for s in series_list]
    if not arrays:
        raise SeriesError("there is no series to look at. Pass at least one.")
    return [a[:, None] if a.ndim == 1 else a for a in arrays]


def autocorrelation(series_list: Sequence[Series | np.ndarray], max_lag: int) -> Float[np.ndarray, "L P"]:
    """Autocorrelation at lags 0..max_lag about the common mean; NaN where a lag has no pair of values."""
    arrays = channel_arrays(series_list)
    mean = np.nanmean(np.concatenate(arrays), axis=0)
    products = np.zeros((max_lag + 1, len(mean)))
    pairs = np.zeros_like(products)
    for array in arrays:
        centred = np.nan_to_num(array - mean)
        seen = (~np.isnan(array)).astype(float)
        products += _lagged_products(centred, max_lag)
        pairs += np.round(_lagged_products(seen, max_lag))
    covariance = np.divide(products, pairs, out=np.full_like(products, np.nan), where=pairs > 0)
    return covariance / covariance[0]


def _lagged_products(x: Float[np.ndarray, "T P"], max_lag: int) -> Float[np.ndarray, "L P"]:
    """sum_k x[k] x[k + lag] for every lag, through one transform."""
    n_fft = 1 << (len(x) + max_lag).bit_length()  # long enough that the ends do not meet
    spectrum = np.fft.rfft(x, n_fft, axis=0)
    return np.fft.irfft(np.abs(spectrum) ** 2, n_fft, axis=0)[: max_lag + 1]


def e_folding_time(series_list: Sequence[Series | np.ndarray]) -> float:
    """Samples until the autocorrelation first falls below 1/e: the longest over the channels.

    The crossing is interpolated. A channel that never falls that low within half of the longest series counts
    with that half: longer lags rest on too few pairs to be believed.
    """
    cap = max(max(len(a) for a in channel_arrays(series_list)) // 2, 1)
    acf = autocorrelation(series_list, cap)
    return max(_first_crossing(acf[:, p], cap) for p in range(acf.shape[1]))


def _first_crossing(acf: Float[np.ndarray, " L"], cap: int) -> float:
    level = np.exp(-1.0)
    below = np.flatnonzero(acf < level)
    if not below.size:
        return float(cap)
    k = below[0]
    before = acf[k - 1] if np.isfinite(acf[k - 1]) else 1.0
    return float(k - 1 + (before - level) / (before - acf[k]))


def mutual_information(x: Float[np.ndarray, " N"], z: Float[np.ndarray, " N"], bins: int) -> float:
    """Mutual information of two samples in nats: a histogram of equal cells, less its bias if independent."""
    counts = np.bincount(_cells(x, bins) * bins + _cells(z, bins), minlength=bins * bins).reshape(bins, bins)
    joint = counts / counts.sum()
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    filled = joint > 0
    occupied = (joint.sum(1) > 0).sum(), (joint.sum(0) > 0).sum()
    bias = (occupied[0] - 1) * (occupied[1] - 1) / (2 * len(x))
    return float(np.sum(joint[filled] * np.log(joint[filled] / product[filled])) - bias)


def _cells(x: Float[np.ndarray, " N"], bins: int) -> np.ndarray:
    low, high = x.min(), x.max()
    width = (high - low) or 1.0
    return np.minimum(((x - low) / width * bins).astype(int), bins - 1)


def average_mutual_information(
    series_list: Sequence[Series | np.ndarray], lags: Sequence[int]
) -> Float[np.ndarray, " L"]:
    """Mutual information of y[k] and y[k + lag] in nats, averaged over the channels, for every lag."""
    arrays = channel_arrays(series_list)
    return np.array([np.mean([_lagged_information(arrays, p, lag) for p in range(arrays[0].shape[1])]) for lag in lags])


def _lagged_information(arrays: list[np.ndarray], channel: int, lag: int) -> float:
    x = np.concatenate([a[: max(len(a) - lag, 0), channel] for a in arrays])
    z = np.concatenate([a[lag:, channel] for a in arrays])
    seen = np.isfinite(x) & np.isfinite(z)
    stride = max(int(seen.sum()) // _MAX_PAIRS, 1)
    x, z = x[seen][::stride], z[seen][::stride]
    return mutual_information(x, z, n_bins(len(x))) if len(x) > 1 else 0.0


def n_bins(n_pairs: int) -> int:
    """Cells an axis: about five pairs a cell of the plane, within what resolves the shape of a curve."""
    return int(np.clip(np.sqrt(n_pairs / 5), 4, 32))


def first_minimum_lag(series_list: Sequence[Series | np.ndarray], max_lag: int | None = None) -> LagChoice:
    """The delay at the first minimum of the average mutual information.

    A minimum counts when the curve, smoothed over three lags, rises again by 2 % of its value at lag 1 (or by
    five standard errors of the histogram, if that is more) before it falls below it. Without one, the first
    lag at which the autocorrelation is below 1/e; without that, 1.
    """
    arrays = channel_arrays(series_list)
    longest = max(len(a) for a in arrays)
    limit = max(min(longest // 3, _MAX_LAG) if max_lag is None else min(max_lag, longest - 2), 1)
    n_pairs = sum(int(np.isfinite(a).all(axis=1).sum()) for a in arrays)
    curve: list[float] = []
    best = 0
    noise = 5 * n_bins(n_pairs) / (np.sqrt(2.0) * max(n_pairs, 1))
    for lag in range(1, limit + 1):
        curve.append(float(average_mutual_information(arrays, [lag])[0]))
        smooth = float(np.mean(curve[-3:]))  # of the lags lag-2..lag: centred on lag-1
        if lag < 3:
            lowest, best = curve[0], 1
        elif smooth < lowest:
            lowest, best = smooth, lag - 1
        elif smooth - lowest > max(0.02 * curve[0], noise):
            return LagChoice(best, "first minimum of the average mutual information")
    below = np.flatnonzero(np.nanmean(autocorrelation(arrays, limit), axis=1) < np.exp(-1.0))
    if below.size:
        return LagChoice(int(below[0]), "autocorrelation below 1/e")
    return LagChoice(1, "no minimum and no decay found")
