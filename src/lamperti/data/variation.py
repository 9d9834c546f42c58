"""Whether a channel varies enough to be learned from."""

import warnings

import numpy as np

from lamperti._errors import LampertiWarning, SeriesError

_NEARLY_CONSTANT = 1e-6


def check_varies(values: np.ndarray, name: str) -> None:
    """Refuse a channel that is constant or has no value; warn of one whose digits would be lost."""
    if not values.size:
        raise SeriesError(f"column {name!r} has no observed value at all. Leave it out.")
    if values.min() == values.max():
        found = f"{values[0]:g} in all {values.size} observed samples"
        raise SeriesError(f"column {name!r} is constant ({found}). Leave it out, or read with drop_constant=True.")
    largest = np.abs(values).max()
    if largest < np.finfo(np.float64).tiny:
        warnings.warn(
            f"column {name!r} holds values no larger than {largest:.3g}, which floats keep with few digits or "
            "none (underflow). Change its unit.",
            LampertiWarning,
            stacklevel=4,
        )
        return
    spread = np.std(values / largest)  # relative, so that neither 1e300 nor 1e-300 leaves the range of a float
    if spread < _NEARLY_CONSTANT:
        warnings.warn(
            f"column {name!r} is nearly constant: its sd is {spread * largest:.3g} around "
            f"{np.median(values / largest) * largest:.10g}. Digits of the signal may be lost, in float32 all of them; "
            "subtract the offset where it is recorded.",
            LampertiWarning,
            stacklevel=4,
        )
