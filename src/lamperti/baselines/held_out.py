"""The spread of a point forecast, from the errors it made on data that it was not fitted to.

Notation   point(context [T, P], horizon) -> [H, P]      errors: truth - point of held-out origins [E, H, P]

Errors are kept as whole paths over the horizon, bias included, so that members hang together in time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.baselines.interface import check_request

HELD_OUT = 0.2
_ENOUGH_SERIES = 5
_MAX_ORIGINS = 300

Point = Callable[[Float[np.ndarray, "T P"], int], Float[np.ndarray, "H P"]]


def hold_out(arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Training and held-out parts: the last fifth of the series, or of each series where they are few."""
    if len(arrays) >= _ENOUGH_SERIES:
        cut = len(arrays) - max(1, round(HELD_OUT * len(arrays)))
        return arrays[:cut], arrays[cut:]
    cuts = [len(a) - round(HELD_OUT * len(a)) for a in arrays]
    return [a[:c] for a, c in zip(arrays, cuts, strict=True)], [a[c:] for a, c in zip(arrays, cuts, strict=True)]


def origins(
    arrays: list[np.ndarray], least: int, horizon: int, rng: np.random.Generator, most: int = _MAX_ORIGINS
) -> list[tuple[Float[np.ndarray, "T P"], Float[np.ndarray, "H P"]]]:
    """Contexts of at least ``least`` samples and what followed them, drawn at random."""
    places = [(i, k) for i, a in enumerate(arrays) for k in range(least, len(a) - horizon + 1)]
    if len(places) < 2:
        longest = max(map(len, arrays), default=0)
        raise SeriesError(
            f"the held-out series have up to {longest} samples; {least} of context and {horizon} ahead are needed to "
            "learn the spread. Use longer series, or a shorter horizon."
        )
    chosen = rng.permutation(len(places))[:most]
    return [(arrays[i][:k], arrays[i][k : k + horizon]) for i, k in (places[c] for c in chosen)]


@dataclass(frozen=True, eq=False)
class ErrorEnsemble:
    """A point forecast dressed in its held-out errors."""

    point: Point
    errors: Float[np.ndarray, "E H P"]
    least: int

    @classmethod
    def measured(
        cls, point: Point, held_out: list[np.ndarray], least: int, horizon: int, rng: np.random.Generator
    ) -> "ErrorEnsemble":
        """Let the point forecast meet held-out data."""
        pairs = origins(held_out, least, horizon, rng)
        return cls(point, np.stack([future - point(context, horizon) for context, future in pairs]), least)

    def forecast(
        self, context: Float[np.ndarray, "T P"], horizon: int, n_samples: int, seed: int
    ) -> Float[np.ndarray, "S H P"]:
        furthest, n_channels = self.errors.shape[1:]
        check_request(context, horizon, n_samples, n_channels=n_channels, least=self.least, furthest=furthest)
        picked = np.random.default_rng(seed).integers(len(self.errors), size=n_samples)
        return self.point(context, horizon) + self.errors[picked, :horizon]
