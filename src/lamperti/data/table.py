"""The form that everything takes between a source of data and the series made of it: named columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lamperti._errors import SeriesError
from lamperti.data._checks import EXACT_INTEGER, as_names, largest


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length. A column holds numbers, booleans, dates (datetime64 in UTC), or cells as objects:
    text as it was found, None where there was nothing."""

    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)
    categories: frozenset[str] = frozenset()  # columns whose text comes from a declared list
    times: np.ndarray | None = None  # where the source itself says what its rows are: an index, a coordinate
    groups: np.ndarray | None = None  # the series that each row belongs to, where the source itself says so
    utc: frozenset[str] = frozenset()  # columns ("index": times) of dates that came with their offset from UTC
    settled: bool = False  # times and groups are what the options time and id asked for
    named: bool = True  # False when the names were made up here
    dt: float | None = None  # a step that the source itself states
    absent: Mapping[str, np.ndarray] = field(default_factory=dict)  # True where the source has no such sample
    repairs: tuple[str, ...] = ()
    first_line: int | None = None  # of a text file: the line of row 0, if each row is a line

    @property
    def length(self) -> int:
        return len(next(iter(self.columns.values())))


def with_holes(integers: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """A column of integers of which some were lost: floats with NaN there, or objects with None where floats would
    not hold the integers exactly, so that the gate sees what it is about to round.

    ``integers`` are those that are there, in order; ``lost`` is True where there is none.
    """
    exact = largest(integers) <= EXACT_INTEGER
    cells = np.full(lost.shape, np.nan if exact else None, dtype=float if exact else object)
    cells[~lost] = integers if exact else integers.astype(object)
    return cells


def array_table(array: np.ndarray, axes: str | None) -> Table:
    """A bare array as a table; ``axes`` says what its axes are (R series, T times, P channels)."""
    usual = {1: "T", 2: "RT", 3: "RTP"}
    if array.ndim not in usual:
        raise SeriesError(f"data must be [T], [R, T] or [R, T, P]; got shape {array.shape}.")
    axes = axes or usual[array.ndim]
    if len(axes) != array.ndim:
        raise SeriesError(f"axes={axes!r} names {len(axes)} axes, but the array has shape {array.shape}.")
    if 0 in array.shape:
        raise SeriesError(f"the array is empty: its shape is {array.shape}.")
    if "R" not in axes:
        array = array[None]
    if "P" not in axes:
        array = array[..., None]
    n_series, length, n_channels = array.shape
    flat = array.reshape(n_series * length, n_channels)
    columns = {name: flat[:, p] for p, name in enumerate(as_names(None, n_channels))}
    groups = np.repeat(np.arange(n_series), length) if "R" in axes else None
    return Table(columns, groups=groups, named=False)
