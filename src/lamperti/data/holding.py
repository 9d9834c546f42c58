"""Which part of a data set training does not see."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lamperti._typing import Bool
from lamperti.data.bridging import pieces
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.data.windows import Track

_LEAST = 8  # samples that an end must have to be held out


class Judged(NamedTuple):
    """A series, and its first sample that training has not seen; those before it are the past of forecasts."""

    track: Track
    first: int = 0


def hold_out(tracks: Sequence[Track], first: Mapping[int, int]) -> tuple[list[Track], list[Judged]]:
    """Training, and what judges it: the series that are named, from their first unseen sample on."""
    seen = [(t, first.get(i, len(t.y))) for i, t in enumerate(tracks)]
    training = [Track(t.y[:k], t.mask[:k], t.dt[: k - 1]) for t, k in seen if k]
    return training, [Judged(tracks[i], k) for i, k in first.items()]


def held_out_from(
    masks: Sequence[Bool[np.ndarray, "_T P"]], fraction: float, window: int, rng: np.random.Generator
) -> Mapping[int, int]:
    """The series that are held out, each with its first unseen sample: whole series where the share comes to one or
    more, else the end of the longest. ``masks`` tell what was observed of each. The same data and state of ``rng``
    give the same part, so that it can be found again after training."""
    if fraction == 0.0:
        return {}
    n = min(round(fraction * len(masks)), len(masks) - 1)
    if n > 0:
        picked = sorted(rng.choice(len(masks), n, replace=False).tolist())
        if _suffices([mask for i, mask in enumerate(masks) if i not in picked], window):
            return dict.fromkeys(picked, 0)
    place = max(range(len(masks)), key=lambda i: len(masks[i]))
    length, total = len(masks[place]), sum(map(len, masks))
    cut = max(round(length - fraction * total), length // 2 if len(masks) > 1 else 0)
    training = [mask[:cut] if i == place else mask for i, mask in enumerate(masks)]
    if length - cut < max(window, _LEAST) or not _suffices(training, window):
        return {}
    return {place: cut}


def held_out_rows(
    series: Sequence[Series], scaler: Scaler, fraction: float, window: int, rng: np.random.Generator
) -> dict[int, tuple[tuple[int, int], ...]]:
    """The rows (first, stop) of each series that `hold_out` keeps from training.

    Training takes a series in pieces between its longest gaps, and fills the shorter gaps with unobserved samples."""
    parts = [(i, piece) for i, one in enumerate(series) for piece in pieces(one, scaler)]
    held_out = held_out_from([piece.track.mask for _, piece in parts], fraction, window, rng)
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    begins = dict.fromkeys(range(len(series)), 0)
    for number, (i, piece) in enumerate(parts):
        stop = begins[i] + len(piece.rows)
        if number in held_out:
            first = begins[i] + int(np.searchsorted(piece.rows, held_out[number]))
            found[i] = (*found.get(i, ()), (first, stop))
        begins[i] = stop
    return found


def _suffices(masks: Sequence[np.ndarray], window: int) -> bool:
    """Whether a model can start from these series: one has more than a window, and every channel was observed."""
    seen = np.any([mask.any(axis=0) for mask in masks], axis=0)
    return bool(seen.all()) and any(len(mask) > window for mask in masks)
