"""Standardisation: values to zero mean and unit sd, time to unit median step.

Notation   y: values [T, P]   shift, scale: mean and sd a channel [P]   time_unit: median step over all series
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._errors import SeriesError
from lamperti._typing import Float
from lamperti.data.series import Series

# Beyond these a difference of two values overflows, or the reciprocal of a scale does.
_LARGEST = np.finfo(np.float64).max / 4
_SMALLEST = 4 / np.finfo(np.float64).max


SHORTEST, LONGEST = 1e-100, 1e100  # steps of time: beyond, rates of change overflow


@dataclass(frozen=True, eq=False)
class Scaler:
    """The map between the user's units and the model's."""

    shift: Float[np.ndarray, " P"]
    scale: Float[np.ndarray, " P"]
    time_unit: float

    @classmethod
    def from_series(cls, series: Sequence[Series]) -> "Scaler":
        """Mean and sd over the observed values of all series together, and their median step."""
        moments = [
            _moments(np.concatenate([s.values[s.mask[:, p], p] for s in series]), name)
            for p, name in enumerate(series[0].names)
        ]
        shift, scale = np.array(moments).T
        step = float(np.median(np.concatenate([s.steps for s in series])))
        if not SHORTEST <= step <= LONGEST:
            raise SeriesError(f"the median step of the times is {step:.3g}, which is beyond all units. Change theirs.")
        return cls(shift, scale, step)

    def values(self, y: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        """Values in the model's units; NaN stays NaN."""
        return (y - self.shift) / self.scale

    def unscale_values(self, y: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        return y * self.scale + self.shift

    def unscale_sd(self, sd: Float[np.ndarray, "*K P"]) -> Float[np.ndarray, "*K P"]:
        return sd * self.scale

    def steps(self, dt: Float[np.ndarray, "*K"]) -> Float[np.ndarray, "*K"]:
        """Time steps in the model's units."""
        return dt / self.time_unit


def _moments(values: Float[np.ndarray, " N"], name: str) -> tuple[float, float]:
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST:
        raise SeriesError(f"column {name!r} holds values as large as {largest:.3g}, which overflow. Change its unit.")
    if not values.size or values.min() == values.max():
        raise SeriesError(f"column {name!r} is constant, so it cannot be standardised. Leave it out.")
    # In units of a power of two near the largest value no square overflows or vanishes and no digit is lost;
    # centred before it is squared, a small signal on a large offset survives. The second mean takes out the
    # rounding of the first.
    unit = float(np.ldexp(1.0, np.frexp(largest)[1]))
    relative = values / unit
    centre = relative.mean()
    centred = relative - centre
    centre += centred.mean()
    scale = float(np.std(centred) * unit)
    if scale < _SMALLEST:
        raise SeriesError(f"column {name!r} varies by only {scale:.3g}, which underflows. Change its unit.")
    return float(centre * unit), scale
