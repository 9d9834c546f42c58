"""Dates written as whole numbers: 20240131 is the last of January, not twenty million."""

import numpy as np

_YEARS = (1800, 2200)
# Each format with the digits it has.
_FORMATS = {8: "%Y%m%d", 6: "%Y%m", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_LENGTHS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def calendar_format(numbers: np.ndarray) -> str | None:
    """How the dates that all these numbers seem to be are written; None where some are none.

    >>> calendar_format(np.array([20240131, 20240201])), calendar_format(np.array([20240131, 20240132]))
    ('%Y%m%d', None)
    """
    values = np.asarray(numbers)
    if len(values) < 2 or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return None
    if values.min() < 10**5 or values.max() >= 10**14:
        return None
    digits = len(str(int(values.min())))
    if digits not in _FORMATS or values.max() >= 10**digits:
        return None
    whole = values.astype(np.int64)
    year, rest = np.divmod(whole, 10 ** (digits - 4))
    if year.min() < _YEARS[0] or year.max() >= _YEARS[1]:
        return None
    if digits == 6:  # a count near 200001 may pass for months, but not from one year to the next
        return _FORMATS[6] if year.min() < year.max() and _within(rest, 1, 12) else None
    month, rest = np.divmod(rest, 10 ** (digits - 6))
    day, rest = np.divmod(rest, 10 ** (digits - 8))
    if not _within(month, 1, 12) or not _within(day, 1, _LENGTHS[month]):
        return None
    for left, most in zip(range(digits - 10, -1, -2), (23, 59, 59), strict=False):
        part, rest = np.divmod(rest, 10**left)
        if not _within(part, 0, most):
            return None
    return _FORMATS[digits]


def _within(values: np.ndarray, least: int, most: int | np.ndarray) -> bool:
    return bool(((values >= least) & (values <= most)).all())
