"""Objects of xarray: variables over named dimensions, decoded or as they are in a file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lamperti.data.cubes import Variable, cube_table, is_asked_for, wanted_variables
from lamperti.data.formats.cf import decoded_values, why_left_out
from lamperti.data.formats.cf_time import dates_of_cftime, is_cftime, why_no_dates
from lamperti.data.formats.decoding import Decoded, Packing
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table
from lamperti.data.time_names import TIME_COLUMNS

_PACKING = ("scale_factor", "add_offset", "_Unsigned")


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
        dims, attributes = tuple(str(d) for d in item.dims), _plain(item.attrs)
        one = Decoded(name, values, dims, attributes, left_out=foreign, packing=_packing(item, attributes))
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


def _packing(item: Any, attributes: Mapping[str, Any]) -> Packing | None:
    """How the values that xarray has unpacked are stored; None for those that are as they are stored."""
    encoding = _plain({key: item.encoding[key] for key in _PACKING if key in item.encoding})
    if not encoding or any(key in attributes for key in _PACKING):
        return None
    scale, offset = encoding.get("scale_factor", 1.0), encoding.get("add_offset", 0.0)
    if not all(isinstance(number, (int, float)) and np.isfinite(number) for number in (scale, offset)) or scale == 0:
        return None
    stored = meant = np.dtype(item.encoding.get("dtype") or item.dtype)
    if stored.kind in "iu" and "_Unsigned" in encoding:
        unsigned = str(encoding["_Unsigned"]).strip().lower() == "true"
        meant = np.dtype(f"{'u' if unsigned else 'i'}{stored.itemsize}")
    return Packing(scale, offset, stored, meant) if stored.kind in "iuf" else None


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as a file would give them: plain numbers, lists and text."""
    return {
        str(key): value.reshape(-1).tolist() if np.size(value) != 1 else value.reshape(()).item()
        for key, value in ((key, np.asarray(value)) for key, value in attributes.items())
    }
