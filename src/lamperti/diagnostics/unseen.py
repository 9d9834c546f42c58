"""Which rows of some data a model has not seen, and which it learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from lamperti.data.holding import held_out_rows
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.data.training_data import Seen, rows_seen
from lamperti.results import FitResult

_SAME = 1e-9
_ENOUGH_KNOWN = 200
_ENOUGH_NEW = 50  # rows that are new altogether; with fewer, those that were held out count, too


class Span(NamedTuple):
    """Rows ``first`` to ``stop`` (exclusive) of a series."""

    series: int
    first: int
    stop: int


@dataclass(frozen=True, eq=False)
class Division:
    """Some data as a model sees it."""

    unseen: tuple[Span, ...]
    """What forecasts are scored on."""
    known: tuple[Series, ...]
    """What the model learned from, as far as it is at hand; simple methods learn from it, too."""
    validation: bool
    """Whether some of the unseen rows chose when training stopped."""
    remark: str = ""
    """A sentence on the overlap with the training data; empty where the data is all old or all new."""

    @property
    def n_unseen(self) -> int:
        return sum(span.stop - span.first for span in self.unseen)


def divide(result: FitResult, series: Sequence[Series], training: Sequence[Series] = ()) -> Division:
    """What training has seen of some data, row by row.

    ``training``: the series that the model was fitted to, where they are at hand; by default those of the result. A
    model of an older file does not know its rows: data is then taken for the training data when mean, sd and median
    step are the same, and for new otherwise."""
    seen = _seen(result, series)
    rows = np.concatenate(seen)
    new, held_out, learned = (int(np.sum(rows == kind)) for kind in (Seen.NEW, Seen.HELD_OUT, Seen.TRAINING))
    counted = (Seen.NEW,) if new >= _ENOUGH_NEW or not held_out else (Seen.NEW, Seen.HELD_OUT)
    unseen = tuple(span for i, one in enumerate(seen) for span in _spans(i, np.isin(one, counted)))
    sources = [_learned(series, seen)]
    sources += [_learned(other, _seen(result, other)) for other in (training, result.data) if other]
    known = max(sources, key=_rows)
    validation = Seen.HELD_OUT in counted
    known = known if _rows(known) >= _least_known(result) else ()
    return Division(unseen, known, validation, _overlap(new, held_out, learned, validation))


def is_known(result: FitResult, series: Sequence[Series]) -> bool:
    """Whether all of some data was there when the model was fitted, learned from or held out."""
    return bool(series) and not any(np.any(rows == Seen.NEW) for rows in _seen(result, series))


def looks_like_training_data(result: FitResult, series: Sequence[Series]) -> bool:
    """Whether these may be the data that the model was trained on, as far as their means, sds and step can tell."""
    found, known = Scaler.from_series(series), result.scaler
    return all(
        np.allclose(a, b, rtol=_SAME, atol=0.0)
        for a, b in ((found.shift, known.shift), (found.scale, known.scale), (found.time_unit, known.time_unit))
    )


def _seen(result: FitResult, series: Sequence[Series]) -> list[Int[np.ndarray, " _T"]]:
    if result.trained_on is not None:
        return rows_seen(result.trained_on, series)
    if not looks_like_training_data(result, series):
        return [np.full(one.length, Seen.NEW, dtype=np.int8) for one in series]
    fit, window = result.config.fit, result.config.model.window or 1
    rng = np.random.default_rng(fit.seed)
    held_out = held_out_rows(series, result.scaler, fit.validation_fraction, window, rng)
    seen = [np.full(one.length, Seen.TRAINING, dtype=np.int8) for one in series]
    for i, spans in held_out.items():
        for first, stop in spans:
            seen[i][first:stop] = Seen.HELD_OUT
    return seen


def _learned(series: Sequence[Series], seen: Sequence[np.ndarray]) -> tuple[Series, ...]:
    spans = [span for i, one in enumerate(seen) for span in _spans(i, one == Seen.TRAINING)]
    return tuple(series[span.series][span.first : span.stop] for span in spans)


def _rows(series: Sequence[Series]) -> int:
    return sum(one.length for one in series)


def _least_known(result: FitResult) -> int:
    """Rows of the training data that stand for all of it."""
    return 1 if result.trained_on is None else min(_ENOUGH_KNOWN, -(-result.trained_on.n_rows // 3))


def _spans(i: int, rows: np.ndarray) -> list[Span]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], rows.astype(int), [0]])))
    return [Span(i, int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _overlap(new: int, held_out: int, learned: int, validation: bool) -> str:
    if not new or not (held_out or learned):
        return ""
    parts = [f"training learned from {learned}"] * bool(learned)
    parts += [f"{held_out} chose when it stopped"] * bool(held_out)
    counted = f"{new} new ones and of those that chose" if validation else f"{new} new ones"
    return f"Of the {new + held_out + learned} rows of these data, {' and '.join(parts)}; scores are of the {counted}."
