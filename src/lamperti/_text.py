"""Text of foreign origin (names of columns, units and files) made safe to show."""

import re
import unicodedata

# Cc, Cf: control characters and marks that reorder or hide text; Cs, Co, Cn: what no terminal or font can draw.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_COMMANDS = ("Cc", "Cf", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """The text on one line, with control and formatting characters written out as escapes.

    A column name that holds terminal commands, or marks that turn the direction of writing, shows what it holds instead
    of doing it.

    >>> print(visible("flow\\x1b[2J"))
    flow\\x1b[2J
    """
    joined = " ".join(text.split())
    return "".join(escape(c) if unicodedata.category(c) in _UNSEEN else c for c in joined)


def escaped(text: str) -> str:
    """The text as it is, lines and spaces included, with what cannot be seen written out as escapes."""
    return "".join(escape(c) if c != "\n" and unicodedata.category(c) in _UNSEEN else c for c in text)


def seen(text: str) -> str:
    """The text without control characters, marks of direction and others that cannot be seen; line breaks and tabs
    become spaces. What joins or parts letters in scripts that need it stays.

    >>> seen("fl\\u202eow\\x1b\\n(ml)")
    'flow (ml)'
    """
    spaced = re.sub(r"[\t\n\v\f\r\x85\u2028\u2029]+", " ", text)
    return "".join(c for c in spaced if c in _JOINERS or unicodedata.category(c) not in _COMMANDS).strip()


def escape(character: str) -> str:
    """A character written out, as \\xe9 for é."""
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
