"""How series are sampled: regularly, with jitter, with gaps, or at no regular times at all.

Notation   r: steps in units of the median step, of all series together; of dates that keep to a calendar, its steps
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._text import counted
from lamperti._typing import Float
from lamperti.data.calendar_steps import find_calendar
from lamperti.data.dates import DATES
from lamperti.data.durations import duration_text, in_words
from lamperti.data.series import Series

_GAP, _IRREGULAR = 1.5, 0.2


@dataclass(frozen=True)
class Gap:
    """A step much longer than the others: after which row of which series, when, and how many samples it lacks."""

    series: int
    row: int
    start: float
    end: float
    lacking: int


@dataclass(frozen=True)
class Sampling:
    """The sampling of a set of series; ``jitter`` is the relative sd of the steps that are no gaps."""

    kind: str  # "regular", "jittered", "gaps" or "irregular"
    dt: float
    jitter: float
    gaps: tuple[Gap, ...]
    step: str = ""
    """``dt`` in words, with its unit."""

    def __str__(self) -> str:
        text = {
            "regular": "regular",
            "jittered": f"jittered by {self.jitter:.2%}",
            "gaps": f"regular but for {counted(len(self.gaps), 'gap')}",
            "irregular": f"irregular (sd of the steps {self.jitter:.0%})",
        }[self.kind]
        return f"{text}, step {self.step}"


def describe_sampling(series: Sequence[Series]) -> Sampling:
    """The sampling of all series together."""
    unit = series[0].time_unit
    dt = float(np.median(np.concatenate([s.steps for s in series])))
    grid = find_calendar([s.times for s in series]) if unit == DATES else None
    step = duration_text(dt) if unit == DATES else in_words(dt, unit, digits=6)
    step = in_words(grid.step, grid.unit) if grid else step
    each = [np.diff(grid.positions(s.times)) if grid else s.steps / dt for s in series]
    r = np.concatenate(each)
    usual = r <= _GAP
    jitter = float(np.std(r[usual]))
    if jitter > _IRREGULAR:
        return Sampling("irregular", dt, float(np.std(r)), (), step)
    gaps = tuple(gap for i, (one, steps) in enumerate(zip(series, each, strict=True)) for gap in _gaps(one, steps, i))
    if gaps:
        return Sampling("gaps", dt, jitter, gaps, step)
    regular = all(one.is_regular for one in series) and (jitter < 1e-6 or grid is not None)
    return Sampling("regular" if regular else "jittered", dt, jitter, (), step)


def _gaps(series: Series, steps: Float[np.ndarray, " K"], index: int) -> list[Gap]:
    rows = np.flatnonzero(steps > _GAP)
    times = series.times
    return [Gap(index, int(k), float(times[k]), float(times[k + 1]), max(round(steps[k]) - 1, 1)) for k in rows]
