"""Conventions of climate and forecast files: what stands for missing, what is valid, how values are packed."""

import base64
import math
import warnings
from typing import Any

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError
from lamperti.data.formats.cf_time import counts_since, dates_since, why_no_dates
from lamperti.data.formats.decoding import Decoded
from lamperti.data.table import with_holes

_DEFAULT_FILL = 9.969209968386869e36  # what netCDF puts where nothing was written, float and double
_LIMITS = ("valid_range", "valid_min", "valid_max")


def why_left_out(variable: Decoded) -> str:
    """Why a variable cannot be read at all; "" where it can."""
    if variable.left_out or not counts_since(_unit(variable)):
        return variable.left_out
    return why_no_dates(_calendar(variable))


def decoded_values(variable: Decoded) -> tuple[np.ndarray, str]:
    """The values in their unit, NaN where missing, dates as datetime64; and the unit.

    Raises `SeriesError` where parts of a variable were never written and no mark tells them from data, and for
    attributes that cannot be understood.
    """
    name, unit = variable.name, _unit(variable)
    if variable.values.dtype.kind not in "iuf":
        return variable.values, unit
    values = _with_sign(variable)
    marks = _marks(variable, values.dtype)
    if variable.holes and not _is_marked(_as_stored(variable.fill, variable.values.dtype, values.dtype), marks):
        raise SeriesError(
            f"variable {name!r} has parts that were never written (missing chunks), where {variable.fill!r} "
            "would pass for data. Write it again in full; if it is there in full, write empty chunks too."
        )
    lost = np.zeros(values.shape, dtype=bool)
    for mark in marks:
        lost |= values == np.asarray(mark).astype(values.dtype)
    scale, offset = _number(variable, "scale_factor", 1.0), _number(variable, "add_offset", 0.0)
    if scale == 0.0:
        raise SeriesError(f"variable {name!r} has the attribute scale_factor {scale}, which unpacks nothing. Mend it.")
    packed = scale != 1.0 or offset != 0.0
    lost |= _invalid(variable, values, lost, packed)
    fill = np.asarray(_DEFAULT_FILL).astype(values.dtype) if values.dtype.kind == "f" else np.nan
    unwritten = (values == fill) & ~lost
    if unwritten.any():
        raise SeriesError(
            f"variable {name!r} holds {_DEFAULT_FILL:.6g}, which NetCDF puts where nothing was written, "
            f"{int(unwritten.sum())} times. Write it in full, or set its _FillValue."
        )
    if counts_since(unit):
        counted = values * scale + offset if packed else values
        return dates_since(name, counted, lost, unit, _calendar(variable)), ""
    if not (lost.any() or packed):
        return values, unit
    if values.dtype.kind in "iu" and not packed:
        return with_holes(values[~lost], lost), unit
    return np.where(lost, np.nan, values * scale + offset), unit


def _unit(variable: Decoded) -> str:
    unit = variable.attributes.get("units", "")
    return unit if isinstance(unit, str) else ""


def _calendar(variable: Decoded) -> str:
    return str(variable.attributes.get("calendar", "standard"))


def _with_sign(variable: Decoded) -> np.ndarray:
    """Integers as they are meant: formats without unsigned ones store them as signed, and say so."""
    values, said = variable.values, variable.attributes.get("_Unsigned")
    if said is None or values.dtype.kind == "f":
        return values
    word = str(said).strip().lower()
    if word not in ("true", "false"):
        raise SeriesError(
            f"variable {variable.name!r} has the attribute _Unsigned {said!r}, which is neither 'true' nor 'false'. "
            "Mend it."
        )
    kind = "u" if word == "true" else "i"
    return values.view(np.dtype(f"{values.dtype.byteorder}{kind}{values.dtype.itemsize}"))


def _as_stored(number: Any, stored: np.dtype, dtype: np.dtype) -> Any:
    """A whole number of an attribute as values hold it that are read with another sign: -1 is 255 among bytes."""
    if dtype.kind == stored.kind or not isinstance(number, int) or isinstance(number, bool):
        return number
    bits = 8 * dtype.itemsize
    if dtype.kind == "u" and -(2 ** (bits - 1)) <= number < 0:
        return number + 2**bits
    return number - 2**bits if dtype.kind == "i" and 2 ** (bits - 1) <= number < 2**bits else number


