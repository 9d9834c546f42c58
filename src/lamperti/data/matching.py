"""New data for a model that was trained on other data: the same channels, and on a scale that it knows."""

import warnings
from collections.abc import Sequence

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError
from lamperti.data._checks import as_names
from lamperti.data.durations import in_words, told
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series

_FAR, _OTHER_SCALE, _OTHER_STEP = 6.0, 6.0, 1.5
_STARVED = 0.005


def match_channels(series: Series, names: Sequence[str]) -> Series:
    """The series with the channels ``names``, in this order.

    Channels are matched by name, whatever their order. Only where one side has no names of its own (an array, whose
    channels are y, or y0, y1, ...) do they go by place. Anything else is refused.
    """
    names = tuple(names)
    if series.names == names:
        return series
    if set(series.names) == set(names):
        return series.select(names)
    unnamed = as_names(None, len(series.names)) == series.names or as_names(None, len(names)) == names
    if unnamed and len(series.names) == len(names):
        return series._replace(names=names)
    lacking = [name for name in names if name not in series.names]
    extra = [name for name in series.names if name not in names]
    text = f"the model was trained on {len(names)} channels ({', '.join(names)}); this series has {len(series.names)} "
    text += f"({', '.join(series.names)})"
    text += (
        f", without {', '.join(lacking)}" if lacking else f". Leave out {', '.join(extra)}, as in series.select(names)"
    )
    raise SeriesError(f"{text}.")


def warn_if_far(series: Series, scaler: Scaler) -> None:
    """Warn (`LampertiWarning`) of values or steps far from those that a scaler was made from."""
    with np.errstate(over="ignore"):
        z = scaler.values(series.values)
    for p, name in enumerate(series.names):
        seen = z[series.mask[:, p], p]
        if not seen.size:
            continue
        centre, spread = float(np.median(seen)), float(np.subtract(*np.percentile(seen, [90, 10]))) / 2.56
        if not abs(centre) < _FAR or spread > _OTHER_SCALE:
            _warn(
                f"column {name!r} is out of the range of training: its median lies {centre:.3g} sds from the training "
                f"mean, its spread is {spread:.3g} of the training sd. Same unit? Predictions there are guesses."
            )
    ratio = float(np.median(scaler.steps_of(series))) if series.length > 1 else 1.0
    if not 1 / _OTHER_STEP < ratio < _OTHER_STEP:
        _warn(
            f"the median step is {told(series.dt, series.time_unit)}, in training it was "
            f"{in_words(scaler.step, scaler.duration_unit)}. Same unit of time? The true steps are used."
        )


def warn_if_starved(least_ess: float) -> None:
    """Warn (`LampertiWarning`) when hardly a particle of the filter agreed with some sample of the context."""
    if least_ess < _STARVED:
        _warn(
            f"at some sample of the context only {least_ess:.2g} of the filter's particles agreed with the data: it "
            "does not move as the model learned, or has an outlier. Mask that sample, or raise n_particles."
        )


def _warn(text: str) -> None:
    warnings.warn(text, LampertiWarning, stacklevel=5)
