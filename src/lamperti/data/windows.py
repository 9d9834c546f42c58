"""Segments of fixed shape, cut from standardised series of any length.

Notation   N: chain samples of a segment   L: lead samples before them, context for the encoder's window
           y [B, L+N, P], mask [B, L+N, P], dt [B, L+N-1], link [B, L+N-1]
           link[k]: sample k+1 follows sample k in the same series; False wherever either was made up

What a series does not have is made up, plausibly, and marked as not observed (mask False):

* before its start: the odd reflection 2 y[0] - y[k] about the first sample, with the mirrored steps;
* after its end: the last value again, a step of 1 apart;
* where a sample is missing: linear interpolation in time, the nearest observed value at the ends.

Every series is extended in this way once and laid end to end with the others, so that a batch is one gather.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lamperti._errors import ConfigError
from lamperti._typing import Bool, Float, Int


class Batch(NamedTuple):
    """B segments of the same shape; the first L samples of each are its lead."""

    y: Float[np.ndarray, "B L+N P"]
    mask: Bool[np.ndarray, "B L+N P"]
    dt: Float[np.ndarray, "B L+N-1"]
    link: Bool[np.ndarray, "B L+N-1"]


class Track(NamedTuple):
    """One standardised series: values, which of them were observed, and the steps between them."""

    y: Float[np.ndarray, "T P"]
    mask: Bool[np.ndarray, "T P"]
    dt: Float[np.ndarray, "T-1"]


@dataclass(frozen=True, eq=False)
class SegmentSet:
    """All the segments of a data set; make one with `segment`."""

    length: int
    lead: int
    lengths: Int[np.ndarray, " R"]  # samples of each series, without what was made up
    offsets: Int[np.ndarray, " R"]  # where each extended series begins in the rows below
    y: Float[np.ndarray, "K P"]
    mask: Bool[np.ndarray, "K P"]
    dt: Float[np.ndarray, " K"]
    link: Bool[np.ndarray, " K"]

    @property
    def n_transitions(self) -> int:
        """Steps between successive samples, over all series."""
        return int(np.sum(self.lengths - 1))

    def draw(self, rng: np.random.Generator, batch_size: int) -> Batch:
        """Random segments, such that every transition of the data has the same chance to be in one.

        A series is cut into pieces that hold each of its transitions once, at places that are drawn anew each time, and
        one of the pieces is taken; a series that is cut into more pieces is taken more often. Starts drawn evenly would
        show the first and the last transitions of a series hardly ever."""
        pieces = self._pieces()
        series = rng.choice(len(pieces), size=batch_size, p=pieces / pieces.sum())
        pieces, transitions, most = pieces[series], self.lengths[series] - 1, self.length - 1
        # Inner pieces are full; what the pieces hold beyond the series is left out of the first and the last one.
        spare = pieces * most - transitions
        low, high = np.maximum(spare - (most - 1), 0), np.minimum(spare, most - 1)
        short = np.where(pieces > 1, rng.integers(low, np.maximum(high, low) + 1), 0)
        begin = rng.integers(0, pieces) * most - short
        starts = np.maximum(begin, 0)
        return self._gather(series, starts, begin + most - starts)

    def _pieces(self) -> Int[np.ndarray, " R"]:
        """Into how many pieces each series is cut: one that fits into a segment is left whole, others are cut into as
        many as leave half a segment or more to shift the cuts by."""
        most = self.length - 1
        room = 0.5 if most > 1 else 0.0  # pieces of one transition have no cuts to shift
        return np.where(
            self.lengths <= self.length, self.lengths > 1, np.ceil((self.lengths - 1) / most + room)
        ).astype(int)

    def cover(self, max_segments: int | None = None, first: Sequence[int] | None = None) -> Batch:
        """Every sample once in a chain, as one batch; or ``max_segments`` of the segments, evenly spread. ``first``:
        the sample of each series from which on; those before it are in leads only."""
        begin = np.zeros_like(self.lengths) if first is None else np.asarray(first)
        counts = -(-(self.lengths - begin) // self.length)
        series = np.repeat(np.arange(len(counts)), counts)
        starts = np.concatenate([begin[i] + np.arange(n) * self.length for i, n in enumerate(counts)])
        if max_segments is not None and max_segments < len(series):
            keep = np.linspace(0, len(series) - 1, max_segments).round().astype(int)
            series, starts = series[keep], starts[keep]
        return self._gather(series, starts)

    def _gather(
        self, series: Int[np.ndarray, " B"], starts: Int[np.ndarray, " B"], n_steps: Int[np.ndarray, " B"] | None = None
    ) -> Batch:
        """The segments that start there; with ``n_steps``, of so many transitions, as if the series ended there."""
        # The lead comes first in an extended series, so a chain that starts at s has its lead from row s on.
        rows = (self.offsets[series] + starts)[:, None] + np.arange(self.lead + self.length)
        batch = Batch(self.y[rows], self.mask[rows], self.dt[rows[:, :-1]], self.link[rows[:, :-1]])
        if n_steps is None:
            return batch
        within = np.arange(self.lead + self.length) <= self.lead + n_steps[:, None]
        return batch._replace(mask=batch.mask & within[..., None], link=batch.link & within[:, 1:])


def segment(tracks: Sequence[Track | tuple], length: int, lead: int) -> SegmentSet:
    """Prepare standardised series (y [T, P], mask [T, P], dt [T-1]) for segments of lead + length samples."""
    if length < 2 or lead < 0 or not tracks:
        raise ConfigError(
            f"segments need a length of at least 2, a lead of at least 0 and a series; got length={length}, "
            f"lead={lead} and {len(tracks)} series."
        )
    # A series that is cut into pieces may have one that holds its last transition only.
    extended = [_extend(Track(*t), lead, length, beyond=length if len(t[0]) > length else 0) for t in tracks]
    sizes = [len(batch.y[0]) for batch in extended]
    return SegmentSet(
        length=length,
        lead=lead,
        lengths=np.array([len(track[0]) for track in tracks]),
        offsets=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int),
        y=np.concatenate([batch.y[0] for batch in extended]),
        mask=np.concatenate([batch.mask[0] for batch in extended]),
        # One entry more than steps a series, so that steps and samples share their offsets; never gathered.
        dt=np.concatenate([np.append(batch.dt[0], 1.0) for batch in extended]),
        link=np.concatenate([np.append(batch.link[0], False) for batch in extended]),
    )


def whole(
    y: Float[np.ndarray, "T P"],
    mask: Bool[np.ndarray, "T P"],
    dt: Float[np.ndarray, "T-1"],
    lead: int,
    multiple: int,
) -> Batch:
    """One entire series as a batch of one, with its lead; the length is padded up to a multiple of
    ``multiple``, so that series of many lengths share few shapes (and few compilations)."""
    if lead < 0 or multiple < 1:
        raise ConfigError(f"lead must be at least 0 and multiple at least 1; got {lead} and {multiple}.")
    return _extend(Track(y, mask, dt), lead, multiple)


def _extend(track: Track, lead: int, multiple: int, beyond: int = 0) -> Batch:
    """The series with its lead before it, its length padded up to a multiple and further, as a batch of one."""
    length = len(track.y)
    tail = -length % multiple + beyond
    y = interpolate(track)
    mirror = np.minimum(np.arange(lead, 0, -1), length - 1)  # lead sample j steps before the start mirrors sample j
    made_up = 2.0 * y[0] - y[mirror]
    # A series of one sample has no step to mirror.
    lead_dt = track.dt[np.minimum(np.arange(lead - 1, -1, -1), length - 2)] if length > 1 else np.ones(lead)
    extended_dt = np.concatenate([lead_dt, track.dt, np.ones(tail)])
    known = np.arange(lead + length + tail - 1)
    unseen = np.zeros((1, y.shape[1]), dtype=bool)
    return Batch(
        y=np.concatenate([made_up, y, np.repeat(y[-1:], tail, axis=0)])[None],
        mask=np.concatenate([unseen.repeat(lead, 0), track.mask, unseen.repeat(tail, 0)])[None],
        dt=extended_dt[None],
        link=((known >= lead) & (known < lead + length - 1))[None],
    )


def interpolate(track: Track) -> Float[np.ndarray, "T P"]:
    """The values with missing ones filled in, channel by channel; 0, the mean, where a channel has none."""
    time = np.concatenate([[0.0], np.cumsum(track.dt)])
    y = np.zeros(track.y.shape)
    for p, seen in enumerate(track.mask.T):
        if seen.any():
            y[:, p] = np.interp(time, time[seen], track.y[seen, p])
    return y
