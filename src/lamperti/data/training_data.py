"""What a model was trained on: kept with it, so that "new to the model" is a fact and not a guess.

Notation   window: the values of 8 rows in a row, of all channels; its hash knows neither where nor when the rows were

Of every series there are a checksum and which rows were held out; of all series together, up to some thousand hashes of
windows with their places. A part of the training data, or a longer recording that begins with it, shares the hashes of
the rows they have in common, all of them shifted by the same number of rows.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from lamperti._typing import Int
from lamperti.data.holding import held_out_rows
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series

Spans = tuple[tuple[int, int], ...]

_WIDTH = 8
_MOST_MARKS = 2048
_MOST_COPIES = 8  # a window that is there more often (a flat stretch) tells nothing of its place
_LEAST_MARKS = 3  # in common, to be more than chance
_MOST_PLACES = 256  # that a series is looked for at: one with few values fits many
_AGREE = 0.5  # share of the marks of an overlap that must be found again
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Seen(IntEnum):
    """What training made of a row."""

    NEW = 0
    HELD_OUT = 1  # looked at to stop and select, never learned from
    TRAINING = 2


@dataclass(frozen=True)
class SeriesRecord:
    """One series that `fit` was given. Rows ``held_out`` (first, stop) only chose when to stop; all others trained."""

    sha256: str
    """Of values, mask and times."""
    length: int
    first_time: float
    last_time: float
    held_out: Spans = ()

    def __post_init__(self):
        bounds = [0, *(row for span in self.held_out for row in span), self.length]
        if self.length < 1 or any(len(span) != 2 for span in self.held_out) or bounds != sorted(bounds):
            raise ValueError(f"{self.held_out} are not rows of {self.length}")


@dataclass(frozen=True)
class TrainingData:
    """Everything that `fit` was given, in order."""

    series: tuple[SeriesRecord, ...]
    last_training_time: float
    """The last time of a row that was learned from."""
    one_of: int
    """Of the windows, those whose hash is a multiple of this are kept."""
    marks: str
    """Hashes and places of windows, counted through all series: pairs of 32-bit numbers, in base64."""

    def __post_init__(self):
        if not self.series or self.one_of < 1 or len(self._pairs()) > _MOST_MARKS:
            raise ValueError("not a record of training data")

    @property
    def n_rows(self) -> int:
        return sum(one.length for one in self.series)

    def _pairs(self) -> Int[np.ndarray, "K 2"]:
        raw = base64.b64decode(self.marks.encode("ascii"), validate=True)
        return np.frombuffer(raw, dtype="<u4").reshape(-1, 2).astype(np.int64)


def record_split(series: Sequence[Series], scaler: Scaler, fraction: float, window: int, seed: int) -> TrainingData:
    """A record of series with the rows that a fit with this seed holds out: the same draws give the same rows."""
    rng = np.random.default_rng(seed)
    return record_training_data(series, held_out_rows(series, scaler, fraction, window, rng))


def record_training_data(series: Sequence[Series], held_out: Mapping[int, Spans]) -> TrainingData:
    """A record of series, of which rows ``held_out`` (by series) were not learned from."""
    records = tuple(
        SeriesRecord(checksum(one), one.length, float(one.times[0]), float(one.times[-1]), held_out.get(i, ()))
        for i, one in enumerate(series)
    )
    trained = [one.times[_trained_rows(record)] for one, record in zip(series, records, strict=True)]
    hashes = [_hashes(one) for one in series]
    begins = np.cumsum([0, *(one.length for one in series)])
    places = np.concatenate([begins[i] + np.arange(len(h)) for i, h in enumerate(hashes)])
    found = np.concatenate(hashes)
    _, which, copies = np.unique(found, return_inverse=True, return_counts=True)
    telling = copies[which] <= _MOST_COPIES
    one_of = 1
    while np.sum(telling & (found % one_of == 0)) > _MOST_MARKS:
        one_of *= 2
    kept = telling & (found % one_of == 0)
    pairs = np.stack([found[kept], places[kept]], axis=1).astype("<u4")
    return TrainingData(
        records, float(np.concatenate(trained).max()), one_of, base64.b64encode(pairs.tobytes()).decode("ascii")
    )


def rows_seen(record: TrainingData, series: Sequence[Series]) -> list[Int[np.ndarray, " _T"]]:
    """Of every row of some data, whether training saw it: an array of `Seen` a series.

    Rows are known by their values alone. Where training data was found in part, all rows that lie between count."""
    pairs = record._pairs()
    hashes, rows = pairs[np.argsort(pairs[:, 0], kind="stable")].T
    begins = np.cumsum([0, *(one.length for one in record.series)])
    owner = np.searchsorted(begins, rows, side="right") - 1
    rows = rows - begins[owner]
    return [_rows_seen(record, one, hashes, owner, rows) for one in series]


def checksum(one: Series) -> str:
    """SHA-256 of values, mask and times."""
    digest = hashlib.sha256(repr(one.values.shape).encode())
    # What was not observed is NaN in any of its bit patterns, so it is left out.
    for array in (np.where(one.mask, one.values, 0.0), one.times, one.mask):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _rows_seen(record: TrainingData, one: Series, hashes: np.ndarray, owner: np.ndarray, rows: np.ndarray):
    seen = np.full(one.length, Seen.NEW, dtype=np.int8)
    own = checksum(one)
    for known in record.series:
        if known.sha256 == own:
            return np.maximum(seen, _kinds(known))
    given = _hashes(one)
    at = np.flatnonzero(given % record.one_of == 0)
    first, stop = (np.searchsorted(hashes, given[at], side=side) for side in ("left", "right"))
    many = stop - first
    # every mark of the data beside every copy of it in the record
    mark = np.repeat(first - np.cumsum(many) + many, many) + np.arange(many.sum())
    shift = np.repeat(at, many) - rows[mark]
    found = np.stack([owner[mark], shift], axis=1)
    pairs, count = np.unique(found, axis=0, return_counts=True)
    likely = np.argsort(-count, kind="stable")[:_MOST_PLACES]
    for i, moved in pairs[likely[count[likely] >= _LEAST_MARKS]]:
        known = record.series[i]
        again = rows[mark[(found == (i, moved)).all(axis=1)]]
        low, high = _common(np.sort(rows[owner == i]), again, known.length, one.length - moved, -moved)
        part = seen[low + moved : high + moved]
        part[:] = np.maximum(part, _kinds(known)[low:high])
    return seen


def _common(marks: np.ndarray, again: np.ndarray, length: int, stop: int, first: int) -> tuple[int, int]:
    """Rows (first, stop) of a training series that some data shares, from the marks in it and those found again.

    Between marks that were found the rows are the same; up to the next that was not, they may be."""
    low, high = max(0, first), min(length, stop)
    marks = marks[(marks >= low) & (marks <= high - _WIDTH)]
    i, j = np.searchsorted(marks, [again.min(), again.max()])
    if len(np.unique(again)) < _AGREE * (j - i + 1):
        return 0, 0
    begin = low if i == 0 else marks[i - 1] + 1
    end = high if j == len(marks) - 1 else marks[j + 1] + _WIDTH - 1
    return int(begin), int(end)


def _kinds(known: SeriesRecord) -> Int[np.ndarray, " T"]:
    return np.where(_trained_rows(known), Seen.TRAINING, Seen.HELD_OUT).astype(np.int8)


def _trained_rows(known: SeriesRecord) -> np.ndarray:
    trained = np.ones(known.length, dtype=bool)
    for first, stop in known.held_out:
        trained[first:stop] = False
    return trained


def _hashes(one: Series) -> Int[np.ndarray, " W"]:
    """Of every window, 32 bits."""
    # Zero has two bit patterns; what was not observed has many.
    bits = (np.where(one.mask, one.values, 0.0) + 0.0).view(np.uint64) + _GOLDEN * one.mask.astype(np.uint64)
    row = np.zeros(one.length, dtype=np.uint64)
    for channel in bits.T:
        row = _mixed(row * np.uint64(3) + channel)
    n = one.length - _WIDTH + 1
    if n < 1:
        return np.zeros(0, dtype=np.int64)
    window = np.zeros(n, dtype=np.uint64)
    for k in range(_WIDTH):
        window = _mixed(window * np.uint64(3) + row[k : k + n])
    return (window >> np.uint64(32)).astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit of x (splitmix64)."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    return x ^ (x >> np.uint64(31))
