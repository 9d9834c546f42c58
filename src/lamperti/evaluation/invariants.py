"""Does a free-running model behave like the real system? Distances between long-run statistics.

Notation   model, real: evenly sampled paths [N, T] of one observable; lengths are counted in samples
           A, B: independent real sets; floor: the distance of two real sets, what a perfect model would score
Equations  ratio = D(model, A) / median over B of D(B, A);  Hellinger^2 = 1 - sum sqrt(p q)

Each ``*_distance(model, real)`` takes centre and scale from ``real`` alone, so that a model cannot move its
own goal posts, and is infinite where the model is not finite or shows no event that the real paths show.
Distances shrink with the amount of data: compare sets of the same size only (``ratio_to_floor`` insists).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage, signal, stats

from lamperti._errors import ConfigError
from lamperti.evaluation._paths import Distance, Paths, Pool, check_paths
from lamperti.evaluation.state_space import state_space_distance
from lamperti.evaluation.time_reversal import asymmetry_distance


@dataclass(frozen=True)
class Residence:
    """How long a signal stays on one side; NaN where no stretch was seen from end to end."""

    mean: float
    quantile_90: float
    count: int


def half_cycles(paths: Paths, centre: float = 0.0, threshold: float = 0.0) -> Pool:
    """Residence times: samples between sign changes about ``centre``, pooled over paths.

    A change counts once the signal is ``threshold`` past the centre on the other side, which ignores the
    chatter of noise about it. Stretches cut by either end of a path are left out: their length is not known.
    """
    return np.concatenate([np.diff(np.flatnonzero(row)) for row in _switches(paths, centre, threshold)]) * 1.0


def residence(paths: Paths, centre: float = 0.0, threshold: float = 0.0) -> Residence:
    """Mean and 90 % quantile of the residence times, in samples."""
    times = half_cycles(paths, centre, threshold)
    if len(times) == 0:
        return Residence(np.nan, np.nan, 0)
    return Residence(float(times.mean()), float(np.quantile(times, 0.9)), len(times))


def lobe_switches(paths: Paths, centre: float = 0.0, threshold: float = 0.0) -> Float[np.ndarray, " N"]:
    """How often each path changes sides."""
    return _switches(paths, centre, threshold).sum(axis=1) * 1.0


def peak_heights(paths: Paths, prominence: float = 0.0) -> Pool:
    """Heights of the local maxima, pooled over paths. Meant for noise-free paths: noise is all peaks."""
    found = [path[signal.find_peaks(path, prominence=prominence)[0]] for path in paths]
    return np.concatenate(found)


def power_spectrum(paths: Paths, sigma: float = 20.0, segment: int | None = None) -> Float[np.ndarray, " F"]:
    """Welch spectrum averaged over paths, smoothed with a Gaussian of ``sigma`` bins, summing to one.

    Segments are whole paths unless ``segment`` says shorter. The smoothing is what gives a small floor: raw
    periodograms of the same law are far apart.
    """
    length = paths.shape[1] if segment is None else segment
    _, power = signal.welch(paths, nperseg=length, axis=1)
    smooth = ndimage.gaussian_filter1d(power.mean(axis=0), sigma) if sigma > 0 else power.mean(axis=0)
    return smooth / smooth.sum()


def autocorrelation(paths: Paths, max_lag: int) -> Float[np.ndarray, " L"]:
    """Autocorrelation at lags 0..max_lag about the mean of all paths; each lag averages its own pairs."""
    n_times = paths.shape[1]
    if not 0 < max_lag < n_times:
        raise ConfigError(f"max_lag must lie between 1 and T-1 = {n_times - 1}, got {max_lag}.")
    centred = paths - paths.mean()
    # padding to 2T keeps the circular correlation of the transform from wrapping round
    power = np.abs(np.fft.rfft(centred, 2 * n_times, axis=1)) ** 2
    sums = np.fft.irfft(power.mean(axis=0), 2 * n_times)[: max_lag + 1]
    covariance = sums / (n_times - np.arange(max_lag + 1))
    return covariance / covariance[0]


def value_distance(model: Paths, real: Paths) -> float:
    """W1 of the values, in sds of the real ones."""
    return _compare(model, real, lambda p: p.ravel()) / real.std()


def half_cycle_distance(model: Paths, real: Paths, threshold: float = 0.1) -> float:
    """W1 of the residence times, in samples; ``threshold`` in sds of the real paths."""
    centre, margin = real.mean(), threshold * real.std()
    return _compare(model, real, lambda p: half_cycles(p, centre, margin))


def lobe_switch_distance(model: Paths, real: Paths, threshold: float = 0.1) -> float:
    """W1 of the number of changes of side a path; ``threshold`` in sds of the real paths."""
    centre, margin = real.mean(), threshold * real.std()
    return _compare(model, real, lambda p: lobe_switches(p, centre, margin))


def peak_distance(model: Paths, real: Paths, prominence: float = 0.0) -> float:
    """W1 of the peak heights in sds of the real values; ``prominence`` in the same unit."""
    return _compare(model, real, lambda p: peak_heights(p, prominence * real.std())) / real.std()


def spectrum_distance(model: Paths, real: Paths, sigma: float = 20.0, segment: int | None = None) -> float:
    """Hellinger distance D_H of the smoothed spectra, from 0 to 1."""
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    overlap = np.sqrt(power_spectrum(model, sigma, segment) * power_spectrum(real, sigma, segment)).sum()
    return float(np.sqrt(max(0.0, 1 - overlap)))


def autocorrelation_distance(model: Paths, real: Paths, max_lag: int | None = None) -> float:
    """Root mean square difference of the autocorrelations, by default up to a quarter of a path."""
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    lags = max(1, real.shape[1] // 4) if max_lag is None else max_lag
    gap = autocorrelation(model, lags) - autocorrelation(real, lags)
    return float(np.sqrt(np.mean(gap[1:] ** 2)))


def roughness_distance(model: Paths, real: Paths) -> float:
    """|log ratio| of the variances of second differences: how much too rough or too smooth the paths are."""
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    ours, theirs = (np.diff(p, n=2, axis=1).var() for p in (model, real))
    return float(np.abs(np.log(ours / theirs))) if ours > 0 else np.inf


DISTANCES: Mapping[str, Distance] = MappingProxyType(
    {
        "values": value_distance,
        "spectrum": spectrum_distance,
        "autocorrelation": autocorrelation_distance,
        "residence times": half_cycle_distance,
        "lobe switches": lobe_switch_distance,
        "peak heights": peak_distance,
        "roughness": roughness_distance,
        "state space": state_space_distance,
        "time asymmetry": asymmetry_distance,
    }
)


def ratio_to_floor(distance: Distance, model: Paths, real_a: Paths, real_b: Paths | Sequence[Paths]) -> float:
    """D(model, A) over the median of D(B, A): about 1 for a model that cannot be told from the real system.

    ``real_b`` is one set of paths or several, each independent of A and of the same size as the model's set.
    """
    others = [real_b] if isinstance(real_b, np.ndarray) and real_b.ndim == 2 else list(real_b)
    for other in others:
        if other.shape != model.shape:
            raise ConfigError(
                f"the floor needs as much data as the model: model paths are {model.shape}, "
                f"real B {other.shape}. Cut the larger one."
            )
    floor = float(np.median([distance(other, real_a) for other in others]))
    found = distance(model, real_a)
    if floor == 0:
        return 1.0 if found == 0 else np.inf
    return found / floor


def escape_share(paths: Paths, reference: Paths) -> float:
    """Share of paths that are somewhere non-finite or outside a box of three times the reference's range."""
    low, high = reference.min(), reference.max()
    reach = 1.5 * (high - low)
    inside = np.abs(paths - 0.5 * (low + high)) <= reach  # False for NaN
    return float(1 - inside.all(axis=1).mean())


def _compare(model: Paths, real: Paths, statistic: Callable[[Paths], Pool]) -> float:
    """W1 between the pooled statistics; infinite where only one side has any."""
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    ours, theirs = statistic(model), statistic(real)
    if len(ours) == 0 or len(theirs) == 0:
        return 0.0 if len(ours) == len(theirs) else np.inf
    return float(stats.wasserstein_distance(ours, theirs))


def _switches(paths: Paths, centre: float, threshold: float) -> Bool[np.ndarray, "N T"]:
    """True at the sample where a path is first past the threshold on its new side."""
    offset = paths - centre
    side = np.where(offset > threshold, 1, 0) - np.where(offset < -threshold, 1, 0)
    # carry the last known side through the dead band
    decided = np.where(side != 0, np.arange(paths.shape[1]), 0)
    side = np.take_along_axis(side, np.maximum.accumulate(decided, axis=1), axis=1)
    switched = np.zeros(paths.shape, dtype=bool)
    switched[:, 1:] = side[:, 1:] * side[:, :-1] < 0
    return switched
