"""What may be done to data on request: put in order, merge equal times, cut at gaps, leave out constant channels.

Each repair comes back as a sentence; it is kept with the series.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lamperti._errors import SeriesError
from lamperti._text import counted
from lamperti._typing import Bool, Float
from lamperti.data.series import Series


class Samples(NamedTuple):
    """Values of one series, what was observed of them, and their times."""

    values: Float[np.ndarray, "T P"]
    observed: Bool[np.ndarray, "T P"]
    times: Float[np.ndarray, " T"]


def in_order(samples: Samples, *, sort: bool, duplicates: str) -> tuple[Samples, tuple[str, ...]]:
    """The samples in order of time, and with one sample a time, as far as the options ask for it."""
    repairs: list[str] = []
    if not np.isfinite(samples.times).all():
        return samples, ()  # what is wrong with them is said when the series is made
    if sort and (np.diff(samples.times) < 0).any():
        order = np.argsort(samples.times, kind="stable")
        moved = int(np.sum(order != np.arange(len(order))))
        samples = Samples(*(part[order] for part in samples))
        repairs.append(f"rows were sorted by time ({moved} of {len(order)} moved)")
    if duplicates != "refuse" and (np.diff(samples.times) == 0).any():
        n_rows = len(samples.times)
        samples = _merged(samples, duplicates)
        repairs.append(f"{n_rows - len(samples.values)} rows with a time that came before were merged ({duplicates})")
    return samples, tuple(repairs)


def _merged(samples: Samples, rule: str) -> Samples:
    """Runs of equal times as one sample each."""
    starts = np.flatnonzero(np.diff(samples.times, prepend=-np.inf) != 0)
    times = samples.times[starts]
    if rule != "mean":
        rows = starts if rule == "first" else np.append(starts[1:], len(samples.values)) - 1
        return Samples(samples.values[rows], samples.observed[rows], times)
    seen = samples.observed & ~np.isnan(samples.values)
    counts = np.add.reduceat(seen, starts, axis=0, dtype=float)
    # Divided before they are added, so that two values near the largest float have a mean.
    shares = np.where(seen, samples.values, 0.0) / np.repeat(
        np.maximum(counts, 1.0), np.diff(np.append(starts, len(seen))), axis=0
    )
    values = np.where(counts > 0, np.add.reduceat(shares, starts, axis=0), np.nan)
    return Samples(values, np.logical_or.reduceat(samples.observed, starts, axis=0), times)


def split_at_gaps(series: Series, factor: float) -> list[Series]:
    """The parts of a series between steps longer than ``factor`` median steps; lone samples are left out."""
    cuts = np.flatnonzero(series.steps > factor * series.dt) + 1
    if not cuts.size:
        return [series]
    edges = [0, *cuts.tolist(), series.length]
    parts = [series[a:b] for a, b in pairwise(edges)]
    kept = [part for part in parts if part.length > 1 and part.mask.any(axis=0).all()]
    if not kept:
        raise SeriesError(f"nothing is left between the {len(cuts)} gaps. Pass a larger split_gaps.")
    lost = sum(part.length for part in parts) - sum(part.length for part in kept)
    note = f"cut at {counted(len(cuts), 'gap')} longer than {factor:g} median steps"
    note += f"; {lost} samples between gaps were left out, too few to use" if lost else ""
    return [
        part._replace(label=f"{part.label}/{i}" if part.label else str(i), repairs=(*part.repairs, note))
        for i, part in enumerate(kept)
    ]


def drop_constant(series: Sequence[Series]) -> list[Series]:
    """The series without channels that have one value in all of them."""
    names = series[0].names
    pooled = [np.concatenate([s.values[s.mask[:, p], p] for s in series]) for p in range(len(names))]
    kept = tuple(name for name, values in zip(names, pooled, strict=True) if values.min() != values.max())
    if kept == names:
        return list(series)
    if not kept:
        raise SeriesError(f"all columns are constant ({', '.join(names)}), so none is left.")
    lost = ", ".join(repr(name) for name in names if name not in kept)
    return [s.select(kept)._replace(repairs=(*s.repairs, f"constant column {lost} was left out")) for s in series]
