"""One writer a run: a lock that the system lets go of when its process ends, however it ends."""

import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lamperti._errors import LampertiWarning, RunError

try:
    import fcntl
except ImportError:  # Windows has no flock; there, only the writer's note is left in the file
    fcntl = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``. It stays, empty; while it is held it says who holds it.

    A file that is not empty and not held was left by a process that did not end properly: that is warned of.
    Raises `RunError` when another process holds it, and OSError.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"{path.parent} is in use by {_holder(descriptor)}. Wait until it ends, or use another folder."
                ) from None
        if os.fstat(descriptor).st_size:
            warnings.warn(
                f"{path.parent} was last written by {_holder(descriptor)}, which did not end properly; its lock is "
                "stale and is taken over.",
                LampertiWarning,
                stacklevel=5,
            )
        _note(descriptor, json.dumps(_self()).encode())
        try:
            yield
        finally:
            _note(descriptor, b"")
    finally:
        os.close(descriptor)


def is_lock(path: Path) -> bool:
    """Whether a file is a lock of ours: empty, or with a note of who holds it."""
    try:
        return path.is_file() and not path.is_symlink() and (not path.stat().st_size or bool(_read(path.read_bytes())))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _self() -> dict[str, str | int]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds")}


def _holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return _read(os.read(descriptor, 1000))
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _read(content: bytes) -> str:
    note = json.loads(content)
    return f"process {int(note['pid'])} on {note['host']!s} (since {note['since']!s})"


def _note(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, content)
