"""NPY and NPZ files: plain arrays only, never Python objects, and no larger than their file says they are."""

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lamperti._errors import ConfigError, SeriesError
from lamperti.data.local import open_local
from lamperti.data.options import ReadOptions
from lamperti.data.ratio import check_ratio
from lamperti.data.table import Table, array_table
from lamperti.data.time_names import TIME_COLUMNS

_MAX_MEMBERS = 1000
_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npy(path: Path, options: ReadOptions) -> Table:
    """An array [T], [R, T] or [R, T, P]; ``axes`` says otherwise."""
    with open_local(path) as file:
        return array_table(_array(file, options.max_bytes), options.axes)


def read_npz(path: Path, options: ReadOptions) -> Table:
    """Vectors of one length are columns; one array of more axes is read as an NPY file is, with the times beside it.
    A number named dt is the sampling step."""
    with open_local(path) as file:
        arrays = _members(file, options.max_bytes)
    dt = _step(arrays.pop("dt"), options) if "dt" in arrays and arrays["dt"].size == 1 else None
    arrays = {name: array for name, array in arrays.items() if array.ndim > 0}
    listed = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
    times = {}
    if options.array is not None:
        if options.array not in arrays:
            raise SeriesError(f"there is no array {options.array!r}; the archive has {listed}.")
        times = _times(arrays, options)
        arrays = {options.array: arrays[options.array]}
    if len(arrays) == 1:
        ((name, array),) = arrays.items()
        table = array_table(array, options.axes)
        if len(table.columns) == 1:  # the name of the only array is the name of the only channel
            columns = {name: table.columns["y"]}
        else:
            columns = {f"{name}{p}": column for p, column in enumerate(table.columns.values())}
        n_series = 1 if table.groups is None else len(np.unique(table.groups))
        for clock, stamps in times.items():
            if len(stamps) * n_series != table.length:
                raise SeriesError(
                    f"array {clock!r} has {len(stamps)} times for {table.length // n_series} samples of {name!r}. Mend "
                    "it, or give dt= instead."
                )
            columns[clock] = np.tile(stamps, n_series)
        return Table(columns, groups=table.groups, dt=None if times else dt)
    if not arrays:
        raise SeriesError("the archive holds no array.")
    if any(array.ndim != 1 for array in arrays.values()) or len({len(array) for array in arrays.values()}) > 1:
        raise SeriesError(f"the archive holds several arrays ({listed}). Choose one of them with array=.")
    if options.axes is not None:
        raise ConfigError(
            "axes= is for one array, and this archive holds columns. Leave it out, or choose with array=."
        )
    return Table(arrays, dt=dt)


def _step(step: np.ndarray, options: ReadOptions) -> float | None:
    if step.dtype.kind in "iuf":
        return float(step.item())
    if options.dt is not None:
        return None
    raise SeriesError(f"array 'dt' holds {step.item()!r}, which is not a number. Give the sampling step by dt=.")


def _times(arrays: dict[str, np.ndarray], options: ReadOptions) -> dict[str, np.ndarray]:
    """The arrays of times beside the one that was chosen: the one asked for, else those of usual names."""
    usual = TIME_COLUMNS if options.dt is None else ()
    names = usual if options.time is None else (options.time,)
    return {name: arrays[name] for name in names if name in arrays and name != options.array and arrays[name].ndim == 1}


def _members(file: BinaryIO, most: int) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > most:
                raise SeriesError(f"the archive unpacks to more than {most} bytes or {_MAX_MEMBERS} arrays.")
            # Members may share their bytes: all that is unpacked is compared with all that there is.
            check_ratio("the archive", file.seek(0, io.SEEK_END), sum(member.file_size for member in members))
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name == member.filename or member.compress_type not in _PACKING:
                    raise SeriesError(f"the archive holds {member.filename!r}, which is not a plain array of NumPy.")
                if name in arrays:
                    raise SeriesError(f"the archive holds {member.filename!r} twice.")
                with archive.open(member) as packed:
                    content = packed.read(member.file_size + 1)  # never more than was added up above
                try:
                    arrays[name] = _array(io.BytesIO(content), most)
                except SeriesError as error:
                    raise SeriesError(f"array {name!r}: {error}") from None
    # What zipfile raises on archives that are damaged, cut, locked or made up.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        if isinstance(error, SeriesError):
            raise
        raise SeriesError(f"not an intact NPZ archive ({error}). Write it again with numpy.savez.") from None
    return arrays


def _array(file: BinaryIO, most: int) -> np.ndarray:
    """One array; what its header declares is compared with what is there before anything is allocated."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise SeriesError(
                f"the array is in NPY version {version}, which is for structured data. Save plain numbers."
            )
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of files written under Python 2, which are as good
            shape, fortran, dtype = read_header(file)
    except (ValueError, TypeError, KeyError, SyntaxError, tokenize.TokenError, OverflowError, MemoryError) as error:
        if isinstance(error, SeriesError):
            raise
        raise SeriesError(f"not an intact NPY array ({_first_line(error)}). Write it again with numpy.save.") from None
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        raise SeriesError(f"the array has dtype {dtype}; only plain numbers are read. Save each field as floats.")
    if any(n < 0 for n in shape):
        raise SeriesError(f"the array declares the shape {shape}, which cannot be.")
    size = math.prod(shape) * dtype.itemsize
    if size > most:
        raise SeriesError(f"the array declares {size} bytes, more than {most}. Allow more with max_bytes=.")
    content = file.read(size + 1)
    if len(content) != size:
        found = f"more than {size}" if len(content) > size else str(len(content))
        raise SeriesError(f"the array declares {size} bytes of data, but the file has {found}. Copy it again.")
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0][:200]
