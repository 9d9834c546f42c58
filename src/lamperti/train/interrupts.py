"""Ctrl-C and SIGTERM during training: the first is noted and obeyed after the iteration, the second at once."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Literal

_MEANING: dict[int, Literal["interrupted", "terminated"]] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
}


class Interrupts:
    """Used as a context. ``asked`` says how training was asked to stop, if it was.

    Only the main thread can watch signals; elsewhere nothing changes. A signal that is ignored stays ignored.
    """

    def __init__(self) -> None:
        self.asked: Literal["interrupted", "terminated"] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in _MEANING:
                # None: set by code that is not Python's, which could not be put back.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
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
