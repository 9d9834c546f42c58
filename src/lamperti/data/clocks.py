"""What a scaler knows of dates, for a file: packed as plain values, checked one by one when read."""

import dataclasses
import math
from typing import Any

from lamperti.data.calendar_steps import LONGEST_STRIDE, RULES, CalendarSteps
from lamperti.data.dates import DATES
from lamperti.data.durations import SECONDS, unit_for
from lamperti.data.scaling import Scaler

_FURTHEST = 1e15  # seconds; beyond, a date is none


def pack_clock(scaler: Scaler) -> dict[str, Any]:
    """Calendar, unit of durations and last date of a scaler, as JSON has them."""
    calendar = None if scaler.calendar is None else dataclasses.asdict(scaler.calendar)
    return {"calendar": calendar, "duration_unit": scaler.duration_unit, "end": scaler.end}


def unpack_clock(content: Any, step: float, time_unit: str) -> dict[str, Any]:
    """The same as arguments of a `Scaler`; None, of files that have no clock, gives the unit that suits the step.

    Raises ValueError or TypeError for what cannot be."""
    if content is None:
        return {"duration_unit": unit_for(step) if time_unit == DATES and step > 0 else ""}
    end = content["end"]
    calendar = None if content["calendar"] is None else _calendar(dict(content["calendar"]))
    unit = content["duration_unit"]
    if end is not None and not (type(end) in (int, float) and abs(end) <= _FURTHEST):
        raise ValueError(f"{end!r} is no time")
    known = {calendar.unit} if calendar else {"", *SECONDS}
    if unit not in known:
        raise ValueError(f"{unit!r} is no unit of time")
    return {"calendar": calendar, "duration_unit": unit, "end": None if end is None else float(end)}


def _calendar(content: dict[str, Any]) -> CalendarSteps:
    whole = {name: content.pop(name) for name in ("months", "phase", "day")}
    rule, offset = content.pop("rule"), content.pop("offset")
    if content or any(type(value) is not int for value in whole.values()) or type(offset) not in (int, float):
        raise TypeError("a calendar has other parts")
    months, phase, day = whole.values()
    if rule not in (RULES if months else ("business days",)):
        raise ValueError(f"{rule!r} is no rule of a calendar")
    if not 0 <= months <= LONGEST_STRIDE or not 0 <= phase < max(months, 1) or not 1 <= day <= 31:
        raise ValueError(f"{whole} is no calendar")
    if not math.isfinite(offset) or abs(offset) > SECONDS["days"]:
        raise ValueError(f"{offset} is no time of day")
    return CalendarSteps(rule, months, phase, day, float(offset))
