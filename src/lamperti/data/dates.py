"""Times as people read them: dates where the data had dates, numbers elsewhere."""

from datetime import UTC, datetime

import numpy as np

from lamperti._typing import Float

DATES = "s since 1970-01-01 UTC"  # the unit of times that were dates
_MIDNIGHT = " 00:00:00 UTC"
_NANOSECONDS = 2**63 / 1e9 - 1  # from 1970, in seconds: as far as pandas' and xarray's usual kind of date reaches


def moment(time: float, unit: str) -> str:
    """One time in words.

    >>> moment(0.0, DATES), moment(0.25, DATES), moment(1821.0, "a")
    ('1970-01-01 00:00:00 UTC', '1970-01-01 00:00:00.25 UTC', '1821')
    """
    if unit == DATES:
        try:
            stamp = datetime.fromtimestamp(time, UTC)
            fraction = f".{stamp.microsecond:06d}".rstrip("0").rstrip(".")
            return f"{stamp:%Y-%m-%d %H:%M:%S}{fraction} UTC"
        except (ValueError, OverflowError, OSError):  # beyond the years that a date can have
            pass
    return f"{time:.10g}"


def as_dates(times: Float[np.ndarray, " T"], unit: str) -> np.ndarray:
    """Times as datetime64 (UTC) where they are dates; a float holds no more of them than microseconds."""
    if unit != DATES:
        return times
    stamps = np.round(times * 1e6).astype("datetime64[us]")
    return stamps.astype("datetime64[ns]") if np.abs(times).max(initial=0.0) < _NANOSECONDS else stamps


def span_text(times: Float[np.ndarray, " T"], unit: str) -> str:
    """From the first time to the last; of days, months and years, the dates alone.

    >>> span_text(np.array([0.0, 86400.0]), DATES), span_text(np.array([0.5, 2.0]), "ka")
    ('1970-01-01 to 1970-01-02', '0.5 to 2 ka')
    """
    ends = [moment(float(t), unit) for t in (times[0], times[-1])]
    if unit == DATES and all(end.endswith(_MIDNIGHT) for end in ends):
        ends = [end.removesuffix(_MIDNIGHT) for end in ends]
    return " to ".join(ends) + (f" {unit}" if unit and unit != DATES else "")
