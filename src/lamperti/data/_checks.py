"""Turns what users pass as values, times, masks and names into clean arrays, or says what is wrong where."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError
from lamperti._numbers import is_real, is_whole
from lamperti._typing import Bool, Float
from lamperti.data.dates import DATES, moment

EXACT_INTEGER = 2**53  # the largest up to which a float holds every integer
_SORT = "Sort the rows, or read them with sort=True."
_MERGE = 'Drop or merge the duplicate, or read with duplicates="first", "last" or "mean".'
_FEW = 10  # rows, of which most may share a time by chance
_CUT = ((86400.0, "hours"), (60.0, "seconds"), (1.0, "fractions of a second"))  # of dates


def as_array(values: Any, what: str = "values") -> np.ndarray:
    """An array of whatever kind; what NumPy would misread or complain of in its own words is refused."""
    hidden = _masked(values)
    if hidden:
        # NumPy would hand out the numbers under the mask as if they had been observed.
        raise SeriesError(
            f"{what} is a masked array with {hidden} cells masked. Pass values.astype(float).filled(np.nan) with "
            'missing="nan", or lamperti.Series(values.data, mask=~values.mask).'
        )
    try:
        return np.asarray(values)
    except ValueError as error:  # NumPy's complaint about rows of unequal length
        raise SeriesError(
            f"{what} has rows of unequal length. Pass series of different lengths as a list of Series."
        ) from error


def _masked(values: Any) -> int:
    """How many cells are masked, in an array or in those of a list."""
    if isinstance(values, (list, tuple)):
        return sum(_masked(item) for item in values if isinstance(item, (list, tuple, np.ndarray)))
    return int(np.ma.count_masked(values)) if isinstance(values, np.ma.MaskedArray) else 0


def as_float_array(values: Any, what: str = "values") -> np.ndarray:
    """Real numbers as a fresh float64 array; anything else is refused with its first bad cell."""
    array = as_array(values, what)
    if array.dtype.kind not in "iuf":
        raise SeriesError(_bad_dtype(array, what))
    if array.dtype.kind in "iu":
        warn_of_large_integers(what, largest(array))
    with np.errstate(over="ignore"):  # a long double too large for float64 becomes inf, refused by the caller
        return np.array(array, dtype=np.float64)


def warn_of_large_integers(what: str, magnitude: int) -> None:
    """Warn (`LampertiWarning`) where an integer of this magnitude would lose digits as a float."""
    if magnitude > EXACT_INTEGER:
        warnings.warn(
            f"{what} holds integers above 2**53 (largest magnitude {magnitude}); as float64 they lose "
            "their last digits. Subtract an offset first if those digits matter.",
            LampertiWarning,
            stacklevel=5,
        )


def largest(array: np.ndarray) -> int:
    """The largest magnitude among integers; 0 where there are none."""
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


def _bad_dtype(array: np.ndarray, what: str) -> str:
    kinds = {"b": "booleans", "c": "complex numbers", "M": "dates", "m": "time differences"}
    kind = kinds.get(array.dtype.kind)
    if kind is not None:
        cell = f"; the first is {array.flat[0]}" if array.size else ""
        return f"{what} must be real numbers, not {kind}{cell}. Convert it to float, e.g. with .astype(float)."
    if array.ndim == 0 and array.dtype.kind == "O":
        return (
            f"{what} must be real numbers or series; got a {type(array.item()).__name__}. Pass an array, a Series, or "
            "a list of them."
        )
    for index, cell in np.ndenumerate(array):
        if not is_real(cell):
            return f"{what} must be real numbers; {_place(index)} holds {cell!r}. Replace or drop that cell."
    return f"{what} has dtype {array.dtype}, which may hide text. Convert it with .astype(float)."


def _place(index: tuple[int, ...]) -> str:
    if len(index) == 2:
        return f"row {index[0]}, column {index[1]}"
    return f"row {index[0]}" if len(index) == 1 else f"the cell at {index}"


def as_matrix(values: Any) -> Float[np.ndarray, "T P"]:
    """[T] or [T, P] as [T, P]."""
    array = as_float_array(values)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise SeriesError(
            f"values of one series must be [T] or [T, P]; got shape {array.shape}. Pass several series as a list."
        )
    if array.shape[1] == 0:
        raise SeriesError("values has no columns. Pass at least one channel.")
    if array.shape[0] < 2:
        raise SeriesError(f"a series needs at least 2 samples; got {array.shape[0]}.")
    return array


def as_texts(given: Any, what: str) -> tuple[Any, ...]:
    """One text or several as a tuple; what holds none is refused."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, (set, frozenset)):
        raise SeriesError(f"{what} is a set, which has no order. Give a list, in the order of the channels.")
    if not isinstance(given, Iterable):
        raise SeriesError(f"{what} must be text, or a list with one a channel; got {given!r}.")
    return tuple(given)


