"""Gaps: crossed in steps of the usual length, or, where nothing is remembered over them, cut.

One step of the equation is an Euler step, good over about a sampling step. A longer one is divided by samples that
were not observed, so that the dynamics carry the state across as they do where a value is missing.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lamperti._typing import Int
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.data.windows import Track

LONGEST_STEP = 2.0  # in the unit of time, the median step
LONGEST_GAP = 64.0  # what is longer cuts the series in two


class Piece(NamedTuple):
    """A part of a series without long steps; ``rows`` are the samples of it that the series has."""

    track: Track
    rows: Int[np.ndarray, " T"]


def tracks(series: Sequence[Series], scaler: Scaler) -> list[Track]:
    """All series in the model's units, in pieces without long gaps."""
    return [piece.track for one in series for piece in pieces(one, scaler)]


def pieces(series: Series, scaler: Scaler) -> list[Piece]:
    """A series in the model's units, its gaps bridged or cut."""
    return bridge(Track(np.nan_to_num(scaler.values(series.values)), series.mask, scaler.steps_of(series)))


def bridge(track: Track) -> list[Piece]:
    """The series in pieces between its longest gaps, the shorter gaps filled with unobserved samples."""
    cuts = np.flatnonzero(track.dt > LONGEST_GAP) + 1
    bounds = [0, *cuts.tolist(), len(track.y)]
    return [_filled(_part(track, a, b)) for a, b in pairwise(bounds)]


def _part(track: Track, start: int, stop: int) -> Track:
    return Track(track.y[start:stop], track.mask[start:stop], track.dt[start : stop - 1])


def _filled(track: Track) -> Piece:
    # Less a hair: steps that are whole numbers but for their rounding must not become one more.
    parts = np.where(track.dt > LONGEST_STEP, np.ceil(track.dt * (1.0 - 1e-6)), 1.0).astype(int)
    rows = np.concatenate([[0], np.cumsum(parts)])
    y = np.zeros((rows[-1] + 1, track.y.shape[1]))
    mask = np.zeros(y.shape, dtype=bool)
    y[rows], mask[rows] = track.y, track.mask
    return Piece(Track(y, mask, np.repeat(track.dt / parts, parts)), rows)
