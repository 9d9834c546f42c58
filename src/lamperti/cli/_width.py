"""Terminals that say they are too narrow for words are not believed: laying out help in no columns never ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LEAST = 20


@contextmanager
def wide_enough() -> Iterator[None]:
    """Within it, ``COLUMNS`` is not set where it is less than a few words wide."""
    said = os.environ.get("COLUMNS", "")
    too_narrow = said.isdecimal() and int(said) < _LEAST
    if too_narrow:
        del os.environ["COLUMNS"]
    try:
        yield
    finally:
        if too_narrow:
            os.environ["COLUMNS"] = said
