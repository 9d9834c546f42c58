"""The list, in a folder that lamperti fills, of the files that lamperti wrote there.

Only what is on the list is ever replaced or deleted; whatever somebody else put into the folder stays. A name is on the
list before its file is written, so that a process that is killed leaves no file without one.
"""

import json
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from lamperti._errors import ConfigError, RunError
from lamperti._text import visible
from lamperti.data.files import atomic_write

MANIFEST = "manifest.json"
_FORMAT = "lamperti-files"
_SCHEMA = 1
# One folder down at most, and never out of it: a list that somebody changed must not lead elsewhere.
_NAME = re.compile(r"(?!\.\.?(/|$))[^/\\\0]+(/(?!\.\.?$)[^/\\\0]+)?")
_NAMED = 3  # of what was found in a folder


def start_manifest(folder: Path, kind: str, files: Iterable[str]) -> None:
    """Begin the list of a folder of this kind ("run", "demo", ...). Raises OSError."""
    _write(folder, kind, files)


def listed(folder: Path, kind: str) -> frozenset[str] | None:
    """What the list of a folder of this kind names, as relative paths; None when it has no such list.

    Raises `RunError` when the list is damaged."""
    path = folder / MANIFEST
    if path.is_symlink() or not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != _FORMAT:
            return None
        files = content["files"]
        fits = isinstance(content["kind"], str) and all(
            isinstance(name, str) and _NAME.fullmatch(name) for name in files
        )
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None  # somebody else's
    if not fits or content["schema"] != _SCHEMA:
        raise RunError(f"{path} is damaged or was edited. Choose another folder, or delete this one yourself.")
    return frozenset(files) if content["kind"] == kind else None


def claim(folder: Path, kind: str, *names: str) -> None:
    """Put names on the list, before files are written under them. Raises `RunError` where somebody else's file has the
    name, and OSError."""
    refuse_in_the_way(folder, set(names) - (listed(folder, kind) or set()))
    enlist(folder, kind, *names)


def enlist(folder: Path, kind: str, *names: str) -> None:
    """The same where the user chose the name, and with it to replace what has it. Raises OSError."""
    ours = listed(folder, kind) or frozenset()
    if not set(names) <= ours:
        _write(folder, kind, ours | set(names))


def refuse_in_the_way(folder: Path, names: Iterable[str]) -> None:
    """Raise `RunError` when one of these names, which are not on the list, is taken."""
    for taken in (folder / name for name in sorted(names) if os.path.lexists(folder / name)):
        raise RunError(f"{taken} was not written by lamperti and stays as it is. Move it away, or rename it.")


def remove_listed(folder: Path, kind: str, *, keep: Collection[str] = ()) -> None:
    """Delete the files that are on the list, and folders that are empty then. Raises OSError."""
    for name in sorted((listed(folder, kind) or frozenset()) - set(keep)):
        path = folder / name
        if path.parent.is_symlink():  # leads to somebody else's folder
            continue
        if path.is_symlink() or path.is_file():
            path.unlink()
        if path.parent != folder and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


def refuse_strangers(folder: Path, what: str, found: Iterable[Path]) -> None:
    """Raise `ConfigError` that says what is in a folder that is not ``what``; nothing when it is empty."""
    names = sorted(path.name for path in found)
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise ConfigError(
            f"{folder} is not empty and is not {what}: it holds {', '.join(map(visible, names[:_NAMED]))}{more}. "
            "Nothing was changed. Choose a new or an empty folder."
        )


def _write(folder: Path, kind: str, files: Iterable[str]) -> None:
    content = {"format": _FORMAT, "schema": _SCHEMA, "kind": kind, "files": sorted({MANIFEST, *files})}
    atomic_write(folder / MANIFEST, json.dumps(content, indent=1).encode() + b"\n")
