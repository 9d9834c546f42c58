"""The data as it was recorded: the first figure of a report."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from lamperti.data.dates import DATES
from lamperti.data.series import Series
from lamperti.report._spec import FAINT, REAL, Spec, axis, layout, line, moments, numbers, text, with_unit

_SERIES, _CHANNELS = 5, 4
_POINTS = 1500  # of a curve, more than a screen has columns
_HEIGHT = 170  # pixels of a panel


def recordings(series: Sequence[Series]) -> Spec:
    """The first channels of the first series in time, a panel below the other; gaps stay open."""
    first = series[0]
    shown = list(range(min(first.n_channels, _CHANNELS)))
    traces, axes = [], {}
    for p in shown:
        number = p + 1 if p else ""
        for i, one in reversed(list(enumerate(series[:_SERIES]))):
            rows = thinned(one.values[:, p], _POINTS)
            colour, width = (REAL, 1.0) if i == 0 else (FAINT, 0.7)
            t, y = moments(one.times[rows], one.time_unit), numbers(one.values[rows, p])
            traces.append(line(t, y, "", colour, line={"width": width}, xaxis="x", yaxis=f"y{number}"))
        top = 1 - p / len(shown)
        room = [round(top - 0.88 / len(shown), 4), round(top, 4)]
        axes[f"yaxis{number}"] = axis(with_unit(text(first.names[p]), first.units[p]), domain=room)
    clock = with_unit("time", "UTC" if first.time_unit == DATES else first.time_unit)
    last = f"y{len(shown) if len(shown) > 1 else ''}"
    look = layout(xaxis=axis(clock, anchor=last), **axes, margin={"l": 60, "r": 16, "t": 10, "b": 46})
    return Spec("recordings", _caption(series, len(shown)), traces, look, 70 + _HEIGHT * len(shown))


def _caption(series: Sequence[Series], n_channels: int) -> str:
    which = "The series" if len(series) == 1 else f"The first of {len(series)} series (black)"
    if len(series) > 1:
        others = min(len(series), _SERIES) - 1
        which += f" and {others} more (grey)" if others > 1 else " and the other (grey)"
    left = series[0].n_channels - n_channels
    return f"{which} as recorded" + (f"; {left} more channels are not drawn." if left else ".")


def thinned(values: Float[np.ndarray, " T"], most: int) -> Int[np.ndarray, " K"]:
    """Rows that draw the same curve: of each stretch its lowest and its highest value, and one that is missing."""
    if len(values) <= 2 * most:
        return np.arange(len(values))
    rows = set()
    for stretch in np.array_split(np.arange(len(values)), most):
        seen = stretch[np.isfinite(values[stretch])]
        if len(seen):
            rows |= {int(seen[np.argmin(values[seen])]), int(seen[np.argmax(values[seen])])}
        if len(seen) < len(stretch):
            rows.add(int(stretch[~np.isfinite(values[stretch])][0]))
    return np.array(sorted(rows))