def _invalid(variable: Decoded, values: np.ndarray, lost: np.ndarray, packed: bool) -> np.ndarray:
    """True where values lie outside the range that is declared valid; told aloud."""
    name, attributes = variable.name, variable.attributes
    if not any(key in attributes for key in _LIMITS):
        return np.zeros(values.shape, dtype=bool)
    stored, meant = variable.values.dtype, values.dtype
    if (packing := variable.packing) is not None:  # limits are of the packed values
        stored, meant, packed = packing.stored, packing.meant, packing.scales
        values = (values - packing.offset) / packing.scale
        values = np.rint(values) if meant.kind in "iu" else values.astype(meant)
    both = attributes.get("valid_range", [None, None])
    if not isinstance(both, list) or len(both) != 2:
        raise SeriesError(
            f"variable {name!r} has the attribute valid_range {both!r}, which is not two numbers. Mend it."
        )
    low, high = -math.inf, math.inf
    limits = (
        ("valid_range", both[0], True),
        ("valid_range", both[1], False),
        ("valid_min", attributes.get("valid_min"), True),
        ("valid_max", attributes.get("valid_max"), False),
    )
    for key, given, is_low in limits:
        if given is None:
            continue
        limit = _as_number(given)
        if limit is None or math.isnan(limit):
            raise SeriesError(f"variable {name!r} has the attribute {key} {given!r}, which is not a number. Mend it.")
        if packed and meant.kind in "iu" and isinstance(limit, float):
            raise SeriesError(
                f"variable {name!r} is packed into whole numbers, and its {key} {limit} is none: is it of the "
                "packed or the unpacked values? Write it as a packed, whole number."
            )
        limit = _as_stored(limit, stored, meant)
        low, high = (max(low, limit), high) if is_low else (low, min(high, limit))
    if low > high:
        raise SeriesError(
            f"variable {name!r} has a valid range from {low:g} to {high:g}, which holds nothing. Mend it."
        )
    outside = ((values < low) | (values > high)) & ~lost
    if outside.any():
        warnings.warn(
            f"{int(outside.sum())} values of {name!r} lie outside its valid range, {low:g} to {high:g}; they count as "
            "missing.",
            LampertiWarning,
            stacklevel=2,
        )
    return outside


def _marks(variable: Decoded, dtype: np.dtype) -> list[float]:
    """The numbers that mean missing, as the attributes declare them."""
    found = []
    for key in ("_FillValue", "missing_value"):
        declared = variable.attributes.get(key)
        for given in declared if isinstance(declared, list) else [declared]:
            if given is None:
                continue
            mark = _as_number(given)
            if mark is None:
                raise SeriesError(
                    f"variable {variable.name!r} has the attribute {key} {given!r}, which is not a number. Mend it."
                )
            mark = _as_stored(mark, variable.values.dtype, dtype)
            if _fits(mark, dtype):
                found.append(mark)
    return found


def _as_number(given: Any) -> int | float | None:
    """A number of an attribute, which some write as text; None where it is none."""
    if isinstance(given, (int, float)):
        return given
    if not isinstance(given, str):
        return None
    for kind in (int, float):
        try:
            return kind(given)
        except ValueError:
            continue
    return _from_base64(given)


def _from_base64(text: str) -> float | None:
    """How Zarr 3 stores of xarray write a float: the bytes of a double in base 64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return float(np.frombuffer(raw, dtype="<f8")[0]) if len(raw) == 8 else None


def _fits(mark: float, dtype: np.dtype) -> bool:
    if dtype.kind == "f":
        return True
    return mark == int(mark) and np.iinfo(dtype).min <= mark <= np.iinfo(dtype).max if np.isfinite(mark) else False


def _is_marked(fill: Any, marks: list[float]) -> bool:
    if isinstance(fill, str):
        fill = {"NaN": np.nan, "nan": np.nan}.get(fill)
    if not isinstance(fill, (int, float)):
        return False
    return fill != fill or any(np.isclose(fill, mark, rtol=1e-6, atol=0.0) for mark in marks)


def _number(variable: Decoded, key: str, default: float) -> float:
    given = variable.attributes.get(key, default)
    number = _as_number(given)
    if number is None or not math.isfinite(number):
        raise SeriesError(
            f"variable {variable.name!r} has the attribute {key} {given!r}, which is not a number. Mend it."
        )
    return float(number)
