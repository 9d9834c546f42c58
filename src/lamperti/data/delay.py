"""Delay vectors: how long a window to take, how many delays predict best, and principal components of windows.

Notation   y: one series [T, P]   W: window   h: delay vectors [T-W+1, W*P]
           row k of h is (y[k], y[k+1], ..., y[k+W-1]): oldest sample first, channels varying fastest
           components [K, W*P], sd [K]: leading eigenvectors and root eigenvalues of the covariance of h
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Float, Int
from lamperti.data.correlation import channel_arrays, e_folding_time
from lamperti.data.series import Series

_WINDOW_PER_E_FOLD = 2.5
_SHORTEST_WINDOW, LONGEST_WINDOW = 5, 64
_N_LIBRARY, _N_REFERENCE, _N_NEIGHBOURS, _N_SEARCHED = 8_000, 4_000, 10, 60
_ENOUGH, _NEGLIGIBLE = 1.25, 0.0005
LEAST_SD = 1e-2  # of a component that is whitened, in sds of the first


def window_length(series_list: Sequence[Series | np.ndarray]) -> int:
    """Samples of the delay window: 2.5 e-folding times of the autocorrelation, from 5 to 64, and never more
    than a third of a typical series (nor less than 2). Half of all samples are in series as long as the typical
    one, or longer: a few scraps among long recordings do not shorten the window."""
    wanted = int(np.clip(round(_WINDOW_PER_E_FOLD * e_folding_time(series_list)), _SHORTEST_WINDOW, LONGEST_WINDOW))
    lengths = np.sort([len(a) for a in channel_arrays(series_list)])[::-1]
    typical = int(lengths[np.searchsorted(np.cumsum(lengths), lengths.sum() / 2)])
    return max(min(wanted, typical // 3), 2)


def hankel(y: Float[np.ndarray, "T P"], window: int) -> Float[np.ndarray, "K V"]:
    """Delay vectors [T-W+1, W*P], oldest sample first and channels varying fastest."""
    if window < 1:
        raise ConfigError(f"window must be at least 1 sample; got {window}.")
    if len(y) < window:
        raise SeriesError(f"a delay window of {window} samples needs a series at least as long; got {len(y)} samples.")
    windows = np.lib.stride_tricks.sliding_window_view(y, window, axis=0)  # [T-W+1, P, W]
    return windows.transpose(0, 2, 1).reshape(len(windows), -1)


@dataclass(frozen=True, eq=False)
class HankelBasis:
    """Principal components of delay vectors: the linear start of a latent space."""

    mean: Float[np.ndarray, " V"]
    components: Float[np.ndarray, "K V"]
    sd: Float[np.ndarray, " K"]

    @property
    def n_components(self) -> int:
        return len(self.sd)

    @classmethod
    def from_series(
        cls,
        y: Sequence[Float[np.ndarray, "_ P"]],
        window: int,
        n_components: int,
        rng: np.random.Generator,
        max_rows: int = 20_000,
    ) -> "HankelBasis":
        """From the delay vectors of many series (those shorter than the window, and vectors with a NaN, are
        left out); at most ``max_rows`` of them, drawn at random."""
        width = window * y[0].shape[1]
        if not 1 <= n_components <= width:
            raise ConfigError(
                f"a window of {window} samples of {y[0].shape[1]} channels has {width} components; asked for "
                f"{n_components}. Ask for fewer, or widen the window."
            )
        rows = [hankel(one, window) for one in y if len(one) >= window]
        if not rows:
            raise SeriesError(
                f"no series is as long as the delay window of {window} samples; the longest has "
                f"{max(map(len, y))}. Pass a series of at least {window + 1} samples, or a shorter window."
            )
        h = np.concatenate(rows)
        h = h[np.isfinite(h).all(axis=1)]
        if len(h) < 2:
            raise SeriesError(
                f"only {len(h)} windows of {window} samples are free of gaps; 2 are needed. Use a shorter window."
            )
        if len(h) > max_rows:
            h = h[np.sort(rng.choice(len(h), size=max_rows, replace=False))]
        mean = h.mean(axis=0)
        eigenvalues, vectors = np.linalg.eigh(np.cov(h, rowvar=False).reshape(width, width))
        components = vectors[:, ::-1].T[:n_components]
        sd = np.sqrt(np.maximum(eigenvalues[::-1][:n_components], 0.0))
        # Smooth data leave some directions empty. A window that is not quite like them (the start of a series, an
        # artefact) has something there, which whitening by their own sd would blow up to many times the signal.
        return cls(mean, _fix_signs(components), np.maximum(sd, LEAST_SD * max(sd[0], np.finfo(float).tiny)))

    def project(self, h: Float[np.ndarray, "*N V"]) -> Float[np.ndarray, "*N K"]:
        """Whitened scores: zero mean and, but for directions that the data hardly go in, unit variance over the data
        of the basis."""
        return (h - self.mean) @ self.components.T / self.sd


def _fix_signs(components: Float[np.ndarray, "K V"]) -> Float[np.ndarray, "K V"]:
    """Make the first of the largest loadings positive; largest within 1 %, so that rounding cannot choose."""
    size = np.abs(components)
    first = np.argmax(size >= 0.99 * size.max(axis=1, keepdims=True), axis=1)
    signs = np.sign(components[np.arange(len(components)), first])
    return components * signs[:, None]


def suggest_delays(series_list: Sequence[Series | np.ndarray], lag: int, max_dim: int = 8) -> int:
    """The number of delays that predict best: nearest-neighbour prediction in delay space, first channel.

    With d delays, the value one lag ahead is predicted by the mean over the nearest neighbours among the
    other delay vectors. The answer is the smallest d whose squared error is within a quarter (and 0.05 % of
    the variance) of the least. Counts of false neighbours, Cao's among them, suit noise-free systems: noise
    in the dynamics or the observations drives them towards ``max_dim``, this error much less. The lag matters:
    one so long that nothing can be predicted over it gives 1, as do series too short for two delays.
    """
    arrays = [a[:, 0] for a in channel_arrays(series_list)]
    longest = max(map(len, arrays))
    # All dimensions must be scored on the same targets, so the longest delay vector sets what can be used.
    most = max(min(max_dim, (longest - 1) // (2 * lag)), 1)
    points, targets, places = _delays_and_targets(arrays, lag, most)
    if len(points) < 10 * _N_NEIGHBOURS:
        return 1
    tried = range(1, most + 1)
    errors = np.array([_prediction_error(points[:, most - d :], targets, places, lag * most) for d in tried])
    return int(np.argmax(errors <= _ENOUGH * errors.min() + _NEGLIGIBLE * targets.var(axis=0).mean())) + 1


def _delays_and_targets(
    arrays: list[Float[np.ndarray, " _"]], lag: int, d: int
) -> tuple[Float[np.ndarray, "K D"], Float[np.ndarray, "K 1"], Int[np.ndarray, "K 2"]]:
    """Some delay vectors (newest last), the values a lag after them, and their places (series, row)."""
    rows, places = [np.empty((0, d + 1))], [np.empty((0, 2), dtype=int)]
    for i, y in enumerate(arrays):
        n = len(y) - d * lag
        if n > 0:
            rows.append(np.stack([y[k * lag : k * lag + n] for k in range(d + 1)], axis=1))
            places.append(np.stack([np.full(n, i), np.arange(n)], axis=1))
    table, where = np.concatenate(rows), np.concatenate(places)
    usable = np.flatnonzero(np.isfinite(table).all(axis=1))
    chosen = np.random.default_rng(0).permutation(usable)[:_N_LIBRARY]  # the answer must not depend on a seed
    return table[chosen, :d], table[chosen, d:], where[chosen]


def _prediction_error(
    points: Float[np.ndarray, "K D"],
    targets: Float[np.ndarray, "K F"],
    places: Int[np.ndarray, "K 2"],
    apart: int,
) -> float:
    """Mean squared error of predicting the targets from neighbours that share no sample with the point."""
    asked = np.arange(min(len(points), _N_REFERENCE))
    _, index = KDTree(points).query(points[asked], k=min(_N_SEARCHED, len(points)))
    series, row = places.T
    independent = (series[index] != series[asked, None]) | (np.abs(row[index] - row[asked, None]) > apart)
    used = independent & (np.cumsum(independent, axis=1) <= _N_NEIGHBOURS)
    found = used.any(axis=1)
    if not found.any():
        return float(targets.var(axis=0).mean())
    predicted = np.einsum("nkf,nk->nf", targets[index][found], used[found]) / used[found].sum(axis=1, keepdims=True)
    return float(np.mean((targets[asked][found] - predicted) ** 2))
