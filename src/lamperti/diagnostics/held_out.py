"""Forecasts of data that training has not seen: coverage, calibration, and what simpler forecasts would have scored.

Notation   R origins, from which H steps are forecast; truth [R, H, P], NaN where it was not observed
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lamperti import api
from lamperti._errors import LampertiWarning
from lamperti.data.dates import DATES
from lamperti.data.durations import SECONDS, duration_text, in_words
from lamperti.data.holding import held_out_from
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.diagnostics.at_times import nearest, samples_at
from lamperti.evaluation import scores
from lamperti.evaluation.climatology import Climatology
from lamperti.results import FitResult, Forecast

LEVELS = (0.5, 0.8, 0.9)
_HORIZON = 100
_CONTEXT = 256
_SHOWN = 3  # fans kept whole
_SAME = 1e-9
_KIND = 24  # letters at the start of a warning that tell its kind
_NEAR = 0.25  # of a step: two values as far apart as a horizon, give or take this, show a change over it
_ENOUGH = 10  # values that a score is given for; half of the origins where that is less


@dataclass(frozen=True, eq=False)
class Fan:
    """One forecast with the data before and after its origin."""

    forecast: Forecast
    context: Series
    truth: Series
    trained_until: float | None = None
    """Time of the last sample before the held-out part; None where the series is new to the model."""


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


def trained_on(result: FitResult, series: Sequence[Series]) -> bool:
    """Whether these are the data that the model was trained on, as far as their means, sds and step can tell."""
    found, known = Scaler.from_series(series), result.scaler
    return all(
        np.allclose(a, b, rtol=_SAME, atol=0.0)
        for a, b in ((found.shift, known.shift), (found.scale, known.scale), (found.time_unit, known.time_unit))
    )


class Span(NamedTuple):
    """Samples ``first`` to ``stop`` (exclusive) of a series."""

    series: int
    first: int
    stop: int


def unseen(result: FitResult, series: Sequence[Series]) -> list[Span]:
    """What training has not seen: its held-out part of the data that it was given, or all of other data."""
    if not trained_on(result, series):
        return [Span(i, 0, s.length) for i, s in enumerate(series)]
    fit, window = result.config.fit, result.config.model.window or 1
    # Training takes a series in pieces between its longest gaps, and fills the shorter gaps with unobserved samples.
    parts = [(i, piece) for i, s in enumerate(series) for piece in api.pieces(s, result.scaler)]
    masks = [piece.track.mask for _, piece in parts]
    held_out = held_out_from(masks, fit.validation_fraction, window, np.random.default_rng(fit.seed))
    found, begins = [], dict.fromkeys(range(len(series)), 0)
    for number, (i, piece) in enumerate(parts):
        stop = begins[i] + len(piece.rows)
        if number in held_out:
            found.append(Span(i, begins[i] + int(np.searchsorted(piece.rows, held_out[number])), stop))
        begins[i] = stop
    return found


def check_forecasts(
    result: FitResult,
    series: Sequence[Series],
    *,
    horizon: int | None = None,
    n_origins: int = 24,
    n_samples: int = 200,
    seed: int = 0,
) -> ForecastCheck | None:
    """Forecast from up to ``n_origins`` places in the unseen part of the data, evenly spread; None where it is too
    short for two of them. Origins of one series overlap, so that scores are less certain than their number says."""
    spans = unseen(result, series)
    # A span from the start of its series gives its first half as context.
    starts = [span.first or span.stop // 2 for span in spans]
    room = [(span.stop - start) // 2 for span, start in zip(spans, starts, strict=True)]
    ahead = min(horizon or _HORIZON, max([1, *room]))
    places = [
        (span, origin)
        for span, start in zip(spans, starts, strict=True)
        for origin in range(max(start, 2), span.stop - ahead + 1)
    ]
    if len(places) < 2:
        return None
    places = [places[j] for j in np.unique(np.linspace(0, len(places) - 1, n_origins).round().astype(int))]
    # One length for all contexts: every other length would be compiled anew.
    length = min(_CONTEXT, *(origin for _, origin in places))
    clocks = [result.scaler.in_steps(one) for one in series]
    fans, members, truths = [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LampertiWarning)
        for number, (span, origin) in enumerate(places):
            i = span.series
            context = series[i][origin - length : origin]
            futures = api.forecast(result, context, horizon=ahead, n_samples=n_samples, seed=seed + number)
            clock = clocks[i]
            now = float(clock.times[origin - 1])
            end = max(int(np.searchsorted(clock.times[: span.stop], now + ahead + 0.5)), origin + 1)
            seen = float(series[i].times[span.first - 1]) if span.first else None
            fan = Fan(futures, context, series[i][origin:end], seen)
            observed = nearest(clock[origin:end], now, 1.0, ahead)
            members.append(samples_at(result, futures, observed.late, seed + number))
            truths.append(observed.values)
            fans.append(fan)
    samples, truth = np.stack(members), np.stack(truths)
    validation = trained_on(result, series)
    known = _known(clocks, spans) if validation else clocks
    least = least_values(len(fans))
    return ForecastCheck(
        origins=len(fans),
        validation=validation,
        step=result.step,
        names=result.names,
        counts=np.sum(~np.isnan(truth), axis=0),
        crps=_mean(scores.crps(samples, truth), least),
        climatology=_mean(Climatology.of_series(known).crps(truth), least),
        persistence=_mean(_persistence(known, fans, n_samples, truth, seed), least),
        coverage={level: _mean(scores.covered(samples, truth, level), least) for level in LEVELS},
        pit=scores.pit(samples, truth, seed=seed),
        remarks=_distinct([str(w.message) for w in caught if issubclass(w.category, LampertiWarning)]),
        fans=tuple(fans[j] for j in np.unique(np.linspace(0, len(fans) - 1, _SHOWN).round().astype(int))),
        time_unit=result.step_unit,
    )


def _distinct(messages: list[str]) -> tuple[str, ...]:
    """The first of each kind: many origins warn of the same with other numbers."""
    return tuple({message[:_KIND]: message for message in reversed(messages)}.values())


def _known(series: Sequence[Series], spans: Sequence[Span]) -> list[Series]:
    """What is left of the series before and after the spans."""
    found = []
    for i, one in enumerate(series):
        begin = 0
        for span in [span for span in spans if span.series == i]:
            found += [one[begin : span.first]] if span.first > begin else []
            begin = span.stop
        found += [one[begin:]] if begin < one.length else []
    return found


def _persistence(known: list[Series], fans: list[Fan], n_samples: int, truth: np.ndarray, seed: int) -> np.ndarray:
    """CRPS of the last value seen, dressed in the changes of the known data (with times in steps) over each horizon;
    NaN where those show none, or where a context saw nothing of a channel."""
    rng = np.random.default_rng(seed)
    last = np.concatenate([_last_seen(fan.context) for fan in fans])
    members = np.repeat(last[:, None, None], truth.shape[1], axis=2) + np.zeros((1, n_samples, 1, 1))
    for h in range(truth.shape[1]):
        found = [changes(one, h + 1.0, _NEAR) for one in known]
        for p in range(truth.shape[2]):
            seen = np.concatenate([one[p] for one in found]) if found else np.empty(0)
            drawn = rng.choice(seen, (len(fans), n_samples)) if len(seen) > 1 else np.nan
            members[:, :, h, p] += drawn
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
