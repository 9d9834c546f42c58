"""Objects of xarray: variables over named dimensions."""

from typing import Any

import numpy as np

from lamperti.data.cubes import Variable, cube_table
from lamperti.data.options import TIME_COLUMNS, ReadOptions
from lamperti.data.table import Table


def xarray_table(data: Any, options: ReadOptions) -> Table:
    """A DataArray or Dataset: time is a dimension, and so is id where there is one."""
    if hasattr(data, "data_vars"):
        variables = [_variable(str(name), item) for name, item in data.data_vars.items()]
    else:
        variables = [_variable(str(data.name or "y"), data)]
    coordinates = [
        _variable(str(name), item)
        for name, item in data.coords.items()
        # Times may stand beside a dimension that only counts.
        if item.dims == (name,) or (name in TIME_COLUMNS and len(item.dims) == 1 and item.dims[0] not in data.coords)
    ]
    return cube_table([*coordinates, *variables], options)


def _variable(name: str, item: Any) -> Variable:
    unit = item.attrs.get("units", "")
    values = np.asarray(item.values)
    if values.dtype.kind in "US":
        values = values.astype(object)
    return Variable(name, tuple(str(d) for d in item.dims), values, unit if isinstance(unit, str) else "")
