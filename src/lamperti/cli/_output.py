"""Where results go: places are tried before the work, and take their name when all of it is written."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from lamperti._errors import ConfigError
from lamperti.data.files import why_not_replaced
from lamperti.runs.manifest import (
    MANIFEST,
    listed,
    refuse_in_the_way,
    refuse_strangers,
    remove_listed,
    start_manifest,
)

_TABLES = (".csv", ".tsv", ".txt", "")


@contextmanager
def output_folder(path: Path, kind: str, names: Collection[str]) -> Iterator[Path]:
    """A hidden folder to write ``names`` to, which becomes ``path`` when the block ends well and vanishes when it does
    not. ``path`` is new, empty, or was filled in the same way before; then only what was written before is replaced."""
    path = path.absolute()
    if path.exists() and not path.is_dir():
        raise ConfigError(f"--out {path} is a file; give a folder.")
    _check_folder(path.parent)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        if path.is_dir():
            _refuse_to_replace(path, kind, names)
            _probe(path)
        hidden.mkdir()
    except OSError as error:
        raise ConfigError(f"--out {path} cannot be written ({error.strerror}). Choose another place.") from None
    try:
        yield hidden
        written = sorted(file.name for file in hidden.iterdir())
        start_manifest(hidden, kind, written)
        if path.is_dir():
            remove_listed(path, kind, keep=(MANIFEST, *written))
            for name in (MANIFEST, *written):  # the list first, so that nothing of ours is ever without
                os.replace(hidden / name, path / name)
        else:
            os.replace(hidden, path)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _refuse_to_replace(path: Path, kind: str, names: Collection[str]) -> None:
    ours = listed(path, kind)
    if ours is None:
        refuse_strangers(path, f"the folder of a {kind}", path.iterdir())
    refuse_in_the_way(path, set(names) - (ours or set()))


def check_output_file(path: Path, *inputs: Path) -> None:
    """Refuse, before any work is done, a file that cannot be written or that is one of the inputs."""
    folder = path.absolute().parent
    if path.is_dir():
        raise ConfigError(f"--out {path} is a folder; give the name of a .csv file.")
    _check_folder(folder)
    if reason := why_not_replaced(path):
        raise ConfigError(f"--out {path} cannot be written: {reason}. Choose another name.")
    if path.exists() and any(source.exists() and path.samefile(source) for source in inputs):
        raise ConfigError(f"--out {path} is the data itself. Choose another name.")
    try:
        _probe(folder)
    except OSError as error:
        raise ConfigError(f"--out {path} cannot be written ({error.strerror}). Choose another place.") from None


def check_table_file(path: Path, *inputs: Path) -> None:
    """The same for a table, which is text: under the name of another kind of file nothing could open it."""
    if path.suffix.lower() not in _TABLES:
        raise ConfigError(f"--out {path} would hold text. Give a name that ends in .csv, or in .tsv for tabs.")
    check_output_file(path, *inputs)


def _check_folder(folder: Path) -> None:
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise ConfigError(f"{place} is a file, not a folder. Choose another --out.")
    if not folder.is_dir():
        raise ConfigError(f"the folder {folder} does not exist. Create it, or choose another --out.")


def _probe(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass
