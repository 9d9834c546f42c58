"""Decoding by large native libraries, in a process of its own.

Parquet, HDF5 and the codecs of Zarr are megabytes of C and C++. A crafted file can end the process that reads it, fill
its memory or keep it busy for ever; so that process is never this one. What comes back are plain arrays and JSON.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lamperti._errors import DependencyError, SeriesError
from lamperti.data.table import with_holes

_SCRIPT = Path(__file__).with_name("_decoder.py")
_NEEDS = {"parquet": ("pyarrow", "Parquet"), "hdf5": ("h5py", "NetCDF-4 and HDF5"), "zarr": ("zarr", "Zarr")}
_EXTRA = {"parquet": "parquet", "hdf5": "netcdf", "zarr": "zarr"}
_PATIENCE = 900  # seconds


@dataclass(frozen=True)
class Packing:
    """How values are stored that were unpacked before they came here."""

    scale: float
    offset: float
    stored: np.dtype
    meant: np.dtype  # another one where unsigned integers are stored as signed ones

    @property
    def scales(self) -> bool:
        return self.scale != 1 or self.offset != 0


@dataclass(frozen=True, eq=False)
class Decoded:
    """One variable of a file as it is stored."""

    name: str
    values: np.ndarray
    dims: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    category: bool = False
    utc: bool = False
    index: bool = False  # of the table of pandas that was written
    holes: bool = False  # parts were never written: ``fill`` stands in their place
    fill: Any = None
    left_out: str = ""  # why its values were not decoded
    packing: Packing | None = None  # of values that are not as they are stored


def decode(
    kind: str, path: Path, max_bytes: int, wanted: Sequence[str] | None, given: dict[str, Any] | None = None
) -> list[Decoded]:
    """The variables of a file. ``wanted`` names those that are needed (None: all); ``given`` are JSON files that the
    decoder finds beside its output.

    Raises `SeriesError` whatever the decoder says or however it ends.
    """
    module, what = _NEEDS.get(kind, ("scipy", "NetCDF"))
    if importlib.util.find_spec(module) is None:
        raise DependencyError(f"{what} files need {module}. Install it: pip install 'lamperti[{_EXTRA[kind]}]'.")
    with tempfile.TemporaryDirectory(prefix="lamperti-") as folder:
        for name, content in (given or {}).items():
            (Path(folder) / name).write_text(json.dumps(content), encoding="utf-8")
        # -P: modules beside the script or in the working folder are not importable by accident.
        arguments = [kind, str(path.absolute()), folder, str(max_bytes), json.dumps(wanted)]
        command = [sys.executable, "-P", str(_SCRIPT), *arguments]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise SeriesError(f"reading did not end within {_PATIENCE} s. Is it an intact {what} file?") from None
        if ended.returncode:
            raise SeriesError(_explain(ended.returncode, ended.stderr.decode("utf-8", "replace"), what))
        return _load(Path(folder))


def _load(folder: Path) -> list[Decoded]:
    decoded = []
    for i, about in enumerate(json.loads((folder / "variables.json").read_text(encoding="utf-8"))):
        kind = about.pop("kind")
        if kind == "text":
            values = np.array(about.pop("cells"), dtype=object)
        elif kind == "left out":
            values = np.empty(0)
        else:
            values = np.load(folder / f"{i}.npy", allow_pickle=False)
            if (folder / f"{i}.lost.npy").is_file():
                lost = np.load(folder / f"{i}.lost.npy", allow_pickle=False)
                values = with_holes(values[~lost], lost)
        decoded.append(Decoded(values=values, dims=tuple(about.pop("dims", ())), **about))
    return decoded


def _explain(code: int, said: str, what: str) -> str:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if last.startswith("refused: "):
        return last.removeprefix("refused: ")
    if code < 0:
        return f"the decoder of {what} files was ended by signal {-code}: the file is damaged or was made to do harm."
    return f"not an intact {what} file ({last[:200]}). Copy or write it again."
