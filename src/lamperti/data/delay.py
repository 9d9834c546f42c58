"""Delay vectors: how long a window to take, how many coordinates to keep, and their principal components.

Notation   y: one series [T, P]   W: window   h: delay vectors [T-W+1, W*P]
           row k of h is (y[k], y[k+1], ..., y[k+W-1]): oldest sample first, channels varying fastest
           components [K, W*P], sd [K]: leading eigenvectors and root eigenvalues of the covariance of h
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial import cKDTree

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Float
from lamperti.data.correlation import channel_arrays, e_folding_time
from lamperti.data.series import Series

_WINDOW_PER_E_FOLD = 2.5
_SHORTEST_WINDOW, _LONGEST_WINDOW = 5, 64
_SATURATED = 0.9  # of Cao's E1, which tends to 1
_N_REFERENCE, _N_LIBRARY, _N_NEIGHBOURS = 1_000, 4_000, 12


def window_length(series_list: Sequence[Series | np.ndarray]) -> int:
    """Samples of the delay window: 2.5 e-folding times of the autocorrelation, from 5 to 64, and never more than a
    third of the shortest series (nor less than 2)."""
    wanted = int(
        np.clip(round(_WINDOW_PER_E_FOLD * e_folding_time(series_list)), _SHORTEST_WINDOW, _LONGEST_WINDOW)
    )
    shortest = min(len(a) for a in channel_arrays(series_list))
    return max(min(wanted, shortest // 3), 2)


def hankel(y: Float[np.ndarray, "T P"], window: int) -> Float[np.ndarray, "K V"]:
    """Delay vectors [T-W+1, W*P], oldest sample first and channels varying fastest."""
    if window < 1:
        raise ConfigError(f"window must be at least 1 sample; got {window}.")
    if len(y) < window:
        raise SeriesError(
            f"a delay window of {window} samples needs a series at least as long; got {len(y)} samples."
        )
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
    ) -> Self:
        """From the delay vectors of many series (those shorter than the window, and vectors with a NaN, are left out);
        at most ``max_rows`` of them, drawn at random."""
        width = window * y[0].shape[1]
        if not 1 <= n_components <= width:
            raise ConfigError(
                f"a window of {window} samples of {y[0].shape[1]} channels has {width} components; asked for "
                f"{n_components}. Ask for fewer, or widen the window."
            )
        rows = [hankel(one, window) for one in y if len(one) >= window]
        if not rows:
            raise SeriesError(
                f"no series is as long as the delay window of {window} samples (longest: {max(map(len, y))}). "
                f"Pass a series of at least {window + 1} samples, or a shorter window."
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
        # Directions that smooth data leave empty hold rounding noise; the floor keeps it from being blown up.
        return cls(mean, _fix_signs(components), np.maximum(sd, 1e-6 * max(sd[0], np.finfo(float).tiny)))

    def project(self, h: Float[np.ndarray, "*N V"]) -> Float[np.ndarray, "*N K"]:
        """Whitened scores: zero mean and unit variance over the data of the basis."""
        return (h - self.mean) @ self.components.T / self.sd


def _fix_signs(components: Float[np.ndarray, "K V"]) -> Float[np.ndarray, "K V"]:
    """Make the first of the largest loadings positive; "largest" within 1 %, so that rounding cannot choose."""
    size = np.abs(components)
    first = np.argmax(size >= 0.99 * size.max(axis=1, keepdims=True), axis=1)
    signs = np.sign(components[np.arange(len(components)), first])
    return components * signs[:, None]


def suggest_dimension(series_list: Sequence[Series | np.ndarray], lag: int, max_dim: int = 8) -> int:
    """The embedding dimension by Cao's method (1997) on the first channel.

    E(d) is the mean growth, from d to d + 1 delays, of the distance (maximum norm) between nearest neighbours;
    E1(d) = E(d+1)/E(d) rises to 1 when neighbours are neighbours in truth and not by projection. The answer is the
    first d with E1(d) > 0.9; ``max_dim`` where there is none (noise fills every dimension), or where the series are too
    short to go on. Neighbours less than a lag apart in time do not count.
    """
    arrays = [a[:, 0] for a in channel_arrays(series_list)]
    before = None
    for d in range(1, max_dim + 2):
        growth = _neighbour_growth(arrays, lag, d)
        if growth is None:
            return max(d - 1, 1)
        if before is not None and growth / before > _SATURATED:
            return d - 1
        before = growth
    return max_dim


def _neighbour_growth(arrays: list[Float[np.ndarray, " T"]], lag: int, d: int) -> float | None:
    """Cao's E(d), or None with too few delay vectors."""
    vectors, places = [], []
    for i, y in enumerate(arrays):
        n = len(y) - d * lag  # one delay more than d: the vectors are compared in d and in d + 1 dimensions
        if n > 0:
            vectors.append(np.stack([y[k * lag : k * lag + n] for k in range(d + 1)], axis=1))
            places.append(np.stack([np.full(n, i), np.arange(n)], axis=1))
    if not vectors:
        return None
    points, where = np.concatenate(vectors), np.concatenate(places)
    whole = np.isfinite(points).all(axis=1)
    points, where = points[whole], where[whole]
    if len(points) < 10 * (d + 1):
        return None
    # A fixed subsample: the choice must not depend on a seed.
    library = np.random.default_rng(0).permutation(len(points))[:_N_LIBRARY]
    points, where = points[library], where[library]
    reference = np.arange(min(len(points), _N_REFERENCE))
    distance, index = cKDTree(points[:, :d]).query(
        points[reference, :d], k=min(_N_NEIGHBOURS, len(points)), p=np.inf
    )
    apart = (where[index, 0] != where[reference, None, 0]) | (
        np.abs(where[index, 1] - where[reference, None, 1]) >= lag
    )
    usable = apart & (distance > 0)
    found = usable.any(axis=1)
    if not found.any():
        return None
    nearest = np.argmax(usable, axis=1)[found]
    rows = reference[found]
    near, neighbour = distance[rows, nearest], index[rows, nearest]
    further = np.abs(points[rows, d] - points[neighbour, d])
    return float(np.mean(np.maximum(near, further) / near))
