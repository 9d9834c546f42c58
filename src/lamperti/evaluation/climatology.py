"""The forecast that knows nothing but the training data's marginal distribution; the zero of the skill scale.

Notation   values: training values of one channel, sorted [N]      truth: [R, H, P]
Equations  E|X - y| from the partial sums of the sorted values, so the CRPS uses all N of them;
           E|X - X'| over distinct pairs, as in the fair estimate
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lamperti._errors import SeriesError
from lamperti.data.series import Series


@dataclass(frozen=True)
class Climatology:
    """Marginal distribution of every channel, the same at every horizon."""

    channels: tuple[Float[np.ndarray, " _N"], ...]

    @classmethod
    def of_values(cls, values: Float[np.ndarray, "*N P"]) -> "Climatology":
        """From an array whose last axis is the channel; NaN is missing."""
        flat = np.asarray(values, dtype=float).reshape(-1, np.shape(values)[-1])
        channels = tuple(np.sort(column[np.isfinite(column)]) for column in flat.T)
        fewest = min(len(c) for c in channels)
        if fewest < 2:
            raise SeriesError(f"climatology needs two measured values a channel, got {fewest}. Add training data.")
        return cls(channels)

    @classmethod
    def of_series(cls, series: Sequence[Series]) -> "Climatology":
        """From training series, without their missing samples."""
        if not series:
            raise SeriesError("climatology needs training data, got no series. Pass at least one.")
        return cls.of_values(np.concatenate([s.values for s in series]))

    def crps(self, truth: Float[np.ndarray, "R H P"]) -> Float[np.ndarray, "R H P"]:
        """Fair CRPS against each truth; NaN where the truth is."""
        return np.stack([_crps(v, truth[..., p]) for p, v in enumerate(self.channels)], axis=-1)

    def samples(self, n_origins: int, n_samples: int, horizon: int, *, seed: int = 0) -> Float[np.ndarray, "R S H P"]:
        """Draw an ensemble, independent over origins, members, horizons and channels."""
        rng = np.random.default_rng(seed)
        size = (n_origins, n_samples, horizon)
        return np.stack([rng.choice(v, size) for v in self.channels], axis=-1)


def _crps(values: Float[np.ndarray, " N"], y: Float[np.ndarray, "*R"]) -> Float[np.ndarray, "*R"]:
    n = len(values)
    partial = np.concatenate([[0.0], np.cumsum(values)])
    below = np.searchsorted(values, y)
    distance = y * (2 * below - n) - 2 * partial[below] + partial[-1]
    pairs = 2 * np.sum((2 * np.arange(1, n + 1) - n - 1) * values) / (n * (n - 1))
    return distance / n - 0.5 * pairs
