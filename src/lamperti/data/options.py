"""How data is to be read: the options that library and command line share."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lamperti._errors import ConfigError
from lamperti._numbers import as_count, as_whole, is_real
from lamperti.data.numerals import Marks

MAX_BYTES = 2**31
_TEXT = (
    "time", "id", "channel", "value", "axes", "array", "time_unit", "separator", "decimal", "thousands", "encoding",
    "time_format", "timezone",
)  # fmt: skip
_NEVER = {"separator": "", "decimal": "+-", "thousands": "+-"}  # what a mark cannot be, beside digits and letters


@dataclass(frozen=True)
class Missing:
    """What stands for a value that was not observed."""

    nan: bool  # NaN and empty cells
    numbers: tuple[float, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of `lamperti.read`.

    What is what

    - `columns`: the channels; by default all columns but `time` and `id`.
    - `time`: the column (or dimension) of sampling times: numbers, or dates, which become seconds since 1970 in
      UTC. When neither it nor `dt` is given, the column named "time", "t", "date", "datetime", "timestamp" or "ds"
      is taken (also "Time" and "TIME"), unless `columns` lists it; two of them are refused. Without any of them, so is
      one named "year", "day", "hour", "seconds", "index" or the like that increases in equal steps.
    - `dt`: the sampling step, for data without times.
    - `id`: a column (or dimension) whose distinct values split the rows into series, in order of appearance.
    - `channel`, `value`: for long tables, the column that names the channel of each row and the one of its value.
    - `axes`: of a bare array: "T", "RT", "TP" or "RTP" (R series, T times, P channels). Two axes are "RT" by default.
    - `array`: which of several arrays in an NPZ file.
    - `units`: unit of each channel; `time_unit`: of numeric times. They are carried along and shown.

    What may be done to it; whatever is done is told by `Series.repairs`

    - `missing`: "refuse" (default); "nan" for NaN and empty cells; or numbers and words that mean missing, such as
      ("nan", -999, "n.d.").
    - `codes`: columns of booleans, categories or words to be numbered 0, 1, ...
    - `sort`: put rows in order of time. `duplicates`: "refuse", or keep "first", "last" or "mean" of equal times.
    - `split_gaps`: cut a series where a step exceeds so many median steps.
    - `drop_constant`: leave out channels that do not vary.

    How text is written

    - `separator`: "," by default, a tab in .tsv files; where the rows hold no commas, semicolons, tabs or spaces are
      found. " " stands for any number of spaces. `decimal`: "." by default. `thousands`: none by default.
    - `header`: whether the first row names the columns. By default one of numbers is data; one that may be either, as
      0, 1, 2 or 2019, 2020, is refused until this is said.
    - `skip`: lines at the start of the file that are no part of the table.
    - `encoding`: "utf-8" by default, with or without a byte order mark.
    - `time_format`: of dates that are not ISO, as "%d/%m/%Y %H:%M". `timezone`: of dates without an offset; UTC by
      default.

    - `max_bytes`: the most that a file may hold once unpacked.
    """

    columns: Sequence[str] | str | None = None
    time: str | None = None
    id: str | None = None
    dt: float | None = None
    missing: Any = "refuse"
    channel: str | None = None
    value: str | None = None
    axes: str | None = None
    array: str | None = None
    units: Mapping[str, str] | None = None
    time_unit: str = ""
    codes: Sequence[str] | str = ()
    sort: bool = False
    duplicates: str = "refuse"
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
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        for name in ("columns", "codes"):
            value = getattr(self, name)
            if value is not None or name == "codes":
                object.__setattr__(self, name, _as_names(name, value if value is not None else ()))
        for name in _TEXT:
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name == "time_unit"):
                raise ConfigError(f"{name} must be text; got {value!r}.")
        for name in ("time_format", "timezone"):
            if getattr(self, name) == "":
                raise ConfigError(f"{name} is empty. Leave it out, or give one.")
        for name in ("sort", "drop_constant"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        if self.header is not None and not isinstance(self.header, bool):
            raise ConfigError(f"header must be True or False; got {self.header!r}.")
        self._check_units()
        _one_of("duplicates", self.duplicates, ("refuse", "first", "last", "mean"))
        if self.axes is not None:
            object.__setattr__(self, "axes", self.axes.upper())
            _one_of("axes", self.axes, ("T", "RT", "TP", "RTP"))
        if (self.channel is None) != (self.value is None):
            raise ConfigError("a long table needs both channel= and value=; give the other one, too.")
        if self.split_gaps is not None and not (is_real(self.split_gaps) and self.split_gaps > 1):
            raise ConfigError(f"split_gaps must exceed 1 (median steps, a number); got {self.split_gaps!r}.")
        for name in _NEVER:
            mark = getattr(self, name)
            if mark is not None and (len(mark) != 1 or mark in '\r\n"\0'):
                raise ConfigError(f"{name} must be one character; got {mark!r}.")
            if mark is not None and (mark.isalnum() or mark in _NEVER[name]):
                raise ConfigError(f"{name} cannot be {mark!r}, which is part of numbers or words. Give another mark.")
        if self.separator is not None and not self.separator.isascii():
            raise ConfigError(f"separator cannot be {self.separator!r}, which is not ASCII. Export with another one.")
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ConfigError(f"decimal and thousands cannot both be {self.thousands!r}.")
        as_count("max_bytes", self.max_bytes)
        as_whole("skip", self.skip, 0)
        self.declared  # noqa: B018 - refuses what cannot be understood now, before a file is opened

    def _check_units(self) -> None:
        units = self.units
        if units is None:
            return
        if not isinstance(units, Mapping) or not all(isinstance(part, str) for pair in units.items() for part in pair):
            raise ConfigError(f"units must be a mapping such as {{'flow': 'ml/s'}}, text to text; got {units!r}.")

    @property
    def marks(self) -> Marks:
        """How numbers are written."""
        return Marks(self.decimal, self.thousands)

    @property
    def declared(self) -> Missing:
        """What `missing` says, as numbers and as words."""
        entries = [self.missing] if isinstance(self.missing, str) or not isinstance(self.missing, Iterable) else None
        nan, numbers, tokens = False, [], []
        for entry in entries or list(self.missing):
            if isinstance(entry, str) and entry in ("refuse", "nan", ""):
                nan |= entry != "refuse"
            elif isinstance(entry, str) or is_real(entry):
                tokens.append(str(entry))
                try:
                    numbers.append(float(entry))
                except ValueError:
                    continue  # a word, which is among the tokens
            else:
                raise ConfigError(f'missing must be "refuse", "nan", or numbers and words; got {entry!r}.')
        nan |= any(number != number for number in numbers)
        return Missing(nan, tuple(n for n in numbers if n == n), tuple(tokens))


def read_options(given: Mapping[str, Any]) -> ReadOptions:
    """The options by name; an unknown one is refused with the one that was probably meant."""
    known = [field.name for field in dataclasses.fields(ReadOptions)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known options: {', '.join(known)}."
            raise ConfigError(f"read has no option {name!r}. {hint}")
    return ReadOptions(**given)


def _as_names(name: str, value: Any) -> tuple[str, ...]:
    if name == "columns" and isinstance(value, (set, frozenset)):
        raise ConfigError("columns is a set, which has no order. Give a list, in the order of the channels.")
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(one, str) for one in names):
        raise ConfigError(f"{name} must be a name or a list of names; got {value!r}.")
    return names


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
