"""What a command says when it is done: a sentence, one JSON object with --json, nothing with --quiet."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rich.console import Console

from lamperti._text import visible

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Within it, commands that write files say nothing of it (if ``quiet``); errors and warnings are still told."""
    token = _quiet.set(quiet)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    return _quiet.get()


def say(sentence: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """``facts`` as JSON if that was asked for, which not even --quiet holds back; else the sentence."""
    if as_json:
        say_json(facts)
    elif not _quiet.get():
        Console(highlight=False, markup=False, emoji=False).print(visible(sentence), soft_wrap=True)


def say_json(facts: Mapping[str, Any]) -> None:
    """One line of JSON; numbers that are not finite, which JSON does not have, are null."""
    print(json.dumps(_plain(facts), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
