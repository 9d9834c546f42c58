"""Forecasts of data that a model has not seen, from origins spread over it, with what happened then.

Notation   R origins, from which H steps are forecast; S futures; truth [R, H, P], NaN where it was not observed
"""

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from lamperti import api
from lamperti._errors import LampertiWarning
from lamperti.data.series import Series
from lamperti.diagnostics.at_times import nearest, samples_at
from lamperti.diagnostics.unseen import Division, Span, divide
from lamperti.evaluation import scores
from lamperti.results import FitResult, Forecast

_HORIZON = 100
_CONTEXT = 256
_KIND = 24  # letters at the start of a warning that tell its kind


@dataclass(frozen=True, eq=False)
class Fan:
    """One forecast with the data before and after its origin."""

    forecast: Forecast
    context: Series
    truth: Series
    trained_until: float | None = None
    """Time of the last sample before the held-out part; None where the series is new to the model."""


@dataclass(frozen=True, eq=False)
class UnseenForecasts:
    """Forecasts and what happened, origin by origin. Each value counts at its nearest step, and stands beside the
    forecast of its own time."""

    division: Division
    """With times in steps of the model, as ``series``: months are then of one length."""
    series: tuple[Series, ...]
    place: Int[np.ndarray, "R 2"]
    """Of each origin, the series and its first row after it."""
    fans: tuple[Fan, ...]
    samples: Float[np.ndarray, "R S H P"]
    truth: Float[np.ndarray, "R H P"]
    remarks: tuple[str, ...]
    """What the forecasts warned of, each kind once."""
    seed: int

    @cached_property
    def crps(self) -> Float[np.ndarray, "R H P"]:
        return scores.crps(self.samples, self.truth)

    def past(self, r: int) -> Series:
        """All of the series before an origin."""
        i, row = self.place[r]
        return self.series[i][:row]


def forecast_unseen(
    result: FitResult,
    series: Sequence[Series],
    *,
    training: Sequence[Series] = (),
    horizon: int | None = None,
    n_origins: int = 24,
    n_samples: int = 200,
    seed: int = 0,
) -> UnseenForecasts | None:
    """Forecast from up to ``n_origins`` places in the unseen part of the data, evenly spread; None where it is too
    short for two of them. The last origins see fewer than all steps ahead, a quarter at least."""
    division = _with_something_known(divide(result, series, training), series)
    starts = [_first_origin(span) for span in division.unseen]
    room = [(span.stop - start) // 2 for span, start in zip(division.unseen, starts, strict=True)]
    ahead = min(horizon or _HORIZON, max([1, *room]))
    least = -(-ahead // 4)
    places = [
        (span, row)
        for span, start in zip(division.unseen, starts, strict=True)
        for row in range(start, span.stop - least + 1)
    ]
    if len(places) < 2:
        return None
    places = [places[j] for j in np.unique(np.linspace(0, len(places) - 1, n_origins).round().astype(int))]
    # One length for all contexts: every other length would be compiled anew.
    length = min(_CONTEXT, *(row for _, row in places))
    clocks = [result.scaler.in_steps(one) for one in series]
    fans, members, truths = [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LampertiWarning)
        for number, (span, row) in enumerate(places):
            one, clock = series[span.series], clocks[span.series]
            context = one[row - length : row]
            futures = api.forecast(result, context, horizon=ahead, n_samples=n_samples, seed=seed + number)
            now = float(clock.times[row - 1])
            end = max(int(np.searchsorted(clock.times[: span.stop], now + ahead + 0.5)), row + 1)
            seen = float(one.times[span.first - 1]) if span.first else None
            fan = Fan(futures, context, one[row:end], seen)
            observed = nearest(clock[row:end], now, 1.0, ahead)
            members.append(samples_at(result, futures, observed.late, seed + number))
            truths.append(observed.values)
            fans.append(fan)
    return UnseenForecasts(
        division=dataclasses.replace(division, known=tuple(map(result.scaler.in_steps, division.known))),
        series=tuple(clocks),
        place=np.array([(span.series, row) for span, row in places]),
        fans=tuple(fans),
        samples=np.stack(members),
        truth=np.stack(truths),
        remarks=_distinct([str(w.message) for w in caught if issubclass(w.category, LampertiWarning)]),
        seed=seed,
    )


def _first_origin(span: Span) -> int:
    """With a context before it: a span at the start of its series gives up to half of itself."""
    return max(span.first, min(_CONTEXT, span.stop // 2), 2)


def _with_something_known(division: Division, series: Sequence[Series]) -> Division:
    """Where the training data is not at hand, simple methods learn from the first half of what is unseen."""
    if division.known:
        return division
    halves = [Span(s.series, (s.first + s.stop) // 2, s.stop) for s in division.unseen if s.stop - s.first >= 4]
    known = tuple(series[s.series][s.first : (s.first + s.stop) // 2] for s in division.unseen if s.stop - s.first >= 4)
    remark = (
        "The training data is not at hand: simple methods learned from the first half of these data, which the model "
        "has not seen, and scores are of the second half."
    )
    return Division(tuple(halves), known, division.validation, f"{division.remark} {remark}".strip())


def _distinct(messages: list[str]) -> tuple[str, ...]:
    """The first of each kind: many origins warn of the same with other numbers."""
    return tuple({message[:_KIND]: message for message in reversed(messages)}.values())
