"""What `fit` says before it trains: the few suspicions that would spoil the result, the most serious first.

`check` lists everything; here a clean data set gives nothing, and each sentence says what to do.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from lamperti._errors import LampertiWarning
from lamperti.data.checking.problems import (
    Problem,
    channel_values,
    column_problems,
    far_values,
    law_problems,
    oversampling_problems,
    quantum,
    spread,
    step_problems,
)
from lamperti.data.series import Series

_MOST = 3  # warnings
_OURS = ("lamperti", "jaxtyping", "beartype")
_OF_THE_SD = 0.5  # that outliers make up
_FEW_LEVELS = 10
_FEW_TRANSITIONS = 100
_HEAVY = 8  # samples of which one would do
_CLOSELY = 100  # channels looked at
_SERIOUS = ("outliers", "time column", "steps", "trend", "short", "quantised", "oversampled")


def concerns(series: Sequence[Series]) -> list[Problem]:
    """At most three suspicions, the most serious first; none for clean data."""
    found = [*_of_channels(series), *column_problems(series), *step_problems(series), *_few(series)]
    clocks = {p.where for p in found if p.code == "time column"}
    found += [p for p in law_problems(series, _CLOSELY) if p.where not in clocks]
    unlike = [p for p in found if p.code in _SERIOUS and (p.where not in clocks or p.code == "time column")]
    return sorted(unlike, key=lambda p: _SERIOUS.index(p.code))[:_MOST]


def warn_of_concerns(series: Sequence[Series]) -> None:
    """Say them (`LampertiWarning`), one each, as of the user's own line."""
    for problem in concerns(series):
        place = f"column {problem.where!r}: " if problem.where else ""
        warnings.warn(f"{place}{problem.message}", LampertiWarning, stacklevel=_users_line())


def _users_line() -> int:
    """How many calls up the first frame lies that is not the library's, nor of what checks its types."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    return level


def _of_channels(series: Sequence[Series]) -> Iterator[Problem]:
    for p, name in enumerate(series[0].names[:_CLOSELY]):
        y = channel_values(series, p)
        x = np.concatenate(y)
        if len(x) < 2 or x.min() == x.max():
            continue
        yield from _outliers(name, x)
        yield from _few_levels(name, x)
        sd, middle = spread(x), np.median(x)
        if np.isfinite(sd) and sd > 0:
            scaled = [np.clip((s.values[:, p : p + 1] - middle) / sd, -10, 10) for s in series]
            yield from oversampling_problems(name, scaled, least=_HEAVY)


def _outliers(name: str, x: np.ndarray) -> Iterator[Problem]:
    far = far_values(x)
    share = 1 - spread(x[~far]) / spread(x) if far.any() else 0.0
    if share > _OF_THE_SD:
        values = "1 value makes" if far.sum() == 1 else f"{far.sum()} values make"
        text = f"{values} up {share:.1%} of the sd, the first {x[far][0]:.6g}, so that all others look alike to the "
        yield Problem("warning", "outliers", name, f"{text}model. Declare faults as missing.")


def _few_levels(name: str, x: np.ndarray) -> Iterator[Problem]:
    levels = np.unique(x)
    if quantum(x) is not None and len(levels) <= _FEW_LEVELS:
        what = "counts" if (x == np.round(x)).all() else "rounded values"
        text = f"{what} of only {len(levels)} different sizes are modelled as if they were continuous. "
        yield Problem("warning", "quantised", name, f"{text}Keep more digits, or add up over longer steps.")


def _few(series: Sequence[Series]) -> Iterator[Problem]:
    transitions = sum(s.length - 1 for s in series)
    if transitions < _FEW_TRANSITIONS:
        text = f"{transitions} transitions between samples are fewer than the model has parameters. Expect a vague "
        yield Problem("warning", "short", "", f"{text}model; give more series, or set latent_dim and n_inducing low.")
