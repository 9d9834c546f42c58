"""What simple methods score at the origins of a model's forecasts, having learned from what the model learned from.

Climatology and persistence go by time and take any data. The others count samples: they need steps of one length, give
or take a little; short gaps are bridged by straight lines for them, and longer ones cut the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from lamperti._errors import LampertiError
from lamperti.baselines import Autoregression, Baseline, SeasonalNaive, Simplex
from lamperti.baselines.seasonal_naive import find_season
from lamperti.data.series import Series
from lamperti.diagnostics.held_out import climatology, persistence
from lamperti.diagnostics.origins import UnseenForecasts
from lamperti.evaluation.scores import crps

CLIMATOLOGY, PERSISTENCE, SEASON = "climatology", "persistence", "seasonal naive"
AR, NEIGHBOURS = "autoregression", "nearest neighbours"
_LEARNED_FROM = 10_000  # samples of a channel, the latest of each series: enough for orders and neighbours, in seconds
_SEEN_BEFORE = 2_000  # samples of context
_UNEVEN = 0.15  # of a step
_MOST_UNEVEN = 0.02  # share of the steps
_LONGEST_GAP = 5  # samples that a straight line bridges


@dataclass(frozen=True, eq=False)
class SimpleScores:
    """CRPS by method, at the asked horizons; NaN where a method has no forecast."""

    crps: Mapping[str, Float[np.ndarray, "R K P"]]
    season: int | None
    """In samples, of the first channel that has one."""
    notes: tuple[str, ...]
    """Which methods were left out, and why."""


def simple_scores(found: UnseenForecasts, horizons: Sequence[int], channels: Sequence[int]) -> SimpleScores:
    """Scores of all simple methods that can be fitted, for some horizons (steps) and channels."""
    at = np.array(horizons) - 1
    scores = {
        name: score[:, at][..., list(channels)]
        for name, score in ((CLIMATOLOGY, climatology(found)), (PERSISTENCE, persistence(found)))
    }
    known = [on_steps(one) for one in found.division.known]
    past = [on_steps(found.past(r)[-_SEEN_BEFORE:]) for r in range(len(found.truth))]
    if any(one is None for one in [*known, *past]):
        note = "The samples are not evenly spaced: autoregression, nearest neighbours and season were left out."
        return SimpleScores(scores, None, (note,))
    learned = [[_stretches(one[:, p]) for one in known if one is not None] for p in channels]
    learned = [_latest([part for parts in channel for part in parts]) for channel in learned]
    seasons = [find_season([part[:, None] for part in parts]) if parts else None for parts in learned]
    season = next((s for s in seasons if s), None)
    furthest = int(max(horizons))
    methods: dict[str, Baseline] = {AR: Autoregression(criterion="aic"), NEIGHBOURS: Simplex(furthest)}
    if season:
        methods = {SEASON: SeasonalNaive(furthest), **methods}
    notes = []
    for name, method in methods.items():
        score, reason = _scored(method, learned, past, found, at, channels)
        if np.isnan(score).all():
            notes.append(f"{name.capitalize()} was left out: {reason or 'no origin has enough data before it.'}")
        else:
            scores[name] = score
    return SimpleScores(scores, season, tuple(notes))


def on_steps(one: Series) -> Float[np.ndarray, "T P"] | None:
    """Values by whole steps, NaN where there are none; None where the steps are of many lengths. Times are in steps."""
    if one.length < 2:
        return np.array(one.values)
    whole = np.round(one.steps)
    if np.mean((np.abs(one.steps - whole) > _UNEVEN) | (whole < 1)) > _MOST_UNEVEN:
        return None
    place = np.concatenate([[0], np.cumsum(np.maximum(whole, 1))]).astype(np.int64)
    if place[-1] > 100 * one.length:  # gaps that would fill the memory: all before the last of them is long ago
        return on_steps(one[int(np.flatnonzero(whole > _LONGEST_GAP)[-1]) + 1 :])
    values = np.full((place[-1] + 1, one.n_channels), np.nan)
    values[place] = one.values
    return values


def _stretches(values: Float[np.ndarray, " T"]) -> list[Float[np.ndarray, " _T"]]:
    """Parts of a channel without gaps, the short ones bridged."""
    seen = np.flatnonzero(np.isfinite(values))
    if not seen.size:
        return []
    cuts = np.flatnonzero(np.diff(seen) > _LONGEST_GAP + 1) + 1
    bounds = [0, *cuts.tolist(), len(seen)]
    parts = [seen[a:b] for a, b in pairwise(bounds)]
    return [np.interp(np.arange(rows[0], rows[-1] + 1), rows, values[rows]) for rows in parts]


def _latest(parts: list[np.ndarray]) -> list[np.ndarray]:
    total = sum(map(len, parts))
    share = min(1.0, _LEARNED_FROM / max(total, 1))
    return [part[-max(int(share * len(part)), 1) :] for part in parts]


def _context(values: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
    """The last stretch, up to the origin; empty where the last value is too long ago."""
    parts = _stretches(values)
    late = len(values) - 1 - np.flatnonzero(np.isfinite(values))[-1] if parts else len(values)
    return np.append(parts[-1], np.repeat(parts[-1][-1:], late)) if late <= _LONGEST_GAP and parts else np.empty(0)


def _scored(
    method: Baseline, learned: list, past: list, found: UnseenForecasts, at: np.ndarray, channels: Sequence[int]
) -> tuple[Float[np.ndarray, "R K P"], str]:
    """CRPS of a method for one channel, used on each; and why it failed, if it did."""
    truth, n_samples = found.truth[:, at][..., list(channels)], found.samples.shape[1]
    score, reason = np.full(truth.shape, np.nan), ""
    for k, p in enumerate(channels):
        try:
            fitted = method.fit([Series(part) for part in learned[k] if len(part) > 1], found.seed)
        except LampertiError as error:
            reason = str(error)
            continue
        for r, before in enumerate(past):
            context = _context(before[:, p])
            try:
                ahead = fitted.forecast(context[:, None], int(at[-1]) + 1, n_samples, found.seed + r)
            except LampertiError as error:
                reason = reason or str(error)
                continue
            score[r, :, k] = crps(ahead[None][:, :, at], truth[r : r + 1, :, k : k + 1])[0, :, 0]
    return score, reason
