"""Local files: regular ones only, and the same from the first byte read to the last."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lamperti._errors import SeriesError

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")  # one slash is what a Path leaves of two; one letter is a drive
_MAX_ENTRIES = 200_000


def local_path(path: str | os.PathLike) -> Path:
    """A path on this machine; an address is refused, nothing is ever fetched."""
    text = os.fsdecode(path)
    if _URL.match(text):
        raise SeriesError(f"{text} is an address; lamperti reads local files only. Download it first.")
    if "\0" in text or not text:
        raise SeriesError(f"{text!r} is not the name of a file. Check the path.")
    return Path(text)


@contextmanager
def open_local(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Links, pipes and devices are refused before a byte is read, and a file that
    changed meanwhile is refused at the end."""
    # O_NOFOLLOW: a link is not followed. O_NONBLOCK: a pipe without a writer does not block.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        raise SeriesError(f"{path} is a link, not a regular file. Give the file itself: {os.path.realpath(path)}.")
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise SeriesError(f"{path} cannot be opened ({error.strerror}). Check the path.") from None
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        os.close(descriptor)
        raise SeriesError(f"{path} is not a regular file. Give the path of a file of data.")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise SeriesError(f"{path} cannot be read ({error.strerror}).") from None
        try:
            named = os.stat(path)
        except OSError:
            named = None
        if _state(before) != _state(os.fstat(descriptor)) or named is None or _state(named) != _state(before):
            raise SeriesError(f"{path} changed while it was read. Wait until it is written, then read it again.")


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def folder_state(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file below a folder with its size and time of change; links and special files are refused."""
    found: dict[str, tuple[int, ...]] = {}
    pending = [folder]
    while pending:
        place = pending.pop()
        try:
            entries = list(os.scandir(place))
        except OSError as error:
            raise SeriesError(f"{place} cannot be opened ({error.strerror}). Check the path.") from None
        for entry in entries:
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                raise SeriesError(f"{entry.path} is a link or a special file; only regular files are read.")
            if entry.is_dir():
                pending.append(Path(entry.path))
            else:
                found[os.path.relpath(entry.path, folder)] = _state(entry.stat(follow_symlinks=False))
        if len(found) + len(pending) > _MAX_ENTRIES:
            raise SeriesError(f"{folder} holds more than {_MAX_ENTRIES} files. Rewrite it with larger chunks.")
    return found
