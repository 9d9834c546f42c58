"""Columns of text as numbers, as far as they are numbers; what is none stays text, for the gate to blame its row."""

import re
from typing import Any

import numpy as np
import pandas as pd

from lamperti.data._checks import EXACT_INTEGER
from lamperti.data.numerals import Marks, plain_number
from lamperti.data.options import ReadOptions
from lamperti.data.time_names import is_time_name

_WHOLE = re.compile(r"^\s*[+-]?\d{1,400}\s*$", re.ASCII)  # longer ones are beyond the largest float


def read_cells(column: pd.Series, options: ReadOptions) -> np.ndarray:
    """Numbers and booleans as pandas found them; of what it left as text, each cell that is a number as that number.

    Words declared missing stay words: the gate counts them.
    """
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy()
    # pandas leaves a blank cell blank where integers fit none of its types.
    cells = column.astype(object).where(column.notna() & (column != ""), None).to_numpy()
    is_time = column.name == options.time if options.time is not None else is_time_name(str(column.name))
    if column.name in (options.id, options.channel, *options.codes) or (is_time and options.time_format is not None):
        return cells
    if {*cells} <= {"True", "False"}:  # which pandas finds only where it looks for numbers, too
        return cells == "True"
    tokens = options.declared.tokens
    texts = [cell if isinstance(cell, str) and cell.strip() not in tokens else None for cell in cells]
    plain = [None if text is None else plain_number(text, options.marks) for text in texts]
    good = sum(number is not None for number in plain)
    if all((number is None) == (cell is None) for number, cell in zip(plain, cells, strict=True)):
        numbers = _numbers(pd.Series(plain, dtype=object))
        if numbers is not None:
            return numbers
    if is_time and 2 * good <= len(cells):
        return cells  # dates, some of which may be written in digits only
    mixed = [cell if number is None else _number(number) for cell, number in zip(cells, plain, strict=True)]
    return np.array([*mixed, None], dtype=object)[:-1]


def _number(plain: str) -> int | float:
    return int(plain) if _WHOLE.match(plain) else float(plain)


def _numbers(plain: pd.Series) -> np.ndarray | None:
    """Numbers as text, or nothing, as an array; None where pandas makes none of them."""
    parsed: Any = plain
    try:
        # Integers that fit none of the types of pandas stay text.
        whole = all(_WHOLE.match(cell) for cell in plain.dropna())
        parsed = plain.map(float, na_action="ignore").astype(float) if whole else pd.to_numeric(plain)
    except (ValueError, TypeError, OverflowError):
        return None
    if not pd.api.types.is_numeric_dtype(parsed.dtype) or pd.api.types.is_bool_dtype(parsed.dtype):
        return None
    numbers = parsed.to_numpy()
    return exact(numbers, plain, Marks()) if may_be_rounded(numbers) else numbers


def may_be_rounded(cells: np.ndarray) -> bool:
    """Whether floats may stand for integers that were written with more digits: an empty cell makes floats of all."""
    with np.errstate(invalid="ignore"):
        return cells.dtype.kind == "f" and bool((np.abs(cells) >= EXACT_INTEGER).any())


def exact(cells: np.ndarray, written: pd.Series, marks: Marks) -> np.ndarray:
    """The column with integers as they were written, if there are any; the gate rounds them, aloud."""
    plain = [plain_number(cell, marks) if isinstance(cell, str) else None for cell in written]
    whole = [int(cell) if cell is not None and _WHOLE.match(cell) else None for cell in plain]
    if all(number is None for number in whole):
        return cells
    numbers = [None if cell != cell else float(cell) for cell in cells]
    found = [number if exactly is None else exactly for number, exactly in zip(numbers, whole, strict=True)]
    return np.array([*found, None], dtype=object)[:-1]
