"""Writing a file so that its name only ever holds a whole one."""

import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any

from lamperti._errors import LampertiError


def as_path(path: Any, error: type[LampertiError]) -> Path:
    """A path as it was given; what is none is an ``error``."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise error(f"a path must be text or a pathlib.Path; got {path!r}. Give the name of a file or a folder.")
    return Path(path)


def why_not_replaced(path: Path) -> str | None:
    """What keeps a new file from taking the name, in a few words; None where it is free or has a plain file that may
    be written. A link would be lost and what it leads to kept; a pipe or a device would be lost."""
    if path.is_symlink():
        return "it is a link"
    if not path.exists() or path.is_dir():  # a folder is refused by the system, or by who knows what to say
        return None
    if not path.is_file():
        return "it is a device or a pipe, not a file"
    return None if os.access(path, os.W_OK) else "it may not be written"


def atomic_write(path: str | os.PathLike, content: bytes) -> None:
    """Write ``content`` to ``path`` at once: a reader sees the old file or the new one, never a part.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the name last. When
    anything fails the temporary file is removed, the old file stays, and the `OSError` is passed on; it names ``path``.
    Who may read the old file may read the new one, and nobody else. A link is replaced, not followed.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            write_synced(temporary, content)
            if path.is_file() and not path.is_symlink():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            os.replace(temporary, path)
        except BaseException:  # an interrupt must not leave the temporary file either
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not the temporary one, which says nothing to anyone
        raise


def sweep_temporary(path: Path) -> None:
    """Remove what writers of ``path`` that were killed have left. Only for who knows that nobody writes it now."""
    for entry in path.parent.iterdir():
        if is_temporary(entry, path.name):
            entry.unlink(missing_ok=True)


def is_temporary(entry: Path, name: str) -> bool:
    """Whether it is the temporary file of a writer of ``name``."""
    return re.fullmatch(re.escape(f".{name}.") + r"[0-9a-f]{12}\.tmp", entry.name) is not None


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and flush it to the disk. A file that fails stays as it is: it must not have its name yet."""
    # Not tempfile.mkstemp, whose files only their owner may read. O_EXCL never follows a link in the way.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut; only POSIX can open a folder."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
