"""The last season again, where the data has a season.

Notation   s: season in samples   r_k: autocorrelation at lag k, of values less their straight line   n: pairs of values
Equations  y(t + h) = y(t + h - m s), with the least m that makes it known;  spread from the errors on training data
           Bartlett: var r_k = (1 + 2 sum_{0 < j < k} r_j^2) / n, if there is no correlation from lag k on

A season is the lag of the first of the highest peaks of the autocorrelation, if that
- is above 0.5: below, the error of the last season, 2 (1 - r) of the variance, is more than that of the mean;
- is above two of Bartlett's standard errors, so that a slow wander of red noise is not one;
- comes again at twice the lag as high, where a noisy oscillation, which forgets its phase, has r_2s = r_s^2: halfway
  between the two is the border.
Three seasons must have been seen. Without a season s = 1, and this is persistence; so it is where the series are too
short for a season and the horizon after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._typing import Float
from lamperti.baselines.held_out import ErrorEnsemble
from lamperti.baselines.interface import training_arrays
from lamperti.data.correlation import autocorrelation
from lamperti.data.series import Series

_LEAST_PEAK = 0.5
_ERRORS = 2.0
_SEASONS = 3
_AS_HIGH = 0.15
_ROUNDING = 0.01  # of a correlation: an exact repetition has 1 at every season, but for the line that was taken off
_LONGEST = 5000  # samples of a season


@dataclass(frozen=True)
class SeasonalNaive:
    """``season`` in samples; None: found from the data, 1 where there is none."""

    horizon: int = 100
    season: int | None = None

    def fit(self, series: Sequence[Series], seed: int) -> ErrorEnsemble:
        arrays = training_arrays(series, scalar="SeasonalNaive")
        season = self.season or find_season(arrays) or 1
        if self.season is None and max(map(len, arrays)) <= season + self.horizon:
            season = 1
        arrays = training_arrays(series, shortest=season + self.horizon)
        rng = np.random.default_rng(seed)
        # Nothing is fitted but the season, so that nothing need be held out.
        return ErrorEnsemble.measured(LastSeason(season), arrays, season, self.horizon, rng)


@dataclass(frozen=True)
class LastSeason:
    """The point forecast."""

    season: int

    def __call__(self, context: Float[np.ndarray, "T P"], horizon: int) -> Float[np.ndarray, "H P"]:
        return context[len(context) - self.season + np.arange(horizon) % self.season]


def find_season(arrays: Sequence[Float[np.ndarray, "T P"]]) -> int | None:
    """The season of one channel in samples, or None. NaN is missing."""
    straight = [_less_its_line(a[:, 0]) for a in arrays]
    longest = max(map(len, straight))
    most = min(longest // _SEASONS, _LONGEST)
    if most < 2 or np.nanstd(np.concatenate(straight)) == 0:
        return None
    r = autocorrelation([a[:, None] for a in straight], min(2 * most + 1, longest - 1))[:, 0]
    pairs = np.array([sum(max(len(a) - k, 0) for a in straight) for k in range(len(r))])
    bound = _ERRORS * np.sqrt((1 + 2 * np.concatenate([[0, 0], np.cumsum(r[1:-1] ** 2)])) / pairs)
    peaks = [k for k in range(2, most + 1) if r[k] > max(r[k - 1], r[k + 1], bound[k], _LEAST_PEAK)]
    if not peaks:
        return None
    highest = max(r[k] for k in peaks)
    # Twice a season is one, too, and by chance a higher peak.
    first = min(k for k in peaks if r[k] > highest - _AS_HIGH)
    return first if _comes_again(r, first) else None


def _comes_again(r: Float[np.ndarray, " L"], k: int) -> bool:
    near = max(k // 8, 1)  # the peak may lie between samples, and its double a little beside
    again = r[2 * k - near : 2 * k + near + 1]
    between = r[k : 2 * k].min()
    halfway = min((r[k] + r[k] ** 2) / 2, 1.0) - _ROUNDING
    return bool(again.max(initial=-1.0) > max(halfway, between))


def _less_its_line(values: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
    seen = np.isfinite(values)
    if seen.sum() < 3:
        return values - np.nanmean(values) if seen.any() else values
    t = np.arange(len(values))
    return values - np.polyval(np.polyfit(t[seen], values[seen], 1), t)
