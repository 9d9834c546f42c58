"""Forecasts of data that training has not seen: coverage, calibration, and what simpler forecasts would have scored.

Notation   R origins, from which H steps are forecast; truth [R, H, P], NaN where it was not observed
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from lamperti._errors import SeriesError
from lamperti.data.dates import DATES
from lamperti.data.durations import SECONDS, duration_text, in_words
from lamperti.data.series import Series
from lamperti.diagnostics.origins import Fan, UnseenForecasts, forecast_unseen
from lamperti.evaluation import scores
from lamperti.evaluation.climatology import Climatology
from lamperti.results import FitResult

LEVELS = (0.5, 0.8, 0.9)
_SHOWN = 3  # fans kept whole
_NEAR = 0.25  # of a step: two values as far apart as a horizon, give or take this, show a change over it
_ENOUGH = 10  # values that a score is given for; half of the origins where that is less


@dataclass(frozen=True, eq=False)
class ForecastCheck:
    """Scores of forecasts by horizon (row h - 1 is h steps ahead) and channel; NaN where fewer than ``least`` values
    were observed. Each value counts at its nearest step, and is compared with the forecast of its own time."""

    origins: int
    validation: bool
    """True: the part of the training data that was held out to stop and select. False: data new to the model."""
    step: float
    names: tuple[str, ...]
    counts: Int[np.ndarray, "H P"]
    """How many values the scores are of, at most one an origin."""
    crps: Float[np.ndarray, "H P"]
    climatology: Float[np.ndarray, "H P"]
    persistence: Float[np.ndarray, "H P"]
    coverage: Mapping[float, Float[np.ndarray, "H P"]]
    """By level of the interval: the share of values inside."""
    pit: Float[np.ndarray, "R H P"]
    fans: tuple[Fan, ...]
    remarks: tuple[str, ...] = ()
    """What the forecasts warned of, each kind once."""
    overlap: str = ""
    """A sentence on what training has seen of the data; empty where nothing is to be said."""
    time_unit: str = ""

    @property
    def horizons(self) -> int:
        return len(self.crps)

    @property
    def least(self) -> int:
        """Values without which there is no score."""
        return least_values(self.origins)

    @property
    def furthest(self) -> int:
        """The last horizon (steps) with a score; 0 where there is none."""
        return max(self._scored(), default=0)

    def shown_horizons(self) -> list[int]:
        """A few horizons (steps) for a table, of those with a score."""
        chosen = {1, 2, 3, 5, 10, 20, 50, 100, self.furthest}
        return [h for h in self._scored() if h in chosen]

    def time_ahead(self, steps: int) -> str:
        """How long so many steps take; of dates, in the unit that suits it."""
        dated = any(fan.context.time_unit == DATES for fan in self.fans) and self.time_unit in SECONDS
        length = steps * self.step
        return duration_text(length * SECONDS[self.time_unit]) if dated else in_words(length, self.time_unit)

    def average_coverage(self, level: float) -> float:
        """Over all values of the horizons with a score; NaN where there is none."""
        found = self.coverage[level]
        weight = np.where(np.isnan(found), 0, self.counts)
        return float(np.sum(np.nan_to_num(found) * weight) / weight.sum()) if weight.any() else np.nan

    def why_not(self) -> str:
        """A sentence on scores that are lacking; empty where none is."""
        if not self.furthest:
            return f"No horizon has the {self.least} observed values that a score needs."
        if np.isnan(self.persistence).all():
            return (
                "Persistence has no score: outside the part that was forecast, the data shows too few changes over "
                "these horizons."
            )
        return ""

    def _scored(self) -> list[int]:
        return [h for h in range(1, self.horizons + 1) if (self.counts[h - 1] >= self.least).any()]


def least_values(origins: int) -> int:
    return max(1, min(_ENOUGH, -(-origins // 2)))


def check_forecasts(
    result: FitResult,
    series: Sequence[Series],
    *,
    training: Sequence[Series] = (),
    horizon: int | None = None,
    n_origins: int = 24,
    n_samples: int = 200,
    seed: int = 0,
) -> ForecastCheck | None:
    """Forecast from up to ``n_origins`` places in the unseen part of the data, evenly spread; None where it is too
    short for two of them. Origins of one series overlap, so that scores are less certain than their number says.

    ``training``: the series that the model was fitted to, for climatology and persistence; by default those of the
    result, or what of them is in the data."""
    found = forecast_unseen(
        result, series, training=training, horizon=horizon, n_origins=n_origins, n_samples=n_samples, seed=seed
    )
    return None if found is None else checked(found, result)


def checked(found: UnseenForecasts, result: FitResult) -> ForecastCheck:
    """Scores of forecasts that were made already."""
    samples, truth, seed = found.samples, found.truth, found.seed
    least = least_values(len(truth))
    whole = [fan for fan, row in zip(found.fans, truth, strict=True) if ~np.isnan(row[-1]).all()] or found.fans
    return ForecastCheck(
        origins=len(truth),
        validation=found.division.validation,
        step=result.step,
        names=result.names,
        counts=np.sum(~np.isnan(truth), axis=0),
        crps=_mean(found.crps, least),
        climatology=_mean(climatology(found), least),
        persistence=_mean(persistence(found), least),
        coverage={level: _mean(scores.covered(samples, truth, level), least) for level in LEVELS},
        pit=scores.pit(samples, truth, seed=seed),
        remarks=found.remarks,
        overlap=found.division.remark,
        fans=tuple(whole[j] for j in np.unique(np.linspace(0, len(whole) - 1, _SHOWN).round().astype(int))),
        time_unit=result.step_unit,
    )


def climatology(found: UnseenForecasts) -> Float[np.ndarray, "R H P"]:
    """CRPS of the long-run distribution of the known data; NaN where a channel has none."""
    try:
        return Climatology.of_series(found.division.known).crps(found.truth)
    except SeriesError:
        return np.full(found.truth.shape, np.nan)


def persistence(found: UnseenForecasts) -> Float[np.ndarray, "R H P"]:
    """CRPS of the last value seen, dressed in the changes of the known data over each horizon; NaN where those show
    none, or where a context saw nothing of a channel."""
    truth, n_samples = found.truth, found.samples.shape[1]
    rng = np.random.default_rng(found.seed)
    last = np.concatenate([_last_seen(fan.context) for fan in found.fans])
    members = np.repeat(last[:, None, None], truth.shape[1], axis=2) + np.zeros((1, n_samples, 1, 1))
    for h in range(truth.shape[1]):
        changed = [changes(one, h + 1.0, _NEAR) for one in found.division.known]
        for p in range(truth.shape[2]):
            seen = np.concatenate([one[p] for one in changed]) if changed else np.empty(0)
            members[:, :, h, p] += rng.choice(seen, (len(truth), n_samples)) if len(seen) > 1 else np.nan
    whole = ~np.isnan(members).any(axis=1)
    return scores.crps(members, np.where(whole, truth, np.nan))


def changes(series: Series, lag: float, near: float) -> list[np.ndarray]:
    """By channel: by how much it changed between observed values that are ``lag`` apart, give or take ``near``."""
    found = []
    for values, seen in zip(series.values.T, series.mask.T, strict=True):
        t, y = series.times[seen], values[seen]
        right = np.searchsorted(t, t + lag).clip(max=len(t) - 1)
        left = (right - 1).clip(min=0)
        closer = np.where(t[right] - (t + lag) <= (t + lag) - t[left], right, left) if len(t) else right
        apart = np.abs(t[closer] - t - lag) <= near
        found.append((y[closer] - y)[apart])
    return found


def _last_seen(context: Series) -> Float[np.ndarray, "1 P"]:
    last = [values[seen][-1:] for values, seen in zip(context.values.T, context.mask.T, strict=True)]
    return np.array([[one[0] if len(one) else np.nan for one in last]])


def _mean(score: Float[np.ndarray, "R H P"], least: int) -> Float[np.ndarray, "H P"]:
    """Over origins; NaN where fewer than ``least`` were observed."""
    known = ~np.isnan(score)
    count = known.sum(axis=0)
    return np.where(known, score, 0.0).sum(axis=0) / np.where(count >= least, count, np.nan)
