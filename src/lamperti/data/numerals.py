"""How numbers are written as text: with the marks that were declared, in their places, or not at all."""

import re
from functools import cache
from typing import NamedTuple

_SPACES = " \u00a0\u202f"  # the wide and the narrow one that does not break: what is declared as " "
_SIGNS = "+-eE"
_LIKE_A_NUMBER = re.compile(r"[+-]?[\d.,'’_ \u00a0\u202f]*\d[\d.,'’_ \u00a0\u202f]*([eE][+-]?\d+)?", re.ASCII)


class Marks(NamedTuple):
    """The mark of decimals (None: a point) and the one between thousands (None: there is none)."""

    decimal: str | None = None
    thousands: str | None = None

    @property
    def declared(self) -> bool:
        return self.decimal is not None or self.thousands is not None


def plain_number(text: str, marks: Marks) -> str | None:
    """A number as Python writes it; None for text that is no number written with these marks.

    >>> plain_number("1.234,5", Marks(",", ".")), plain_number("1.7", Marks(",", "."))
    ('1234.5', None)
    """
    text = text.strip()
    if not _pattern(marks).fullmatch(text):
        return None
    for mark in _SPACES if marks.thousands == " " else marks.thousands or "":
        text = text.replace(mark, "")
    return text.replace(marks.decimal, ".") if marks.decimal else text


@cache
def _pattern(marks: Marks) -> re.Pattern[str]:
    point = re.escape(marks.decimal or ".")
    whole = r"\d+"
    if marks.thousands:
        mark = f"[{_SPACES}]" if marks.thousands == " " else re.escape(marks.thousands)
        whole = rf"(?:\d{{1,3}}(?:{mark}\d{{3}})+|\d+)"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return re.compile(rf"[+-]?(?:{number}|(?i:inf|infinity|nan))", re.ASCII)


def misplaced_mark(text: str, marks: Marks) -> str | None:
    """What is wrong with the marks of a number that `plain_number` did not take; None where it is no number at all."""
    text = text.strip()
    if not _LIKE_A_NUMBER.fullmatch(text):
        return None
    decimal, thousands = marks.decimal or ".", marks.thousands
    own = {decimal, *(_SPACES if thousands == " " else thousands or "")}
    foreign = next((c for c in text if not (c.isdigit() or c in _SIGNS or c in own)), None)
    if foreign is not None:
        between = " " if foreign in _SPACES else foreign
        as_decimal = f"if it is the decimal mark, pass decimal={_quoted(foreign)}" if foreign in ".," else ""
        return (
            f"with the mark {foreign!r}, which was not declared. If it separates thousands, pass "
            f"thousands={_quoted(between)}{'; ' * bool(as_decimal)}{as_decimal}."
        )
    if thousands is not None and any(c in own - {decimal} for c in text):
        return (
            f"where {thousands!r} does not separate groups of three digits. If it is the decimal mark, pass "
            f"decimal={_quoted(thousands)}, and another mark or none as thousands=."
        )
    other = "," if decimal == "." else "."
    return (
        f"where the decimal mark {decimal!r} comes twice. If it separates thousands, pass "
        f"thousands={_quoted(decimal)} and decimal={_quoted(other)}."
    )


def _quoted(mark: str) -> str:
    return f'"{mark}"'
