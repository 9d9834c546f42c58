"""Writing a file so that its name only ever holds a whole one."""

import os
import secrets
from pathlib import Path


def atomic_write(path: str | os.PathLike, content: bytes) -> None:
    """Write ``content`` to ``path`` at once: a reader sees the old file or the new one, never a part.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the name last. When
    anything fails the temporary file is removed, the old file stays, and the `OSError` is passed on.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    # Not tempfile.mkstemp, whose files only their owner may read. O_EXCL never follows a link in the way.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # an interrupt must not leave the temporary file either
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut; only POSIX can open a folder."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
