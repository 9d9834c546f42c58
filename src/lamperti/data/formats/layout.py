"""How a text file is laid out: lines of comment above the table, and what stands between the cells.

# recorded by K.
# time  x                 time<tab>x
  0.0   1.5        ->     0.0<tab>1.5
  0.1   1.7               0.1<tab>1.7
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lamperti._errors import SeriesError
from lamperti.data.formats.header import SEARCHED, holds_data
from lamperti.data.numerals import plain_number
from lamperti.data.options import ReadOptions
from lamperti.data.time_names import is_time_name

_BEGINNING = 1 << 20  # characters in which lines are looked at
# #N/A, #VALUE!, ####### and their like are cells of a spreadsheet.
_COMMENT = re.compile(r"\s*#(?!N/?A|VALUE!|DIV/0!|REF!|NUM!|NAME\?|NULL!|##)")
_MOSTLY = 0.8  # of the lines: the others are blamed by their row
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
    comments, rest = _without_comments(text, options)
    repairs = (f"lines of comment above the table left out: {len(comments)}",) if comments else ()
    lines = [line for line in rest[:_BEGINNING].splitlines()[:SEARCHED] if line.strip()]
    if separator is None:
        separator = _find_separator(lines, options)
        repairs += (f"columns are separated by {_NAMES[separator]}",) if separator in _NAMES else ()
    header = _header_among(comments, lines, separator, options)
    if header:
        repairs += (f"the names of the columns are those of a comment: {', '.join(header)}",)
    if separator == " ":
        rest = _tabbed(rest.lstrip("\n"), header, _usual_count(lines))
    elif header:
        rest = f"{_written(header, separator)}\n{rest}"
    removed = text.count("\n") - rest.count("\n")
    return Layout(rest, "\t" if separator == " " else separator, repairs, removed)


def _tabbed(text: str, header: list[str], n_columns: int) -> str:
    """A table whose cells have spaces between them, with tabs."""
    lines = text.split("\n")
    names = header or (_names(lines[0], n_columns) if lines[0].strip() else [])
    rows = [line.split() for line in (lines if header else lines[1:])]
    for k, row in enumerate(rows):
        if len(row) not in (0, len(names)):
            raise SeriesError(
                f"row {k} holds {len(row)} words ({' '.join(row)[:60]!r}) for {len(names)} columns, with spaces "
                "between them: which is empty cannot be told. Write a word such as NaN there, or use tabs or commas."
            )
    return "\n".join([_written(names), *("\t".join(row) for row in rows)])


def _usual_count(lines: Sequence[str]) -> int:
    """Words of most lines below the first."""
    counts = Counter(len(line.split()) for line in (lines[1:] or lines))
    return counts.most_common(1)[0][0] if counts else 0


def _without_comments(text: str, options: ReadOptions) -> tuple[list[str], str]:
    """Comments at the top, and the text without them. Those below the names of columns, of their units or their source,
    are such comments, too."""
    if not any(map(_COMMENT.match, text[:_BEGINNING].splitlines()[:SEARCHED])):
        return [], text
    lines = text.split("\n")
    comments: list[str] = []
    kept: list[str] = []
    for k, line in enumerate(lines):
        if _COMMENT.match(line) and not (kept and _is_row_of(kept[0], line, options)):
            comments.append(line)
        elif line.strip() or not comments:  # blank lines among comments are none of the table
            if kept:
                return comments, "\n".join([*kept, *lines[k:]])
            kept.append(line)
    return comments, "\n".join(kept)


def _is_row_of(header: str, line: str, options: ReadOptions) -> bool:
    """Whether a line that looks like a comment is a row below these names: #1,0.5 of trial,x."""
    for mark in (",", ";", "\t"):
        if mark in header and line.count(mark) == header.count(mark):
            return any(plain_number(cell, options.marks) is not None for cell in line.split(mark))
    return False


def _find_separator(lines: Sequence[str], options: ReadOptions) -> str:
    """What stands between the cells of every line: a comma where there are any, else a semicolon, a tab or spaces."""
    body = lines[1:] or lines
    if not body or any("," in line for line in body):
        return ","
    for mark in (";", "\t"):
        if all(mark in line for line in lines):
            return mark
    n_columns = _usual_count(lines)
    rows = [line.split() for line in body]
    even = [row for row in rows if len(row) == n_columns and _is_row(row, options)]
    grouped = options.thousands == " " or all(_IN_THREES.fullmatch(line.strip()) for line in body)
    if n_columns > 1 and len(even) >= _MOSTLY * len(rows) and not grouped and "\t\t" not in "".join(body):
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


def _header_among(comments: Sequence[str], lines: Sequence[str], separator: str, options: ReadOptions) -> list[str]:
    """The names of the columns, where a comment holds as many and no other line does: the one that names a time, else
    the last."""
    first = _cells(lines[0], separator) if lines else []
    if options.header is not None or not first or not all(holds_data(cell, options.marks) for cell in first):
        return []
    found = []
    for line in comments:
        words = line.rstrip("\r\n ").lstrip().lstrip("#")
        words = words if separator == "\t" else words.strip()
        for cells in (_cells(words, separator), [cell.strip() for cell in _WIDE.split(words)]):
            names = [cell for cell in cells if cell]
            a_name = len(first) > 1 or " " not in words
            fits = len(cells) == len(first) and a_name and len({*names}) == len(names) >= len(cells) - 1
            if fits and not any(holds_data(cell, options.marks) for cell in cells):
                found.append(cells)
    timed = [cells for cells in found if any(map(is_time_name, cells))]
    return (timed or found or [[]])[-1 if not timed else 0]


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
