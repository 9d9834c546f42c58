"""Objects of xarray: variables over named dimensions, decoded or as they are in a file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lamperti.data.cubes import Variable, cube_table, is_asked_for, wanted_variables
from lamperti.data.formats.cf import decoded_values, why_left_out
from lamperti.data.formats.cf_time import dates_of_cftime, is_cftime, why_no_dates
from lamperti.data.formats.decoding import Decoded
from lamperti.data.options import TIME_COLUMNS, ReadOptions
from lamperti.data.table import Table


def xarray_table(data: Any, options: ReadOptions) -> Table:
    """A DataArray or Dataset: time is a dimension, and so is id where there is one."""
    wanted = wanted_variables(options)
    if hasattr(data, "data_vars"):
        found = [(str(name), item) for name, item in data.data_vars.items() if is_asked_for(str(name), wanted)]
    else:
        found = [(str(data.name or "y"), data)]
    found += [
        (str(name), item)
        for name, item in data.coords.items()
        # Times may stand beside a dimension that only counts.
        if item.dims == (name,) or (name in TIME_COLUMNS and len(item.dims) == 1 and item.dims[0] not in data.coords)
    ]
    variables, left_out = [], {}
    for name, item in found:
        values = np.asarray(item.values)
        foreign = why_no_dates(values.flat[0].calendar) if is_cftime(values) else ""
        one = Decoded(name, values, tuple(str(d) for d in item.dims), _plain(item.attrs), left_out=foreign)
        if why := why_left_out(one):
            left_out[name] = why
        else:
            variables.append(_variable(one))
    return cube_table(variables, options, left_out)


def _variable(one: Decoded) -> Variable:
    values, unit = decoded_values(one)
    if is_cftime(values):
        values, unit = dates_of_cftime(values), ""
    return Variable(one.name, one.dims, values.astype(object) if values.dtype.kind in "US" else values, unit)


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as a file would give them: plain numbers, lists and text."""
    return {
        str(key): value.reshape(-1).tolist() if np.size(value) != 1 else value.reshape(()).item()
        for key, value in ((key, np.asarray(value)) for key, value in attributes.items())
    }
