"""Text with a separator: CSV and TSV, also packed with gzip."""

import csv
import io
import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from lamperti._errors import SeriesError
from lamperti.data._checks import EXACT_INTEGER, as_names
from lamperti.data.local import open_local
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table
from lamperti.data.writing import FORMULA_STARTS

_ISO_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([T ].*)?$")
_WHOLE = re.compile(r"^\s*[+-]?\d{1,400}\s*$")  # longer ones are beyond the largest float
_EMPTY = [
    "", "NaN", "nan", "-NaN", "-nan", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None",
    "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
]  # fmt: skip
_BLOCK = 1 << 20
_MAX_RATIO, _HARMLESS = (
    200,
    1 << 24,
)  # text packs to a tenth, repetitive text to a fiftieth; small files may do as they like


def read_text(path: Path, options: ReadOptions) -> Table:
    """The table in a text file. A first row of numbers (or dates) only is data, not a header."""
    with open_local(path) as file:
        content = _content(file, options.max_bytes)
    text = _decoded(content, options.encoding)
    tabbed = {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes}
    separator = options.separator or ("\t" if tabbed else ",")
    try:
        return _parse(text, separator, options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        kind = {",": "comma", "\t": "tab", ";": "semicolon"}.get(separator, repr(separator))
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
            if size > max(_HARMLESS, _MAX_RATIO * packed):
                raise SeriesError(f"the file unpacks to more than {_MAX_RATIO} times its size, which data does not.")
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
    except LookupError:
        raise SeriesError(f"there is no encoding {encoding!r}. Try utf-8, utf-16 or latin-1.") from None
    except UnicodeError as error:
        place = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise SeriesError(
            f"not {'UTF-8' if encoding == 'utf-8-sig' else encoding} text ({place}). Save the file as UTF-8, or name "
            'its encoding, as in encoding="latin-1" for older Windows and instrument files.'
        ) from None
    if "\0" in text:
        raise SeriesError(f"holds a NUL character (at {text.index(chr(0))}), which text does not. Export it again.")
    return text.removeprefix("\ufeff")


def _parse(text: str, separator: str, options: ReadOptions) -> Table:
    first = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), None)
    if not first:
        raise SeriesError("the file is empty or starts with a blank line. Give a header and at least two rows.")
    headless = all(_is_data(cell, options.decimal) for cell in first)
    names = as_names(None if headless else [_plain(cell.strip()) for cell in first], len(first))
    other = next((mark for mark in ";\t" if len(first) == 1 and mark in first[0]), None)
    if other:
        raise SeriesError(
            f"the first row {first[0][:60]!r} is separated by semicolons or tabs. Pass separator={other!r}, or save "
            "the file with commas."
        )
    labels = [name for name in (options.id, options.channel) if name in names]

    def parsed(as_text: Sequence[str], columns: list[str] | None = None) -> pd.DataFrame:
        types: Any = dict.fromkeys(as_text, str)
        return pd.read_csv(
            io.StringIO(text, newline=""),
            sep=separator,
            names=list(names),
            usecols=columns,  # None: rows longer than the header are noticed
            header=None,
            skiprows=0 if headless else 1,
            index_col=False,
            dtype=types,
            keep_default_na=False,
            na_values={name: [""] if name in labels else _EMPTY for name in names},  # NA is sodium, too
            skip_blank_lines=False,  # in a file of one column a blank line is a missing value
            skipinitialspace=True,
            decimal=options.decimal or ".",
            thousands=options.thousands,
            low_memory=False,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would be cut
        frame = parsed(labels)  # as text: 007 and 7 are two subjects
        filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
        if not filled.size:
            raise SeriesError("the file has a header but no rows of data.")
        frame = frame.iloc[: filled[-1] + 1]  # blank lines at the end are no samples
        columns = {name: _cells(frame[name], options) for name in names}
        rounded = [name for name in names if _may_be_rounded(columns[name])]
        if rounded:
            written = parsed(rounded, rounded).iloc[: len(frame)].map(lambda cell: _in_english(cell, options))
            columns |= {name: _exact(columns[name], written[name]) for name in rounded}
    start = 1 if headless else 2
    lines = text.count("\n", 0, len(text.rstrip())) + 1  # more than rows where a cell holds a line break
    return Table(columns, named=not headless, first_line=start if lines == len(frame) + start - 1 else None)


def _may_be_rounded(cells: np.ndarray) -> bool:
    """Whether floats may stand for integers that were written with more digits: an empty cell makes floats of all."""
    with np.errstate(invalid="ignore"):
        return cells.dtype.kind == "f" and bool((np.abs(cells) >= EXACT_INTEGER).any())


def _exact(cells: np.ndarray, written: pd.Series) -> np.ndarray:
    """The column with integers as they were written, if there are any; the gate rounds them, aloud."""
    whole = [int(cell) if isinstance(cell, str) and _WHOLE.match(cell) else None for cell in written]
    if all(number is None for number in whole):
        return cells
    numbers = [None if cell != cell else float(cell) for cell in cells]
    exact = [number if found is None else found for number, found in zip(numbers, whole, strict=True)]
    return np.array([*exact, None], dtype=object)[:-1]


def _is_data(cell: str, decimal: str | None) -> bool:
    try:
        float(cell.replace(decimal, ".") if decimal else cell)
    except ValueError:
        return bool(_ISO_DATE.match(cell.strip()))
    return True


def _plain(name: str) -> str:
    """A name without the apostrophe that `write_csv` puts before what a spreadsheet would run."""
    return name[1:] if name.startswith("'") and name[1:].lstrip(" ").startswith(FORMULA_STARTS) else name


def _cells(column: pd.Series, options: ReadOptions) -> np.ndarray:
    """Numbers and booleans as pandas found them; what it left as text, as numbers if the words declared missing are
    all that stands in the way."""
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy()
    # pandas leaves a blank cell blank where integers fit none of its types.
    cells = column.astype(object).where(column.notna() & (column != ""), None).to_numpy()
    if column.name in (options.id, options.channel, options.time, *options.codes):
        return cells
    declared = [isinstance(cell, str) and cell.strip() in options.declared.tokens for cell in cells]
    rest = pd.Series(cells).mask(np.array(declared, dtype=bool), None)
    if options.decimal or options.thousands:
        rest = rest.map(lambda cell: _in_english(cell, options), na_action="ignore")
    numbers = _numbers(rest)
    if numbers is None:
        return cells
    if not any(declared):
        return numbers
    # Declared words stay in their place as words: the gate counts them as missing.
    found = numbers.astype(object)
    found[pd.isna(numbers)] = None
    return np.where(declared, cells, found)


def _numbers(cells: pd.Series) -> np.ndarray | None:
    """Text, or nothing, as numbers; None where some of it is none."""
    parsed: Any = cells
    try:
        # Integers that fit none of the types of pandas stay text.
        whole = all(isinstance(cell, str) and _WHOLE.match(cell) for cell in cells.dropna())
        parsed = cells.map(float, na_action="ignore").astype(float) if whole else pd.to_numeric(cells)
    except (ValueError, TypeError, OverflowError):
        return None
    if not pd.api.types.is_numeric_dtype(parsed.dtype) or pd.api.types.is_bool_dtype(parsed.dtype):
        return None
    numbers = parsed.to_numpy()
    return _exact(numbers, cells) if _may_be_rounded(numbers) else numbers


def _in_english(cell: object, options: ReadOptions) -> object:
    if not isinstance(cell, str):
        return cell
    plain = cell.replace(options.thousands, "") if options.thousands else cell
    return plain.replace(options.decimal, ".") if options.decimal else plain
