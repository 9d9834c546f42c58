"""Forecasts of data that training has not seen: coverage, calibration, and what simpler forecasts would have scored.

Notation   R origins, from which H steps are forecast; truth [R, H, P], NaN where it was not observed
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lamperti import api
from lamperti._errors import LampertiWarning, SeriesError
from lamperti.baselines import Persistence
from lamperti.data.holding import held_out_from
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.evaluation import scores
from lamperti.evaluation.climatology import Climatology
from lamperti.results import FitResult, Forecast

LEVELS = (0.5, 0.8, 0.9)
_HORIZON = 100
_CONTEXT = 256
_SHOWN = 3  # fans kept whole
_SAME = 1e-9
_KIND = 24  # letters at the start of a warning that tell its kind
_NEAR = 0.25  # of a step: what was observed within is compared with the forecast of that step


@dataclass(frozen=True, eq=False)
class Fan:
    """One forecast with the data before and after its origin."""

    forecast: Forecast
    context: Series
    truth: Series


@dataclass(frozen=True, eq=False)
class ForecastCheck:
    """Scores of forecasts by horizon (row h - 1 is h steps ahead) and channel; NaN where too little was observed."""

    origins: int
    validation: bool
    """True: the part of the training data that was held out to stop and select. False: data new to the model."""
    step: float
    names: tuple[str, ...]
    crps: Float[np.ndarray, "H P"]
    climatology: Float[np.ndarray, "H P"]
    persistence: Float[np.ndarray, "H P"]
    coverage: Mapping[float, Float[np.ndarray, "H P"]]
    """By level of the interval: the share of values inside."""
    pit: Float[np.ndarray, "R H P"]
    fans: tuple[Fan, ...]
    remarks: tuple[str, ...] = ()
    """What the forecasts warned of, each kind once."""

    @property
    def horizons(self) -> int:
        return len(self.crps)

    def shown_horizons(self) -> list[int]:
        """A few horizons (steps) for a table."""
        return [h for h in (1, 2, 3, 5, 10, 20, 50, 100) if h < self.horizons] + [self.horizons]

    def average_coverage(self, level: float) -> float:
        return float(np.nanmean(self.coverage[level]))


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
        (span.series, origin)
        for span, start in zip(spans, starts, strict=True)
        for origin in range(max(start, 2), span.stop - ahead + 1)
    ]
    if len(places) < 2:
        return None
    places = [places[j] for j in np.unique(np.linspace(0, len(places) - 1, n_origins).round().astype(int))]
    # One length for all contexts: every other length would be compiled anew.
    length = min(_CONTEXT, *(origin for _, origin in places))
    fans = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LampertiWarning)
        for number, (i, origin) in enumerate(places):
            context = series[i][origin - length : origin]
            futures = api.forecast(result, context, horizon=ahead, n_samples=n_samples, seed=seed + number)
            fans.append(Fan(futures, context, series[i][origin : origin + ahead]))
    samples = np.stack([fan.forecast.samples for fan in fans])
    truth = np.stack([_on_steps(fan.truth, fan.forecast.times, result.scaler.time_unit) for fan in fans])
    validation = trained_on(result, series)
    known = _known(series, spans) if validation else list(series)
    return ForecastCheck(
        origins=len(fans),
        validation=validation,
        step=result.scaler.time_unit,
        names=result.names,
        crps=_mean(scores.crps(samples, truth)),
        climatology=_mean(Climatology.of_series(known).crps(truth)),
        persistence=_mean(_persistence(known, fans, ahead, n_samples, truth)),
        coverage={level: _mean(scores.covered(samples, truth, level)) for level in LEVELS},
        pit=scores.pit(samples, truth, seed=seed),
        remarks=_distinct([str(w.message) for w in caught if issubclass(w.category, LampertiWarning)]),
        fans=tuple(fans[j] for j in np.unique(np.linspace(0, len(fans) - 1, _SHOWN).round().astype(int))),
    )


def _distinct(messages: list[str]) -> tuple[str, ...]:
    """The first of each kind: many origins warn of the same with other numbers."""
    return tuple({message[:_KIND]: message for message in reversed(messages)}.values())


def _on_steps(truth: Series, times: Float[np.ndarray, " H"], step: float) -> Float[np.ndarray, "H P"]:
    """What was observed near the times of a forecast, which go by the usual step; NaN where nothing was."""
    found = np.full((len(times), truth.n_channels), np.nan)
    place = (truth.times - times[0]) / step
    near = np.round(place).astype(int)
    usable = (np.abs(place - near) <= _NEAR) & (near < len(times))
    found[near[usable]] = truth.values[usable]
    return found


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


def _persistence(known: list[Series], fans: list[Fan], ahead: int, n_samples: int, truth: np.ndarray) -> np.ndarray:
    """CRPS of the last value seen, dressed in the changes of the known data; NaN where no stretch of that is whole for
    long enough, or where a context saw nothing of a channel."""
    try:
        fitted = Persistence(ahead).fit([part for one in known for part in _whole(one)], seed=0)
        members = [fitted.forecast(_last_seen(f.context), ahead, n_samples, seed=i) for i, f in enumerate(fans)]
    except SeriesError:
        return np.full(truth.shape, np.nan)
    return scores.crps(np.stack(members), truth)


def _whole(series: Series) -> list[Series]:
    """The stretches of a series that were observed throughout, at its usual step."""
    if series.length < 2:
        return []
    usual = np.abs(series.steps - series.dt) <= _NEAR * series.dt
    seen = np.all(series.mask, axis=1)
    joined = seen[1:] & seen[:-1] & usual
    cuts = [0, *(np.flatnonzero(~joined) + 1), series.length]
    parts = [series[a:b] for a, b in pairwise(cuts) if b > a + 1]
    return [part for part in parts if part.is_regular]


def _last_seen(context: Series) -> Float[np.ndarray, "1 P"]:
    last = [values[seen][-1:] for values, seen in zip(context.values.T, context.mask.T, strict=True)]
    return np.array([[one[0] if len(one) else np.nan for one in last]])


def _mean(score: Float[np.ndarray, "R H P"]) -> Float[np.ndarray, "H P"]:
    """Over origins; NaN where nothing was observed at any of them."""
    known = ~np.isnan(score)
    return np.where(known, score, 0.0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
