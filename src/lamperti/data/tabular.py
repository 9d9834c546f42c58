"""Results as tables of pandas and datasets of xarray, which are loaded when asked for."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lamperti._errors import DependencyError
from lamperti._typing import Float
from lamperti.data.dates import DATES, as_dates

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Columns = dict[str, np.ndarray]


def coordinates(x: Float[np.ndarray, "T D"]) -> Columns:
    return {f"x{d + 1}": values for d, values in enumerate(x.T)}


def dated(columns: Columns, time_unit: str) -> Columns:
    return columns | {"time": as_dates(columns["time"], time_unit)}


def labels_of(time_unit: str, units: dict[str, str] | None = None) -> dict[str, Any]:
    """What there is to say of units; dates need none."""
    labels = {"time_unit": "" if time_unit == DATES else time_unit}
    known = {name: unit for name, unit in (units or {}).items() if unit}
    return {name: value for name, value in {**labels, "units": known}.items() if value}


def frame_of(columns: Columns, index: str | list[str], labels: dict[str, Any]) -> "pd.DataFrame":
    import pandas as pd  # half a second, and only for those who ask

    frame = pd.DataFrame(columns).set_index(index)
    frame.attrs |= labels
    return frame


def paths_dataset(member: str, result: Any) -> "xr.Dataset":
    states = [f"x{d + 1}" for d in range(result.states.shape[-1])]
    times = as_dates(result.times, result.time_unit)
    # A coordinate, because files of xarray take no tables as attributes.
    units = {"unit": ("channel", list(result.units))} if any(result.units) else {}
    return load_xarray().Dataset(
        {
            "samples": ((member, "time", "channel"), result.samples),
            "states": ((member, "time", "state"), result.states),
        },
        {"time": times, "channel": list(result.names), "state": states, **units},
        labels_of(result.time_unit),
    )


def load_xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise DependencyError("to_xarray needs xarray, which is not installed. pip install xarray") from None
    return xarray