def as_names(names: Sequence[str] | str | None, n_channels: int) -> tuple[str, ...]:
    """Channel names: unique, not empty, one a channel; y, or y0, y1, ... when not given."""
    if names is None:
        return ("y",) if n_channels == 1 else tuple(f"y{i}" for i in range(n_channels))
    names = as_texts(names, "names")
    if len(names) != n_channels:
        raise SeriesError(f"names has {len(names)} entries for {n_channels} channels. Give one name a channel.")
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise SeriesError(f"channel {i} has the name {name!r}. Names must be text that is not blank.")
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if duplicates:
        raise SeriesError(f"channel names must differ; {', '.join(map(repr, duplicates))} comes twice. Rename one.")
    return names


def chosen(names: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the names that are known, as asked for."""
    wanted = as_texts(names, "names")
    if not wanted:
        raise SeriesError(f"no channel was named; the series has {', '.join(known)}. Name at least one.")
    as_names(wanted, len(wanted))
    there = set(known)
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise SeriesError(f"there is no channel {unknown[0]!r}; the series has {', '.join(known)}.")
    return wanted


def check_place(at: Any) -> None:
    """Refuse what is no place to split a series at."""
    if not is_whole(at):
        raise SeriesError(f"a series is split at a whole number of samples, such as 100 or -20; got {at!r}.")


def as_units(units: Mapping[str, str] | Sequence[str] | str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """One unit a channel, "" where unknown; a mapping from names may leave some out."""
    if units is None:
        return ("",) * len(names)
    if isinstance(units, Mapping):
        unknown = [name for name in units if name not in names]
        if unknown:
            raise SeriesError(f"units names a channel {unknown[0]!r}; the channels are {', '.join(names)}.")
        units = [units.get(name, "") for name in names]
    units = as_texts(units, "units")
    if len(units) != len(names) or not all(isinstance(unit, str) for unit in units):
        raise SeriesError(f"units must be one text a channel ({', '.join(names)}); got {units!r}.")
    return units


def as_mask(mask: Any, shape: tuple[int, int]) -> Bool[np.ndarray, "T P"]:
    """True where observed; [T] holds for all channels; None is observed everywhere, a cell that is hidden nowhere."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    array = mask.filled(False) if isinstance(mask, np.ma.MaskedArray) and mask.dtype == bool else np.asarray(mask)
    if array.dtype != bool:
        raise SeriesError(f"mask must be booleans (True where observed); got dtype {array.dtype}.")
    if array.shape == shape[:1]:
        array = np.broadcast_to(array[:, None], shape)
    if array.shape != shape:
        raise SeriesError(f"mask has shape {array.shape}, values {shape}. Give the same shape, or [{shape[0]}].")
    return array.copy()


def as_times(times: Any, dt: Any, length: int) -> Float[np.ndarray, " T"]:
    """Sampling times from either of ``times`` and ``dt``; samples 1 apart when neither is given."""
    if times is not None and dt is not None:
        raise SeriesError("both times and dt were given. Give times for irregular sampling, dt for regular, not both.")
    if times is None:
        step = _as_step(1.0 if dt is None else dt)
        if not np.isfinite((length - 1) * step):
            raise SeriesError(f"a dt of {step:g} is too large: {length} samples end beyond the largest number.")
        return np.arange(length) * step
    array = np.asarray(times)
    dated = array.dtype.kind == "M"
    array = seconds(array) if dated else as_float_array(times, "times")
    if array.shape != (length,):
        raise SeriesError(f"times has shape {array.shape} for {length} samples. Give one time a sample.")
    check_increase(as_finite(array), DATES if dated else "")
    return array


def as_finite(times: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
    """The times, none of which may be NaN or infinite."""
    if not np.isfinite(times).all():
        k = int(np.argmin(np.isfinite(times)))
        raise SeriesError(f"times must be finite; row {k} has {times[k]}. Drop that row or fill in its time.")
    return times


def check_increase(times: Float[np.ndarray, " T"], unit: str) -> None:
    """Refuse finite times that do not increase; where they are dates, they are told as dates."""
    steps = np.diff(times)
    if (steps > 0).all():
        return
    k = int(np.argmax(steps <= 0)) + 1
    this, last = (moment(t, unit) if unit == DATES else f"{t:.15g}" for t in (times[k], times[k - 1]))
    advice = _SORT if steps[k - 1] < 0 else _shared(times, steps == 0, unit) or _MERGE
    raise SeriesError(f"times must increase; row {k} has {this} after {last}. {advice}")


def _shared(times: Float[np.ndarray, " T"], equal: Bool[np.ndarray, " K"], unit: str) -> str:
    """What to do where most rows share their time with another: such times were cut short, no row came twice."""
    sharing = int((np.append(equal, False) | np.append(False, equal)).sum())
    if sharing <= len(times) / 2 or len(times) < _FEW:
        return ""
    cut = _CUT if unit == DATES else ()
    lost = next((what for step, what in cut if not (times % step).any()), "last digits")
    return (
        f"{sharing} of {len(times)} rows share their time with another: the times have lost their {lost}. Export them "
        "again, or give dt= instead of time=; if the rows are of several series, name the column that tells with id=."
    )


def _as_step(dt: Any) -> float:
    if not is_real(dt) or not np.isfinite(dt) or dt <= 0:
        raise SeriesError(f"dt must be a positive number; got {dt!r}.")
    return float(dt)


def seconds(stamps: np.ndarray) -> Float[np.ndarray, " T"]:
    """Dates (datetime64, in UTC) as seconds since 1970."""
    missing = np.isnat(stamps)
    if missing.any():
        raise SeriesError(f"row {int(np.argmax(missing))} has no time (NaT). Drop that row or fill in its time.")
    # Split in two so that stamps finer than a second keep their digits in integer arithmetic.
    whole = stamps.astype("datetime64[s]")
    return whole.astype(np.int64) + (stamps - whole) / np.timedelta64(1, "s")


def check_finite(
    values: Float[np.ndarray, "T P"], mask: Bool[np.ndarray, "T P"], names: tuple[str, ...], missing: str
) -> Bool[np.ndarray, "T P"]:
    """The mask with declared NaN taken out; infinities and undeclared NaN are refused."""
    if missing not in ("refuse", "nan"):
        raise SeriesError(f'missing must be "refuse" or "nan"; got {missing!r}.')
    infinite = np.isinf(values) & mask
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise SeriesError(
            f"values must be finite; row {row}, column {names[column]!r} holds {values[row, column]}. "
            "Drop that row, or mark the cell as missing with a mask."
        )
    lost = np.isnan(values) & mask
    if missing == "refuse" and lost.any():
        counts = ", ".join(f"{names[p]!r}: {n}" for p, n in enumerate(lost.sum(0)) if n)
        row, column = np.argwhere(lost)[0]
        raise SeriesError(
            f"values hold NaN that was not declared as missing (count by column: {counts}; "
            f'the first in row {row}, column {names[column]!r}). Pass missing="nan", or a mask.'
        )
    mask = mask & ~lost
    empty = [repr(name) for p, name in enumerate(names) if not mask[:, p].any()]
    if empty:
        raise SeriesError(f"column {', '.join(empty)} has no observed value at all. Leave it out.")
    return mask
