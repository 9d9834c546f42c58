"""Commits: small sets of files that are there wholly or not at all, the last few of which are kept.

A commit is written to a hidden folder, with the checksum of every file; each file and the folder are flushed to the
disk; then the folder takes its name, the next number, in one step; then the folder above is flushed. Whenever this is
cut short, the commits before it are untouched. Nothing here knows what is in the files.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from lamperti.data.files import sync_folder, write_synced

KEPT = 3
_SUMS = "SHA256SUMS"
_NAME = re.compile(r"\d{6,}")
_HIDDEN = re.compile(r"\.\d{6,}\.[0-9a-f]{12}\.tmp")


class DamagedCommitError(ValueError):
    """Files of a commit are missing or not as they were written."""


def commit(root: Path, files: Mapping[str, bytes]) -> Path:
    """Keep ``files`` as the newest commit below ``root`` and forget all but the last few. Raises OSError."""
    newest = committed(root)[:1]
    target = root / f"{int(newest[0].name) + 1 if newest else 1:06d}"
    hidden = _hidden(target)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    try:
        os.mkdir(hidden)
        for name, content in {**files, _SUMS: sums.encode()}.items():
            write_synced(hidden / name, content)
        sync_folder(hidden)
        os.rename(hidden, target)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    sync_folder(root)
    _remove(committed(root)[KEPT:])
    return target


def committed(root: Path) -> list[Path]:
    """All commits, newest first, intact or not."""
    if not root.is_dir():
        return []
    found = [entry for entry in root.iterdir() if _NAME.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: int(entry.name), reverse=True)


def read_commit(path: Path) -> dict[str, bytes]:
    """The files of a commit. Raises `DamagedCommitError` unless all are as they were written."""
    try:
        sums = _sums(path)
        if {entry.name for entry in path.iterdir()} != {*sums, _SUMS}:
            raise DamagedCommitError(f"{path} lacks files, or has others")
        files = {name: (path / name).read_bytes() for name in sums}
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DamagedCommitError(f"{path} cannot be read ({error})") from None
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise DamagedCommitError(f"the checksum of {path / name} does not match")
    return files


def sweep(root: Path) -> None:
    """Remove what commits that were cut short have left."""
    for entry in root.iterdir() if root.is_dir() else ():
        if _HIDDEN.fullmatch(entry.name):
            shutil.rmtree(entry, ignore_errors=True)


def clear(root: Path) -> None:
    """Remove all commits."""
    _remove(reversed(committed(root)))
    sweep(root)


def _remove(commits: Iterable[Path]) -> None:
    """Take the name away first, so that no half of a commit ever has one. What is no commit of ours stays."""
    for path in filter(_is_ours, commits):
        hidden = _hidden(path)
        os.rename(path, hidden)
        shutil.rmtree(hidden, ignore_errors=True)  # what is left is swept when the run is opened next


def _is_ours(path: Path) -> bool:
    """Whether a folder holds nothing but files that its checksums list."""
    try:
        ours = {*_sums(path), _SUMS}
        return not path.is_symlink() and all(entry.is_file() and entry.name in ours for entry in path.iterdir())
    except (OSError, ValueError):
        return False


def _sums(path: Path) -> dict[str, str]:
    lines = (path / _SUMS).read_text(encoding="ascii").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
