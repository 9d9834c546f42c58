"""Decodes one file into plain arrays; run as a script, in a process of its own, by ``decoding``.

    python _decoder.py KIND PATH FOLDER MAX_BYTES WANTED

It imports nothing of lamperti and unpacks nothing but numbers and text. It writes ``N.npy`` to FOLDER for every
variable, and a row to ``variables.json``. Whatever goes wrong ends the process with a message; nothing is caught here,
because the process that waits outlives it.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

Variable = dict[str, Any]
_MAY_BE_TIME = re.compile(r"t\W|t_|.*(time|date|elapsed)", re.IGNORECASE)


class Refused(Exception):
    """Ends the process with a sentence for the user."""


class Writer:
    """Writes variables and keeps count of their size."""

    def __init__(self, folder: str, most: int, wanted: list[str] | None):
        self.folder, self.left, self.wanted = Path(folder), most, wanted
        self.variables: list[Variable] = []

    def takes(self, name: str) -> bool:
        """Whether a variable was asked for, itself or (as name_label) a channel of it."""
        return self.wanted is None or any(w == name or w.startswith(f"{name}_") for w in self.wanted)

    def reserve(self, name: str, shape: tuple[int, ...], itemsize: int) -> None:
        """Called with what a file declares, before anything is allocated."""
        self.left -= math.prod(shape) * itemsize
        if self.left < 0:
            raise Refused(
                f"{name!r} declares the shape {list(shape)}, too much to read. Choose columns, or raise max_bytes=."
            )

    def numbers(self, name: str, values: np.ndarray, lost: np.ndarray | None = None, **about: Any) -> None:
        """``lost``: True where there is no number, whatever stands in its place."""
        np.save(self.folder / f"{len(self.variables)}.npy", values, allow_pickle=False)
        if lost is not None:
            np.save(self.folder / f"{len(self.variables)}.lost.npy", lost, allow_pickle=False)
        self.variables.append({"name": name, "kind": "numbers", **about})

    def text(self, name: str, cells: list[str | None], **about: Any) -> None:
        self.variables.append({"name": name, "kind": "text", "cells": cells, **about})

    def left_out(self, name: str, why: str) -> None:
        self.variables.append({"name": name, "kind": "left out", "left_out": why})

    def close(self) -> None:
        (self.folder / "variables.json").write_text(json.dumps(self.variables), encoding="utf-8")


def decode_parquet(path: str, out: Writer) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    rows = file.metadata.num_rows
    index = _index_of_pandas(file.schema_arrow)
    # which of the names with time in them are taken for times is decided elsewhere
    names = [name for name in file.schema_arrow.names if out.takes(name) or name == index or _MAY_BE_TIME.match(name)]
    if len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
        raise Refused("two columns have the same name. Rename one.")
    declared = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    out.reserve("table", (max(declared, 8 * rows * len(names)),), 1)
    for name in names:
        column = file.read(columns=[name]).column(0).combine_chunks()
        kind = column.type
        about = {"index": name == index}
        if pa.types.is_dictionary(kind):
            out.text(name, [None if v is None else str(v) for v in column.to_pylist()], category=True, **about)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            out.text(name, column.to_pylist(), **about)
        elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            stamps = column.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) else column
            out.numbers(
                name,
                stamps.to_numpy(zero_copy_only=False).astype("datetime64[us]"),
                utc=pa.types.is_timestamp(kind) and kind.tz is not None,
                **about,
            )
        elif pa.types.is_decimal(kind):
            out.numbers(name, column.cast(pa.float64()).to_numpy(zero_copy_only=False), **about)
        elif pa.types.is_boolean(kind):
            if column.null_count:
                out.text(name, [None if v is None else str(v) for v in column.to_pylist()], category=True, **about)
            else:
                out.numbers(name, column.to_numpy(zero_copy_only=False), **about)
        elif pa.types.is_integer(kind) and column.null_count:
            # As floats they could lose digits before anybody looked.
            lost = column.is_null().to_numpy(zero_copy_only=False)
            out.numbers(name, column.fill_null(0).to_numpy(), lost, **about)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            out.numbers(name, column.to_numpy(zero_copy_only=False), **about)
        else:
            raise Refused(
                f"column {name!r} holds {kind}, which is neither number, date nor text. Leave it out by columns=."
            )


def _index_of_pandas(schema: Any) -> str | None:
    """The column that holds the index of the pandas table that was written, if there is one and it has one level."""
    columns = (schema.pandas_metadata or {}).get("index_columns")
    stored = [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    return stored[0] if len(stored) == 1 else None


def decode_hdf5(path: str, out: Writer) -> None:
    import h5py

    with h5py.File(path, "r") as file:
        elsewhere = [name for name in file if isinstance(file.get(name, getlink=True), h5py.ExternalLink)]
        if elsewhere:
            raise Refused(
                f"{elsewhere[0]!r} is a link to another file, which is not followed. Copy its values instead."
            )
        found = {str(name): item for name in file if isinstance(item := file.get(name), h5py.Dataset)}
        if not found:
            raise Refused("the file has no variables at its top level. Write those to be read there.")
        for name, data in found.items():
            dims = [_dimension(data, i) for i in range(data.ndim)]
            needed = out.takes(name) or (data.ndim == 1 and dims == [name])
            numeric = data.dtype.kind in "iufbcMm" and data.dtype.names is None and data.dtype.subdtype is None
            unlabelled = (
                str(data.attrs.get("NAME", b"")).find("This is a netCDF dimension but not a netCDF variable") >= 0
            )
            if not numeric:
                text = h5py.check_string_dtype(data.dtype) is not None
                out.left_out(name, f"it holds {'text' if text else _kind(data.dtype)}, not numbers")
            if not needed or not numeric or unlabelled:
                continue
            if data.external or data.is_virtual:
                raise Refused(
                    f"{name!r} is kept in another file, which is not followed. Copy its values into this one."
                )
            out.reserve(name, data.shape, data.dtype.itemsize)
            attributes = {
                key: _plain(data.attrs[key]) for key in data.attrs if not key.startswith(("_Netcdf4", "REFERENCE"))
            }
            out.numbers(name, data[()], dims=dims, attributes=attributes, **_holes(data))


def _dimension(data: Any, axis: int) -> str:
    """The name of an axis: of its scale, of the variable itself where it is one, else made up from the length."""
    if data.is_scale and data.ndim == 1:
        return data.name.split("/")[-1]
    scales = data.dims[axis].values()
    return scales[0].name.split("/")[-1] if scales else data.dims[axis].label or f"axis of {data.shape[axis]}"


def _holes(data: Any) -> Variable:
    """Whether parts were never written, and what stands in their place."""
    if data.chunks is None:
        empty = data.size > 0 and data.id.get_storage_size() == 0
    else:
        wanted = math.prod(-(-n // c) for n, c in zip(data.shape, data.chunks, strict=True))
        empty = data.id.get_num_chunks() < wanted
    return {"holes": bool(empty), "fill": _plain(data.fillvalue)}


def decode_netcdf3(path: str, out: Writer) -> None:
    from scipy.io import netcdf_file

    # The size of a classic file is declared in its header; the library reads all of it, so look at the file itself.
    out.reserve("file", (Path(path).stat().st_size,), 1)
    with netcdf_file(path, "r", mmap=False) as file:
        for name, data in file.variables.items():
            values = np.array(data.data)
            if values.dtype.kind not in "iuf":
                out.left_out(name, f"it holds {_kind(values.dtype)}, not numbers")
            if (out.takes(name) or data.dimensions == (name,)) and values.dtype.kind in "iuf":
                attributes = {key: _plain(value) for key, value in data._attributes.items()}
                native = values.astype(values.dtype.newbyteorder("="))
                out.numbers(name, native, dims=list(data.dimensions), attributes=attributes, holes=False, fill=None)


def decode_zarr(path: str, out: Writer) -> None:
    import warnings

    import zarr

    warnings.simplefilter("ignore")  # a warning about the format is no reason to end here
    metadata = json.loads((Path(out.folder) / "arrays.json").read_text(encoding="utf-8"))
    for array in metadata:  # checked before: nothing but known codecs and plain numbers
        name = array["name"]
        if not (out.takes(name) or array["dims"] == [name]):
            continue
        data = zarr.open_array(str(Path(path) / array["path"]), mode="r", zarr_format=array["format"])
        out.reserve(name, data.shape, data.dtype.itemsize)
        holes = data.nchunks_initialized < data.nchunks
        fill = _plain(data.fill_value)
        out.numbers(
            name, np.asarray(data[...]), dims=array["dims"], attributes=array["attributes"], holes=holes, fill=fill
        )


def _kind(dtype: np.dtype) -> str:
    return (
        "text"
        if dtype.kind in "SU"
        else "objects"
        if dtype.kind == "O"
        else "records"
        if dtype.names is not None
        else str(dtype)
    )


def _plain(value: Any) -> Any:
    """Attributes as JSON: numbers, text, or lists of numbers."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iufb":
        return value.tolist() if np.size(value) != 1 else np.asarray(value).reshape(()).item()
    return value if isinstance(value, (int, float, str)) or value is None else str(value)


DECODERS = {"parquet": decode_parquet, "hdf5": decode_hdf5, "netcdf3": decode_netcdf3, "zarr": decode_zarr}


def limit_resources(most: int, seconds: int) -> None:
    """A crafted file must neither fill the memory nor run for ever; only POSIX can promise it."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (4 * most + 2**32, 4 * most + 2**32))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    kind, path, folder, most, wanted = sys.argv[1:]
    limit_resources(int(most), 600)
    out = Writer(folder, int(most), json.loads(wanted))
    try:
        DECODERS[kind](path, out)
    except Refused as refusal:
        sys.exit(f"refused: {refusal}")
    out.close()


if __name__ == "__main__":
    main()
