"""Terminals that cannot show every character get what comes nearest."""

import codecs
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from lamperti._text import escape

_NEAREST = {"×": "x", "±": "+/-", "–": "-", "—": "-", "…": "...", "−": "-", "’": "'", "“": '"', "”": '"', "→": "->"}
_NEAREST |= {"⁵": "^5", "²": "2", "µ": "u", "°": "deg", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+"}
_BRAILLE, _UPPER, _LOWER = 0x2800, 0x1B, 0xE4  # the pattern without dots; bits of its upper and lower dots


def nearest(character: str) -> str:
    """A character in ASCII: of braille whether dots are above, below or both; what has no likeness as its escape."""
    dots = ord(character) - _BRAILLE
    if 0 <= dots < 0x100:
        return {(False, False): " ", (True, False): "'", (False, True): ".", (True, True): ":"}[
            bool(dots & _UPPER), bool(dots & _LOWER)
        ]
    return _NEAREST.get(character) or escape(character)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(nearest, error.object[error.start : error.end])), error.end


codecs.register_error("lamperti-nearest", _replace)


@contextmanager
def drawable(*streams: TextIO) -> Iterator[None]:
    """Within it, what a stream's encoding does not have is written as what comes nearest."""
    with ExitStack() as stack:
        for stream in streams:
            if isinstance(stream, io.TextIOWrapper) and stream.errors is not None:
                stack.callback(stream.reconfigure, errors=stream.errors)
                stream.reconfigure(errors="lamperti-nearest")
        yield
