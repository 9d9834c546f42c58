"""What a scaler knows beside means and sds, for a file: packed as plain values, checked one by one when read."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamperti.data.calendar_steps import LONGEST_STRIDE, RULES, CalendarSteps
from lamperti.data.dates import DATES
from lamperti.data.durations import SECONDS, unit_for
from lamperti.data.scaling import Scaler

_FURTHEST = 1e15  # seconds; beyond, a date is none


def pack_scaler(scaler: Scaler) -> dict[str, Any]:
    """Calendar, unit of durations and last date of a scaler, and whose logarithm is modelled, as JSON has them."""
    calendar = None if scaler.calendar is None else dataclasses.asdict(scaler.calendar)
    logs = {"logged": list(scaler.logged), "sds": None if scaler.sds is None else scaler.sds.tolist()}
    return {"calendar": calendar, "duration_unit": scaler.duration_unit, "end": scaler.end, **logs}


def unpack_scaler(content: Any, step: float, time_unit: str, names: Sequence[str]) -> dict[str, Any]:
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
    return {"calendar": calendar, "duration_unit": unit, "end": None if end is None else float(end)} | _logs(
        content.get("logged", []), content.get("sds"), names
    )


def _logs(logged: Any, sds: Any, names: Sequence[str]) -> dict[str, Any]:
    """Channels whose logarithm is modelled, and the sds of all; files of before format 6 have none."""
    if not logged:
        return {}
    if [one or name for one, name in zip(logged, names, strict=True)] != list(names) or not any(logged):
        raise ValueError(f"the channels whose logarithm is modelled, {logged}, are not those of the model")
    if len(sds) != len(names) or not all(type(sd) is float and math.isfinite(sd) and sd > 0 for sd in sds):
        raise ValueError(f"{sds} are no sds")
    return {"logged": tuple(logged), "sds": np.array(sds)}


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
