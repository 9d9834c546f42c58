"""Ctrl-C and SIGTERM during training: the first is noted and obeyed after the iteration, the second at once.

Who has a handler of his own for the signal, and the system where there is none, gets it when all is kept: `pass_on`.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Literal, NoReturn

_MEANING: dict[int, Literal["interrupted", "terminated"]] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
}


class Terminated(BaseException):
    """SIGTERM, where it is obeyed at once; for it what KeyboardInterrupt is for Ctrl-C."""


def raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    """A handler of SIGTERM; for it what `signal.default_int_handler` is for Ctrl-C."""
    raise Terminated


class Interrupts:
    """Used as a context. ``asked`` says how training was asked to stop, if it was.

    Only the main thread can watch signals; elsewhere nothing changes. A signal that is ignored stays ignored.
    """

    def __init__(self) -> None:
        self.asked: Literal["interrupted", "terminated"] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in _MEANING:
            if _can_be_watched(number):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._put_back()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = _MEANING[number]
        self._put_back()  # so that the next signal acts at once

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


@contextmanager
def termination_raised() -> Iterator[None]:
    """Within it, SIGTERM raises `Terminated` at once; in other threads than the main one, nothing changes."""
    before = signal.signal(signal.SIGTERM, raise_terminated) if _can_be_watched(signal.SIGTERM) else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def pass_on(status: str) -> None:
    """Give the signal that ended a training to who would have got it: a handler is called, and where there is none,
    the system ends the process as the signal does. Handlers that raise an exception have nothing to add."""
    number = next((number for number, meaning in _MEANING.items() if meaning == status), None)
    if number is not None and signal.getsignal(number) not in (signal.default_int_handler, raise_terminated):
        signal.raise_signal(number)


def _can_be_watched(number: int) -> bool:
    # None: set by code that is not Python's, which could not be put back.
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(number) not in (None, signal.SIG_IGN)
