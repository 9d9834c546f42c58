"""What `fit` would take: the same rules on the same arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Bool
from lamperti.data.correlation import first_minimum_lag
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.logarithms import scale_and_choose
from lamperti.data.series import Series
from lamperti.data.starts import CLOSED_FORM, Choice, choose_start, equal_steps
from lamperti.data.stationarity import assess
from lamperti.data.windows import Track, interpolate

LOOKED_AT = 100_000  # samples that lag, window and dimension are chosen from


@dataclass(frozen=True)
class Suggestion:
    """Delay (samples) and the rule that gave it, latent dimension, window of the encoder (samples), and why.

    `fit` takes the same dimension and window, by the same rule. ``curve``: of each dimension that was compared, the
    error of cross-validated predictions in sds of the data, and its standard error.
    """

    lag: int
    rule: str
    dimension: int
    window: int
    reason: str
    curve: tuple[tuple[int, float, float], ...]

    @property
    def dimensions(self) -> DimensionCurve:
        """The choice of the dimension, as `fit` keeps it with a model."""
        return DimensionCurve(self.dimension, self.curve, self.reason)

    def __str__(self) -> str:
        return f"lag {self.lag} ({self.rule}), window {self.window} samples, {self.reason}"


def suggest(series: list[Series], channels: list[int]) -> Suggestion | None:
    """What `fit` starts from, by the same rules on the same arrays; of very long data the first part."""
    kept, left = [], LOOKED_AT
    for one in series:
        if left >= 2:
            kept.append(one.select([one.names[p] for p in channels])[:left])
            left -= one.length
    if max(one.length for one in kept) < 10 or not varying(kept).all():
        return None  # a channel may vary only beyond the part that was looked at
    trending = not assess(kept).stationary

    def look(standard: list[Track]) -> Choice:
        arrays = [interpolate(track) for track in standard]
        return choose_start(arrays, closed_form=equal_steps(standard), trending=trending)

    is_linear = lambda choice: choice.coordinates in CLOSED_FORM  # noqa: E731
    _, standard, choice = scale_and_choose(kept, None, look, is_linear, trending=trending)
    lag = first_minimum_lag([interpolate(track) for track in standard])
    chosen = choice.dimensions
    return Suggestion(lag.lag, lag.rule, choice.dimension, choice.window, chosen.reason, chosen.curve)


def varying(series: Sequence[Series]) -> Bool[np.ndarray, " P"]:
    """Whether the observed values of each channel differ."""
    low = np.fmin.reduce([np.fmin.reduce(s.values, axis=0) for s in series])
    high = np.fmax.reduce([np.fmax.reduce(s.values, axis=0) for s in series])
    return np.isfinite(low) & (low != high)
