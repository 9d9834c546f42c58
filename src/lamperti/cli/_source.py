"""The data of a command, and how it is read."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from lamperti._errors import ConfigError
from lamperti.data.options import ReadOptions
from lamperti.data.reading import read
from lamperti.data.series import Series

_LISTS = ("columns", "missing", "codes")
_MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "point": "."}
_WORDS = {mark: word for word, mark in _MARKS.items() if word.isalpha()}


@Parameter(name="*")
@dataclass(frozen=True)
class Source:
    """Options of reading.

    Args:
        columns: channels, separated by commas; by default all but time and id, or those of the model
        time: column of the sampling times (numbers or dates); "time", "t", "date" and the like are found without asking
        id: column whose values split the rows into series
        dt: sampling step, for a file without times
        missing: what means missing, separated by commas: nan for NaN and empty cells, numbers, words
        channel: for long tables, the column that names the channel of each row (with --value)
        value: for long tables, the column of values (with --channel)
        axes: of a bare array: T, RT, TP or RTP (series R, times T, channels P)
        array: which of several arrays in an NPZ file
        units: of the channels, as flow=ml/s,pressure=mmHg; may be given several times
        time_unit: of numeric times
        codes: columns of booleans, categories or words to be numbered, separated by commas
        sort: put rows in order of time
        duplicates: keep the first, the last or the mean of rows with equal times
        split_gaps: cut series where a step exceeds so many median steps
        drop_constant: leave out channels that do not vary
        separator: between cells, or one of tab, comma, semicolon, space; found by itself where there are no commas
        decimal: mark of decimals, or one of point, comma
        thousands: mark between thousands, or one of point, comma, space
        header: whether the first row names the columns, for a row of numbers that may be either
        skip: lines at the start of the file that are no part of the table
        encoding: of the text, as latin-1
        time_format: of dates that are not ISO, as "%d/%m/%Y %H:%M"
        timezone: of dates without an offset, as Europe/Madrid
        max_bytes: the most that a file may hold once unpacked
    """

    columns: str | None = None
    time: str | None = None
    id: str | None = None
    dt: float | None = None
    missing: str | None = None
    channel: str | None = None
    value: str | None = None
    axes: str | None = None
    array: str | None = None
    units: Annotated[list[str] | None, Parameter(negative=())] = None
    time_unit: str | None = None
    codes: str | None = None
    sort: bool = False
    duplicates: Literal["refuse", "first", "last", "mean"] = "refuse"
    split_gaps: float | None = None
    drop_constant: bool = False
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    header: bool | None = None
    skip: int = 0
    encoding: str | None = None
    time_format: str | None = None
    timezone: str | None = None
    max_bytes: int | None = None

    def read(self, path: Path, channels: Sequence[str] | None = None) -> list[Series]:
        """The series of a file; ``channels`` are read unless the user named others."""
        return read(path, **self.options(channels))

    def options(self, channels: Sequence[str] | None = None) -> dict[str, Any]:
        """The options that were given, as `lamperti.read` takes them."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(ReadOptions)}
        given = {name: value for name, value in given.items() if value is not None}
        for name in _LISTS:
            if name in given:
                given[name] = [part.strip() for part in given[name].split(",")]
        for name in ("separator", "decimal", "thousands"):
            if name in given:
                given[name] = _MARKS.get(given[name], given[name])
        if "units" in given:
            given["units"] = _pairs(",".join(given["units"]))
        if channels is not None:
            given.setdefault("columns", list(channels))
        return given


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as `Source.options` gives them, back as words of a command line; without those that change nothing."""
    words = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = ",".join(f"{channel}={unit}" for channel, unit in value.items())
        elif isinstance(value, list | tuple):
            value = ",".join(map(str, value))
        if value != getattr(_NOTHING, name, None):
            flag = f"--{name.replace('_', '-')}"
            if isinstance(value, bool):
                words.append(flag if value else f"--no-{name.replace('_', '-')}")
            else:
                words.append(f"{flag}={_WORDS.get(value, value)}")
    return words


_NOTHING = Source()
_VALUE = r"""(?:"[^"]*"|'[^']*')"""
_OPTION = re.compile(
    rf"\b({'|'.join(field.name for field in dataclasses.fields(ReadOptions))})"
    rf"=(?:True\b|(?P<no>False\b)|(?P<values>{_VALUE}(?:(?:, {_VALUE})* or {_VALUE})?)|(?P<bare>\w*))"
)
_LIBRARY_ONLY = (", or a mask", ", or mark the cell as missing with a mask")  # ways out that a file has not


def as_flags(text: str) -> str:
    """A message of the library in the words of the command line: drop_constant=True as --drop-constant."""

    def word(found: re.Match[str]) -> str:
        value = found.group()[1:-1]
        value = _WORDS.get(_MARKS.get(value, value), value)
        return f'"{value}"' if re.search(r"[^\w.,-]", value) else value

    def flag(found: re.Match) -> str:
        if found["no"]:
            return f"--no-{found[1].replace('_', '-')}"
        value = re.sub(_VALUE, word, found["values"] or "") or found["bare"] or ""
        return f"--{found[1].replace('_', '-')} {value}".rstrip()

    for advice in _LIBRARY_ONLY:
        text = text.replace(f"{advice}.", ".")
    return _OPTION.sub(flag, text)


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = next(("".join(pair) for pair in pairs if not pair[1] or not pair[0].strip()), None)
    if wrong is not None:
        raise ConfigError(f"--units takes channel=unit pairs, as flow=ml/s,pressure=mmHg; got {wrong!r}.")
    return {name.strip(): unit.strip() for name, _, unit in pairs}
