"""NetCDF (classic and 4), HDF5 and Zarr: variables over named dimensions."""

from collections.abc import Mapping
from pathlib import Path

from lamperti._errors import SeriesError
from lamperti.data.cubes import Variable, cube_table, wanted_variables
from lamperti.data.formats.cf import decoded_values, why_left_out
from lamperti.data.formats.decoding import Decoded, decode
from lamperti.data.formats.zarr_metadata import read_metadata
from lamperti.data.local import folder_state, open_local
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table


def read_netcdf(path: Path, options: ReadOptions) -> Table:
    """The variables at the top level of a NetCDF or HDF5 file."""
    with open_local(path) as file:
        kind = "netcdf3" if file.read(3) == b"CDF" else "hdf5"
        return _table(decode(kind, path, options.max_bytes, wanted_variables(options)), options, {})


def read_zarr(path: Path, options: ReadOptions) -> Table:
    """The arrays of a Zarr folder of version 2 or 3."""
    before = folder_state(path)
    found = read_metadata(path, list(before))
    arrays = [array for array in found if "left_out" not in array]
    if not arrays:
        raise SeriesError("the store holds no array of numbers.")
    names = [array["name"] for array in arrays]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SeriesError(f"two arrays of the store are named {twice!r}. Keep one group a store.")
    decoded = decode("zarr", path, options.max_bytes, wanted_variables(options), {"arrays.json": arrays})
    if folder_state(path) != before:
        raise SeriesError("the store changed while it was read. Wait until it is written, then read it again.")
    return _table(decoded, options, {array["name"]: array["left_out"] for array in found if "left_out" in array})


def _table(decoded: list[Decoded], options: ReadOptions, left_out: Mapping[str, str]) -> Table:
    variables, left_out = [], {**left_out}
    for one in decoded:
        if why := why_left_out(one):
            left_out[one.name] = why
            continue
        values, unit = decoded_values(one)
        variables.append(Variable(one.name, one.dims, values, unit))
    return cube_table(variables, options, left_out)
