"""The first row of a text file: names of columns, or data already."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lamperti._errors import SeriesError
from lamperti._text import seen
from lamperti.data._checks import as_names
from lamperti.data.numerals import Marks, plain_number
from lamperti.data.options import ReadOptions
from lamperti.data.writing import FORMULA_STARTS

LOOKED_AT = 6  # rows that tell whether the first is one of them
SEARCHED = 60  # rows among which a table starts
_FOLLOWING = 3  # rows of numbers below the names
_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([T ].*)?$")
_BARE = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
_YEARS = range(1800, 2200)
_OF_PANDAS = "Unnamed: 0"  # what pandas calls a first column without a name, when it is written once more


class Header(NamedTuple):
    """``index``: the name of a first column that had none."""

    names: tuple[str, ...]
    is_data: bool
    index: str | None = None
    repairs: tuple[str, ...] = ()


def read_header(rows: Sequence[Sequence[str]], options: ReadOptions) -> Header:
    """The names that the first of some rows gives. One that may be names as well as data is refused."""
    first = [cell.strip() for cell in rows[0]]
    blank_first = len(first) > 1 and not first[0]
    is_data = options.header is False
    if options.header is None:
        numbers = first[1:] if blank_first else first
        is_data = all(holds_data(cell, options.marks) for cell in numbers)
        # pandas leaves the name of its index blank; then 0, 1, 2 are surely the names of the others.
        named = _may_be_names(numbers) and (blank_first or not _goes_on(rows, options.marks))
        if is_data and named != blank_first:
            shown = ",".join(first)
            raise SeriesError(
                f"the first row ({shown[:60]}{'...' * (len(shown) > 60)}) may be names of columns or data. Say which: "
                "header=True or header=False."
            )
        is_data &= not blank_first
    if is_data:
        return Header(as_names(None, len(first)), True)
    names = [_plain(seen(cell)) for cell in first]
    changed = any(name != _plain(cell) for name, cell in zip(names, first, strict=True))
    index = names[0] if names[0] == _OF_PANDAS else None
    if blank_first and not names[0]:
        index = names[0] = "index" if "index" not in names else _OF_PANDAS
    note = f"characters that cannot be seen were removed from the names of columns: {', '.join(names)}"
    return Header(as_names(names, len(names)), False, index, (note,) if changed else ())


def table_start(rows: Sequence[Sequence[str]], marks: Marks) -> int:
    """The row that holds the names, where others stand before it: what was measured, when and by whom. Zero where the
    table starts at once, or this cannot be told."""

    def numbers(row: Sequence[str]) -> bool:
        cells = [cell.strip() for cell in row]
        return any(cells) and all(not cell or holds_data(cell, marks) for cell in cells)

    for k, row in enumerate(rows[: -_FOLLOWING or None]):
        if numbers(row):
            return 0
        below = rows[k + 1 : k + 1 + _FOLLOWING]
        if all(len(other) == len(row) and numbers(other) for other in below):
            named = all(cell.strip() and not holds_data(cell.strip(), marks) for cell in row)
            units = k == 1 and len(rows[0]) == len(row) and all(map(str.strip, rows[0]))  # a second row of names
            return k if named and not units else 0
    return 0


def holds_data(cell: str, marks: Marks) -> bool:
    """Whether a cell holds a number or a date, and so cannot be a name."""
    return plain_number(cell, marks) is not None or bool(_ISO_DATE.match(cell))


def _may_be_names(cells: Sequence[str]) -> bool:
    """Whether bare numbers count columns, from 0 or 1, or years."""
    if not all(_BARE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    n = len(numbers)
    if numbers == list(range(n)) or n == 1:
        return numbers == [0] or n > 1
    rising = all(a < b for a, b in pairwise(numbers))
    return numbers == list(range(1, n + 1)) or (rising and all(number in _YEARS for number in numbers))


def _goes_on(rows: Sequence[Sequence[str]], marks: Marks) -> bool:
    """Whether the rows below go on in equal steps from the first, in some column: then it is one of them."""
    for cells in zip(*rows, strict=False):
        plain = [plain_number(cell, marks) for cell in cells]
        numbers = [float(cell) for cell in plain if cell is not None]
        steps = [b - a for a, b in pairwise(numbers)]
        if len(numbers) == len(rows) > 2 and steps[0] and max(steps) - min(steps) <= 1e-6 * abs(steps[0]):
            return True
    return False


def _plain(name: str) -> str:
    """A name without the apostrophe that `write_csv` puts before what a spreadsheet would run."""
    return name[1:] if name.startswith("'") and name[1:].lstrip(" ").startswith(FORMULA_STARTS) else name
