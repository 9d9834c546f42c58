"""Files into tables: one module a format, and which of them a file asks for.

A file is what its first bytes say; only where they say nothing does its name decide. Formats whose decoders are large
native libraries (Parquet, HDF5, Zarr's codecs) are decoded in a process of their own, see ``decoding``.
"""

from collections.abc import Callable
from pathlib import Path

from lamperti._errors import SeriesError
from lamperti.data.applies import check_applies
from lamperti.data.formats.columnar import read_parquet
from lamperti.data.formats.gridded import read_netcdf, read_zarr
from lamperti.data.formats.numpy_files import read_npy, read_npz
from lamperti.data.formats.text import read_text
from lamperti.data.formats.zarr_metadata import is_store
from lamperti.data.local import open_local
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table

_READERS: dict[str, Callable[[Path, ReadOptions], Table]] = {
    "text": read_text,
    "parquet": read_parquet,
    "netcdf": read_netcdf,
    "zarr": read_zarr,
    "npy": read_npy,
    "npz": read_npz,
}
_MAGIC = {
    b"PAR1": "parquet",
    b"\x89HDF\r\n\x1a\n": "netcdf",
    b"CDF\x01": "netcdf",
    b"CDF\x02": "netcdf",
    b"CDF\x05": "netcdf",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
}
_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".nc": "netcdf",
    ".nc4": "netcdf",
    ".cdf": "netcdf",
    ".h5": "netcdf",
    ".hdf5": "netcdf",
    ".npy": "npy",
    ".npz": "npz",
    ".zarr": "zarr",
}
_NOT_READ = {
    ".xlsx": "an Excel workbook; save the sheet as CSV",
    ".xls": "an Excel workbook; save the sheet as CSV",
    ".ods": "a spreadsheet; save the sheet as CSV",
    ".mat": "a MATLAB file; write its arrays as CSV or HDF5",
    ".pkl": "a Python object file, which could run code; write the data as CSV, NPZ or Parquet",
    ".pickle": "a Python object file, which could run code; write the data as CSV, NPZ or Parquet",
    ".joblib": "a Python object file, which could run code; write the data as CSV, NPZ or Parquet",
}


def read_file(path: Path, options: ReadOptions) -> Table:
    """The table in a file (or Zarr folder)."""
    kind = file_kind(path)
    check_applies(options, kind)
    return _READERS[kind](path, options)


def file_kind(path: Path) -> str:
    """The format of a file: text, parquet, netcdf (HDF5, too), zarr, npy or npz."""
    suffix = path.suffix.lower()
    if suffix in _NOT_READ:
        raise SeriesError(f"this is {_NOT_READ[suffix]}.")
    if path.is_dir() and not path.is_symlink():
        if is_store(path):
            return "zarr"
        raise SeriesError(f"{path} is a folder: not a regular file, nor a Zarr store. Give a file of data.")
    with open_local(path) as file:
        head = file.read(8)
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    return _SUFFIXES.get(suffix, "text")
