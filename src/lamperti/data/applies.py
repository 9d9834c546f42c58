"""Which options of reading mean something for which source; one that could do nothing is refused, not ignored."""

import dataclasses
from typing import Any

from lamperti._errors import ConfigError
from lamperti.data.options import ReadOptions

FILES = {
    "text": "a text file",
    "parquet": "a Parquet file",
    "netcdf": "a NetCDF or HDF5 file",
    "zarr": "a Zarr store",
    "npy": "an NPY file",
    "npz": "an NPZ file",
}
MEMORY = {"table": "a table in memory", "cube": "an xarray object", "array": "an array in memory"}
_TEXT = (("text",), "text files")
_ONLY: dict[str, tuple[tuple[str, ...], str]] = {
    "separator": _TEXT,
    "decimal": _TEXT,
    "thousands": _TEXT,
    "header": _TEXT,
    "skip": _TEXT,
    "encoding": _TEXT,
    "axes": (("npy", "npz", "array"), "bare arrays"),
    "array": (("npz",), "NPZ files"),
    "max_bytes": (tuple(FILES), "files"),
}
_DEFAULTS = {field.name: field.default for field in dataclasses.fields(ReadOptions)}


def check_applies(options: ReadOptions, kind: str) -> None:
    """Raise `ConfigError` for an option that was given but means nothing for a source of this kind."""
    for name, (kinds, what) in _ONLY.items():
        if kind not in kinds and getattr(options, name) != _DEFAULTS[name]:
            raise ConfigError(f"{name}= is for {what}, and this is {(FILES | MEMORY)[kind]}. Leave it out.")


def applying(options: dict[str, Any], kind: str) -> dict[str, Any]:
    """The options without those that mean nothing for a source of this kind: how one file was read, for another."""
    return {name: value for name, value in options.items() if name not in _ONLY or kind in _ONLY[name][0]}
