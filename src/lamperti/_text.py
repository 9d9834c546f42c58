"""Text of foreign origin (names of columns, units and files) made safe to show."""

import unicodedata

# Cc, Cf: control characters and marks that reorder or hide text; Cs, Co, Cn: what no terminal or font can draw.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(text: str) -> str:
    """The text on one line, with control and formatting characters written out as escapes.

    A column name that holds terminal commands, or marks that turn the direction of writing, shows what it holds instead
    of doing it.

    >>> print(visible("flow\\x1b[2J"))
    flow\\x1b[2J
    """
    joined = " ".join(text.split())
    return "".join(_escape(c) if unicodedata.category(c) in _UNSEEN else c for c in joined)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "gap"), counted(2, "gap")
    ('1 gap', '2 gaps')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def literal(text: str) -> str:
    """The same for a figure, where dollar signs would start a formula."""
    return visible(text).replace("$", "\\$")
