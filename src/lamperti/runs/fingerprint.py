"""What tells one data set from another, and one installation from another."""

import hashlib
import platform
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from lamperti._errors import LampertiWarning, RunError
from lamperti.data.series import Series

_PACKAGES = ("jax", "jaxlib", "numpy", "equinox", "optax")


def fingerprint(series: Sequence[Series]) -> dict[str, Any]:
    """Names, lengths, and a checksum of values, times and masks."""
    digest = hashlib.sha256()
    for one in series:
        digest.update(repr((one.names, one.values.shape)).encode())
        # What was not observed is NaN in any of its bit patterns, so it is left out.
        for array in (np.where(one.mask, one.values, 0.0), one.times, one.mask):
            digest.update(np.ascontiguousarray(array).tobytes())
    return {
        "names": list(series[0].names),
        "units": list(series[0].units),
        "lengths": [one.length for one in series],
        "sha256": digest.hexdigest(),
        "repairs": list(dict.fromkeys(text for one in series for text in one.repairs)),
    }


def check_same_data(series: Sequence[Series], expected: Mapping[str, Any]) -> None:
    """Raise `RunError`, saying what differs, unless the series are those that ``expected`` was made from."""
    found = fingerprint(series)
    if found["sha256"] == expected["sha256"]:
        return
    if found["names"] != expected["names"]:
        what = f"its channels are {', '.join(found['names'])}, those of the run {', '.join(expected['names'])}"
    elif found["lengths"] != expected["lengths"]:
        what = (
            f"it has {len(found['lengths'])} series of {sum(found['lengths'])} samples in all, the run has "
            f"{len(expected['lengths'])} of {sum(expected['lengths'])}"
        )
    else:
        what = "its values or times differ"
    raise RunError(
        f"this is not the data that the run was started with: {what}. Give the same data, or start a new run."
    )


def versions() -> dict[str, str]:
    """Of Python and of the libraries that decide what numbers come out."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # put on the path without being installed
            found[name] = "unknown"
    return found


def warn_of_versions(before: Mapping[str, str]) -> None:
    """Tell of the versions that are not those of before."""
    changed = [f"{name} {old} is now {new}" for name, new in versions().items() if (old := before.get(name)) != new]
    if changed:
        warnings.warn(
            f"the run was started with other versions ({', '.join(changed)}): it goes on, but not bit by bit as it "
            "would have.",
            LampertiWarning,
            stacklevel=5,
        )
