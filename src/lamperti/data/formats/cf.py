"""Conventions of climate and forecast files: what stands for missing, how values are packed, how time is counted."""

import base64
import re
from typing import Any

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data.formats.decoding import Decoded
from lamperti.data.table import with_holes

_SINCE = re.compile(r"^\s*(\w+)\s+since\s+(.+?)\s*$", re.IGNORECASE)
_UNITS = {
    "microseconds": 1e-6, "microsecond": 1e-6, "us": 1e-6,
    "milliseconds": 1e-3, "millisecond": 1e-3, "ms": 1e-3, "msec": 1e-3,
    "seconds": 1.0, "second": 1.0, "sec": 1.0, "secs": 1.0, "s": 1.0,
    "minutes": 60.0, "minute": 60.0, "min": 60.0, "mins": 60.0,
    "hours": 3600.0, "hour": 3600.0, "hr": 3600.0, "hrs": 3600.0, "h": 3600.0,
    "days": 86400.0, "day": 86400.0, "d": 86400.0,
}  # fmt: skip
_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_DEFAULT_FILL = 9.969209968386869e36  # what netCDF puts where nothing was written, float and double


def decoded_values(variable: Decoded) -> tuple[np.ndarray, str]:
    """The values in their unit, NaN where missing, dates as datetime64; and the unit.

    Raises `SeriesError` where parts of a variable were never written and no mark tells them from data.
    """
    values, attributes = variable.values, variable.attributes
    marks = _marks(values, attributes)
    if variable.holes and not _is_marked(variable.fill, marks):
        raise SeriesError(
            f"variable {variable.name!r} has parts that were never written (missing chunks), where {variable.fill!r} "
            "would pass for data. Write it again in full; if it is there in full, write empty chunks too."
        )
    unwritten = values == np.asarray(_DEFAULT_FILL).astype(values.dtype) if values.dtype.kind == "f" else None
    if unwritten is not None and unwritten.any() and not _is_marked(_DEFAULT_FILL, marks):
        raise SeriesError(
            f"variable {variable.name!r} holds {_DEFAULT_FILL:.6g}, which NetCDF puts where nothing was written, "
            f"{int(unwritten.sum())} times. Write it in full, or set its _FillValue."
        )
    lost = np.zeros(values.shape, dtype=bool)
    for mark in marks:
        lost |= values == np.asarray(mark).astype(values.dtype)
    unit = attributes.get("units", "")
    unit = unit if isinstance(unit, str) else ""
    since = _SINCE.match(unit)
    if since:
        return _dates(variable.name, values, lost, since, str(attributes.get("calendar", "standard"))), ""
    scale, offset = _number(attributes, "scale_factor", 1.0), _number(attributes, "add_offset", 0.0)
    if values.dtype.kind not in "iuf" or not (lost.any() or scale != 1.0 or offset != 0.0):
        return values, unit
    if values.dtype.kind in "iu" and scale == 1.0 and offset == 0.0:
        return with_holes(values[~lost], lost), unit
    return np.where(lost, np.nan, values * scale + offset), unit


def _marks(values: np.ndarray, attributes: dict[str, Any]) -> list[float]:
    """The numbers that mean missing, as the attributes declare them."""
    found = []
    for key in ("_FillValue", "missing_value"):
        declared = attributes.get(key)
        for mark in declared if isinstance(declared, list) else [declared]:
            if isinstance(mark, str) and values.dtype.kind == "f":
                mark = _from_base64(mark)
            if isinstance(mark, (int, float)) and values.dtype.kind in "iuf" and _fits(mark, values.dtype):
                found.append(mark)
    return found


def _from_base64(text: str) -> float | None:
    """How Zarr 3 stores of xarray write a float: the bytes of a double in base 64, or its name."""
    try:
        raw = base64.standard_b64decode(text)
        return float(np.frombuffer(raw, dtype="<f8")[0]) if len(raw) == 8 else float(text)
    except ValueError:
        return None


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


def _number(attributes: dict[str, Any], key: str, default: float) -> float:
    value = attributes.get(key, default)
    return float(value) if isinstance(value, (int, float)) else default


def _dates(name: str, values: np.ndarray, lost: np.ndarray, since: re.Match, calendar: str) -> np.ndarray:
    unit, epoch = since.group(1).lower(), since.group(2)
    if unit not in _UNITS:
        raise SeriesError(f"variable {name!r} counts time in {unit!r}, whose length varies. Use days or seconds.")
    if calendar.lower() not in _CALENDARS:
        raise SeriesError(f"variable {name!r} uses the calendar {calendar!r}. Convert its times to numbers or dates.")
    try:
        start = pd.Timestamp(epoch)
    except ValueError:
        raise SeriesError(f"variable {name!r} counts time since {epoch!r}, which is not a date.") from None
    start = start.tz_convert("UTC").tz_localize(None) if start.tz is not None else start
    micro = np.where(lost, np.nan, values.astype(np.float64)) * (_UNITS[unit] * 1e6)
    if (np.abs(micro[np.isfinite(micro)]) > 2**62).any() or not np.isfinite(micro[~lost]).all():
        raise SeriesError(f"variable {name!r} holds times that are no dates since {epoch}.")
    steps = np.round(np.nan_to_num(micro)).astype("timedelta64[us]")
    return np.where(lost, np.datetime64("NaT"), start.to_datetime64().astype("datetime64[us]") + steps)
