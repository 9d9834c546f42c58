"""Tables to disk: comma-separated files that read back exactly and that no spreadsheet runs."""

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lamperti._errors import SeriesError
from lamperti.data.files import atomic_write

# What spreadsheets take for the start of a formula, in the wide forms of East Asian keyboards, too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(path: str | os.PathLike, columns: Mapping[str, Any]) -> None:
    """Write named columns of equal length to a comma-separated file (by tabs, if it ends in .tsv), whole or not at all.

    Numbers are written so that they read back exactly. Text that a spreadsheet would run as a formula (it
    starts with = + - or @) gets a leading apostrophe; numbers, negative ones too, are left alone.
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    lengths = {name: array.shape for name, array in arrays.items()}
    if not arrays or len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise SeriesError(f"columns must be vectors of one length; got {lengths}.")
    text = io.StringIO(newline="")
    tabbed = Path(path).suffix.lower() == ".tsv"  # as it will be read
    writer = csv.writer(text, lineterminator="\n", delimiter="\t" if tabbed else ",")
    writer.writerow([_harmless(name) for name in arrays])
    writer.writerows(zip(*([_harmless(cell) for cell in array.tolist()] for array in arrays.values()), strict=True))
    atomic_write(path, text.getvalue().encode())


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.lstrip(" ").startswith(FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell  # a negative number that came as text
