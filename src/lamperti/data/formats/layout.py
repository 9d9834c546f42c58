"""How a text file is laid out: lines of comment above the table, and what stands between the cells.

# recorded by K.
# time  x                 time<tab>x
  0.0   1.5        ->     0.0<tab>1.5
  0.1   1.7               0.1<tab>1.7
"""

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple

from lamperti._errors import SeriesError
from lamperti.data.formats.header import SEARCHED, holds_data
from lamperti.data.numerals import plain_number
from lamperti.data.options import ReadOptions

_BEGINNING = 1 << 20  # characters in which lines are looked at
_COMMENT = re.compile(r"\s*#(?!N/?A)")  # #N/A is an empty cell
_NAMES = {";": "semicolons", "\t": "tabs", " ": "spaces"}
_WIDE = re.compile(r"\t|[ \t]{2,}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.]\d+)?)?")
_IN_THREES = re.compile(r"\d{1,3}( \d{3})+")


class Layout(NamedTuple):
    """The table as text with one character between cells, what was done, and how many lines fewer it has."""

    text: str
    separator: str
    repairs: tuple[str, ...]
    removed: int


def lay_out(text: str, separator: str | None, options: ReadOptions) -> Layout:
    """Leave out comments above a table, and find its separator where none is given."""
    comments, rest = _without_comments(text)
    repairs = (f"lines of comment above the table left out: {len(comments)}",) if comments else ()
    removed = text.count("\n") - rest.count("\n")
    lines = [line for line in rest[:_BEGINNING].splitlines()[:SEARCHED] if line.strip()]
    if separator is None:
        separator = _find_separator(lines, options)
        repairs += (f"columns are separated by {_NAMES[separator]}",) if separator in _NAMES else ()
    n_columns = len(_cells(lines[-1], separator)) if lines else 0
    header = _header_among(comments, lines, n_columns, separator, options)
    if separator == " ":
        names = header or (_names(lines[0], n_columns) if lines else [])
        body = rest.splitlines() if header else rest.lstrip("\n").splitlines()[1:]
        rest = "\n".join([_written(names), *("\t".join(line.split()) for line in body)])
    elif header:
        rest = f"{_written(header, separator)}\n{rest}"
    return Layout(rest, "\t" if separator == " " else separator, repairs, removed - bool(header))


def _without_comments(text: str) -> tuple[list[str], str]:
    """Comments at the top, and the text without them. Those below the names of columns, of their units or their source,
    are such comments, too."""
    if not any(map(_COMMENT.match, text[:_BEGINNING].splitlines()[:SEARCHED])):
        return [], text
    lines = text.split("\n")
    comments: list[str] = []
    kept: list[str] = []
    for k, line in enumerate(lines):
        if _COMMENT.match(line):
            comments.append(line)
        elif line.strip() or not comments:  # blank lines among comments are none of the table
            if kept:
                return comments, "\n".join([*kept, *lines[k:]])
            kept.append(line)
    return comments, "\n".join(kept)


def _find_separator(lines: Sequence[str], options: ReadOptions) -> str:
    """What stands between the cells of every line: a comma where there are any, else a semicolon, a tab or spaces."""
    body = lines[1:] or lines
    if not body or any("," in line for line in body):
        return ","
    for mark in (";", "\t"):
        if len({line.count(mark) for line in lines}) == 1 and mark in lines[0]:
            return mark
    rows = [line.split() for line in body]
    even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    grouped = options.thousands == " " or all(_IN_THREES.fullmatch(line.strip()) for line in body)
    if even and not grouped and all(_is_row(row, options) for row in rows):
        return " "
    return ","


def _is_row(cells: Sequence[str], options: ReadOptions) -> bool:
    numbers = [plain_number(cell, options.marks) is not None for cell in cells]
    others = [cell for cell, number in zip(cells, numbers, strict=True) if not number]
    return any(numbers) and all(holds_data(cell, options.marks) or _CLOCK.fullmatch(cell) for cell in others)


def _cells(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]


def _header_among(
    comments: Sequence[str], lines: Sequence[str], n_columns: int, separator: str, options: ReadOptions
) -> list[str]:
    """The names of the columns, where the last comment that has as many cells as the table holds them; else none."""
    first = _cells(lines[0], separator) if lines else []
    if options.header is not None or not first or not all(holds_data(cell, options.marks) for cell in first):
        return []
    for line in reversed(comments):
        words = line.strip().lstrip("#").strip()
        cells = _cells(words, separator)
        if separator == " " and len(cells) != n_columns:
            cells = _WIDE.split(words)
        a_name = n_columns > 1 or " " not in words
        if len(cells) == n_columns and a_name and not any(holds_data(cell, options.marks) for cell in cells):
            return cells
    return []


def _names(line: str, n_columns: int) -> list[str]:
    """The first row of a table whose cells have spaces between them."""
    by_word = next(csv.reader([" ".join(line.split())], delimiter=" "))
    wide = _WIDE.split(line.strip())
    found = next((cells for cells in (by_word, wide) if len(cells) == n_columns), None)
    if found is None:
        raise SeriesError(
            f"columns are separated by spaces, and the first line ({line.strip()[:60]!r}) has {len(by_word)} words for "
            f"{n_columns} columns. Write each name without spaces, or leave the line out by skip=1 and header=False."
        )
    return found


def _written(cells: Sequence[str], separator: str = "\t") -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(cells)
    return line.getvalue()
