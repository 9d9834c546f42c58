"""How series are sampled: regularly, with jitter, with gaps, or at no regular times at all.

Notation   r: steps in units of the median step, of all series together
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamperti._text import counted
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

    def __str__(self) -> str:
        text = {
            "regular": "regular",
            "jittered": f"jittered by {self.jitter:.2%}",
            "gaps": f"regular but for {counted(len(self.gaps), 'gap')}",
            "irregular": f"irregular (sd of the steps {self.jitter:.0%})",
        }[self.kind]
        return f"{text}, step {self.dt:g}"


def describe_sampling(series: Sequence[Series]) -> Sampling:
    """The sampling of all series together."""
    steps = np.concatenate([s.steps for s in series])
    dt = float(np.median(steps))
    r = steps / dt
    usual = r <= _GAP
    jitter = float(np.std(r[usual]))
    if jitter > _IRREGULAR:
        return Sampling("irregular", dt, float(np.std(r)), ())
    gaps = tuple(gap for i, one in enumerate(series) for gap in _gaps(one, i, dt))
    if gaps:
        return Sampling("gaps", dt, jitter, gaps)
    regular = all(one.is_regular for one in series) and jitter < 1e-6
    return Sampling("regular" if regular else "jittered", dt, jitter, ())


def _gaps(series: Series, index: int, dt: float) -> list[Gap]:
    rows = np.flatnonzero(series.steps > _GAP * dt)
    times = series.times
    return [
        Gap(index, int(k), float(times[k]), float(times[k + 1]), max(round((times[k + 1] - times[k]) / dt) - 1, 1))
        for k in rows
    ]
