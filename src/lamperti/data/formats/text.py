"""Text with a separator: CSV and TSV, also packed with gzip."""

import csv
import io
import warnings
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data.formats.header import LOOKED_AT, SEARCHED, Header, read_header, table_start
from lamperti.data.formats.layout import Layout, lay_out
from lamperti.data.formats.written import exact, may_be_rounded, read_cells
from lamperti.data.index import without_index
from lamperti.data.local import open_local
from lamperti.data.options import ReadOptions
from lamperti.data.ratio import check_ratio
from lamperti.data.table import Table
from lamperti.data.time_names import is_time_name

_EMPTY = [
    "", "NaN", "nan", "-NaN", "-nan", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None",
    "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
]  # fmt: skip
_BLOCK = 1 << 20


def read_text(path: Path, options: ReadOptions) -> Table:
    """The table in a text file."""
    with open_local(path) as file:
        content = _content(file, options.max_bytes)
    text = _decoded(content, options.encoding)
    tabbed = {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes}
    layout = lay_out(_without_lines(text, options.skip), options.separator or ("\t" if tabbed else None), options)
    try:
        return _parse(layout, options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        kind = {",": "comma", "\t": "tab", ";": "semicolon"}.get(layout.separator, repr(layout.separator))
        raise SeriesError(f"not a table of {kind}-separated values ({error}). Mend that row.") from None


def _content(file: BinaryIO, most: int) -> bytes:
    head = file.read(2)
    file.seek(0)
    if head == b"\x1f\x8b":
        return _unpacked(file, most)
    content = file.read(most + 1)
    if len(content) > most:
        raise SeriesError(f"the file holds more than {most} bytes. Cut it, or allow more with max_bytes=.")
    return content


def _unpacked(file: BinaryIO, most: int) -> bytes:
    """Unpack gzip block by block, and stop as soon as it grows beyond all measure."""
    parts, packed, size = [], 0, 0
    decoder = zlib.decompressobj(wbits=31)
    pending = b""
    try:
        while block := pending or file.read(_BLOCK):
            packed += 0 if pending else len(block)
            part = decoder.decompress(block, _BLOCK)
            parts.append(part)
            size += len(part)
            if size > most:
                raise SeriesError(f"the file unpacks to more than {most} bytes. Allow more with max_bytes=.")
            check_ratio("the file", packed, size)
            pending = decoder.unconsumed_tail
            if decoder.eof:  # a file may hold several packed parts one after the other
                pending = decoder.unused_data.lstrip(b"\0")
                decoder = zlib.decompressobj(wbits=31)
                if not pending and file.read(1) == b"":
                    return b"".join(parts)
                if not pending:
                    file.seek(-1, io.SEEK_CUR)
    except zlib.error as error:
        raise SeriesError(f"the packed file is damaged ({error}). Copy it again.") from None
    raise SeriesError("the packed file ends too early. Copy it again.")


def _decoded(content: bytes, encoding: str | None) -> str:
    if encoding is None:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise SeriesError('not UTF-8 text but UTF-16. Save the file as UTF-8, or pass encoding="utf-16".')
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        place = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise SeriesError(
            f"not {'UTF-8' if encoding == 'utf-8-sig' else encoding} text ({place}). Save the file as UTF-8, or name "
            'its encoding, as in encoding="latin-1" for older Windows and instrument files.'
        ) from None
    except (LookupError, ValueError):  # a name that is unknown, or cannot be one
        raise SeriesError(f"there is no encoding {encoding!r}. Try utf-8, utf-16 or latin-1.") from None
    if "\0" in text:
        raise SeriesError(f"holds a NUL character (at {text.index(chr(0))}), which text does not. Export it again.")
    return text.removeprefix("\ufeff")


def _parse(layout: Layout, options: ReadOptions) -> Table:
    text, separator, laid_out, removed = layout
    before = options.skip + removed
    rows, ends = _first_rows(text, separator)
    start = table_start(rows, options.marks) if not options.skip else 0
    if start:
        raise SeriesError(
            f"the table seems to start at line {before + ends[start - 1] + 1} of the file "
            f"({separator.join(rows[start])[:60]}). If so, pass skip={before + ends[start - 1]} to leave out the lines "
            "before it."
        )
    rows = rows[:LOOKED_AT]
    if not rows or not rows[0]:
        raise SeriesError("the file is empty or starts with a blank line. Give a header and at least two rows.")
    other = next((mark for mark in ";\t" if len(rows[0]) == 1 and mark in rows[0][0]), None)
    if other:
        commas = any(len(row) > 1 for row in rows[1:])  # which were split at them
        decimal = ', and decimal="," if the commas in the rows below are decimal marks' if commas else ""
        raise SeriesError(
            f"the first row {rows[0][0][:60]!r} is separated by semicolons or tabs. Pass separator={other!r}{decimal}."
        )
    header = read_header(rows, options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would be cut
        columns = _columns(text, separator, header, options)
    start = 1 if header.is_data else 2
    lines = text.count("\n", 0, len(text.rstrip())) + 1  # more than rows where a cell holds a line break
    one_line_each = lines == len(columns[header.names[0]]) + start - 1
    columns, times, repairs = without_index(columns, header.index, "the first column has no name", options)
    return Table(
        columns,
        times=times,
        named=not header.is_data,
        repairs=(*laid_out, *header.repairs, *repairs),
        first_line=start + before if one_line_each else None,
    )


def _without_lines(text: str, n: int) -> str:
    """What comes after the first lines."""
    lines = io.StringIO(text, newline="")
    for _ in range(n):
        if not lines.readline():
            raise SeriesError(f"skip={n} leaves nothing: the file is shorter. Give a smaller number.")
    return lines.read()


def _first_rows(text: str, separator: str) -> tuple[list[list[str]], list[int]]:
    """Rows that tell where the table starts, and the line that each ends with."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    found = [(row, reader.line_num) for row in islice(reader, SEARCHED)]
    return [row for row, _ in found], [line for _, line in found]


def _columns(text: str, separator: str, header: Header, options: ReadOptions) -> dict[str, np.ndarray]:
    names = header.names
    labels = [name for name in (options.id, options.channel) if name in names]

    # One list for all is much faster than one for each of ten thousand columns. NA is sodium, too.
    empty = {name: [""] if name in labels else _EMPTY for name in names} if labels else _EMPTY

    def parsed(as_text: Sequence[str], columns: list[str] | None = None) -> pd.DataFrame:
        types: Any = dict.fromkeys(as_text, str)
        return pd.read_csv(
            io.StringIO(text, newline=""),
            sep=separator,
            names=list(names),
            usecols=columns,  # None: rows longer than the header are noticed
            header=None,
            skiprows=0 if header.is_data else 1,
            index_col=False,
            dtype=types,
            keep_default_na=False,
            na_values=empty,
            skip_blank_lines=False,  # in a file of one column a blank line is a missing value
            skipinitialspace=True,
            low_memory=False,
        )

    as_text = labels  # 007 and 7 are two subjects
    if options.time_format is not None:
        as_text = [*labels, *(name for name in names if name == options.time or is_time_name(name))]
    # pandas takes a mark between thousands wherever it stands.
    frame = parsed(names if options.marks.declared else as_text)
    filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
    if not filled.size:
        raise SeriesError("the file has a header but no rows of data.")
    frame = frame.iloc[: filled[-1] + 1]  # blank lines at the end are no samples
    columns = {str(name): read_cells(column, options) for name, column in frame.items()}
    rounded = [name for name in names if may_be_rounded(columns[name])]
    if rounded:
        written = parsed(rounded, rounded).iloc[: len(frame)]
        columns |= {name: exact(columns[name], written[name], options.marks) for name in rounded}
    return columns
