"""The folder of a run.

config.json         configuration, choice of the dimension, fingerprint and origin of the data, versions, checksum
history.jsonl       records and events, a line each
checkpoints/        the last commits: where training stood
model.safetensors   the model, once training ended or was interrupted
figures/            drawn by the command line when training has ended
manifest.json       the files that lamperti wrote here: only they are ever replaced or deleted
lock                held while a process works on the run
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import optax
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from lamperti._errors import ConfigError, LampertiWarning, RunError, TrainingError
from lamperti.config import Config, FitConfig, ModelConfig
from lamperti.data.dimensions import DimensionCurve, pack_dimensions, unpack_dimensions
from lamperti.data.files import as_path, atomic_write, is_temporary, sweep_temporary
from lamperti.data.series import Series
from lamperti.io import MODEL_NAME, RUN_CONFIG, write_model
from lamperti.model import LatentSDE
from lamperti.results import FitResult
from lamperti.runs.commits import KEPT, DamagedCommitError, clear, commit, committed, read_commit, sweep
from lamperti.runs.fingerprint import check_same_data, fingerprint, versions, warn_of_versions
from lamperti.runs.lines import history_lines
from lamperti.runs.lock import is_lock, locked
from lamperti.runs.manifest import MANIFEST, claim, enlist, listed, refuse_strangers, remove_listed, start_manifest
from lamperti.runs.sealed import SCHEMA, read_config, says_run, sealed
from lamperti.train.arrays import named
from lamperti.train.history import History
from lamperti.train.position import Position, restore

CONFIG, HISTORY, CHECKPOINTS, FIGURES, LOCK = RUN_CONFIG, "history.jsonl", "checkpoints", "figures", "lock"
PROBE = ".lamperti.probe"
_PASSING = (CONFIG, HISTORY, MODEL_NAME, MANIFEST, PROBE)  # written by way of temporary files
KIND = "run"  # of the folder, in its manifest
_OWN = (CONFIG, HISTORY, MODEL_NAME, LOCK)
_PICTURES = (f"{FIGURES}/{name}.png" for name in ("phase_space", "forecast", "drift", "training"))
_BEFORE_MANIFESTS = (*_OWN, "config.toml", "history.csv", *_PICTURES)  # what older runs wrote
_STATES_A_COMMIT = 4  # the model, Adam's two averages, the best model: each about as large as the model
_SPARE_BYTES = 2**20


class RunFolder:
    """A run that is held by this process; made by `new_run` and `unfinished_run`."""

    def __init__(self, path: Path, content: Mapping[str, Any] | None = None):
        self.path = path
        self._content = content

    @property
    def config(self) -> Config:
        content = self._known()
        return Config(ModelConfig(**content["model"]), FitConfig(**content["fit"]))

    @property
    def origin(self) -> Mapping[str, Any] | None:
        """How the data was read, ``{"path": ..., "options": {...}}``, if that is known."""
        return self._known()["origin"]

    @property
    def dimensions(self) -> DimensionCurve | None:
        """How the latent dimension was chosen: the configuration only has what was. None in older runs."""
        try:
            return unpack_dimensions(self._known().get("dimensions"), self.config.model.latent_dim)
        except ValueError:
            raise RunError(f"{self.path / CONFIG} is damaged or was edited. Start a new run.") from None

    def begin(
        self,
        config: Config,
        series: Sequence[Series],
        model: LatentSDE,
        origin: Mapping[str, Any] | None,
        dimensions: DimensionCurve | None = None,
    ) -> None:
        """Make this the folder of a new run, of a model of this size; what an older run wrote is removed."""
        from lamperti import __version__  # not yet known when this module is imported

        self._check_space(model)
        content = {
            "format": "lamperti-run",
            "schema": SCHEMA,
            "version": __version__,
            "versions": versions(),
            "model": config.model.model_dump(mode="json"),
            "fit": config.fit.model_dump(mode="json"),
            "data": fingerprint(series),
            "origin": origin,
            "dimensions": pack_dimensions(dimensions),
        }
        with _explained(self.path):
            clear(self.path / CHECKPOINTS)
            remove_listed(self.path, KIND, keep=(CONFIG, LOCK, MANIFEST))
            start_manifest(self.path, KIND, _OWN)
            (self.path / CHECKPOINTS).mkdir(exist_ok=True)
            atomic_write(self.path / CONFIG, sealed(content))
        self._content = content

    def check_data(self, series: Sequence[Series]) -> None:
        check_same_data(series, self._known()["data"])

    def commit(self, position: Position) -> None:
        """Keep where training stands. Raises `RunError`; the commits before stay."""
        arrays, content = position.export()
        files = {
            "state.safetensors": to_bytes(arrays),
            "state.json": json.dumps(content, allow_nan=False, separators=(",", ":")).encode(),
        }
        with _explained(self.path):
            commit(self.path / CHECKPOINTS, files)
            self._write_history(position.history)

    def last_position(self, blank: LatentSDE, optimiser: optax.GradientTransformation) -> Position | None:
        """Where training stood at the last intact commit; None before the first. Damaged ones are told of."""
        found = committed(self.path / CHECKPOINTS)
        for place in found:
            try:
                files = read_commit(place)
                arrays = from_bytes(files["state.safetensors"])
                return restore(arrays, json.loads(files["state.json"]), blank, optimiser)
            except (DamagedCommitError, SafetensorError, ValueError, KeyError, TypeError) as error:
                warnings.warn(f"the commit {place} is damaged and passed over: {error}.", LampertiWarning, stacklevel=4)
        if found:
            raise RunError(f"none of the {len(found)} commits of {self.path} is intact. Start a new run.")
        return None

    def finish(self, result: FitResult) -> None:
        """Write the model and how training ended."""
        write_model(result, self.path / MODEL_NAME)
        with _explained(self.path):
            self._write_history(result.history, end=result.history.status)

    def fail(self, error: TrainingError) -> None:
        """Write what led to a stop; the error itself matters more than whether that works."""
        if isinstance(error.history, History):
            try:
                self._write_history(error.history, end="failed", message=str(error))
            except OSError as trouble:
                warnings.warn(f"{self.path / HISTORY} cannot be written ({trouble}).", LampertiWarning, stacklevel=3)

    def _write_history(self, history: History, **end: str) -> None:
        atomic_write(self.path / HISTORY, history_lines(history, **end).encode())

    def _known(self) -> Mapping[str, Any]:
        if self._content is None:
            raise RunError(f"{self.path} holds no run yet.")
        return self._content

    def _check_space(self, model: LatentSDE) -> None:
        """Refuse, before any training, a disk that will not hold the commits."""
        size = sum(leaf.nbytes for leaf in named(model, "model").values())
        needed = (KEPT + 2) * _STATES_A_COMMIT * size + _SPARE_BYTES
        with _explained(self.path):
            free = shutil.disk_usage(self.path).free
        if free < needed:
            raise RunError(
                f"{self.path} has {free / 1e6:.1f} MB left; the run needs {needed / 1e6:.1f} MB. Make room, or choose "
                "another place."
            )


@contextmanager
def new_run(path: str | os.PathLike, *, overwrite: bool) -> Iterator[RunFolder]:
    """Hold a folder for a new run: a new one, an empty one, or with ``overwrite`` that of a run. When nothing is
    committed to a new or an empty one, it is left as it was."""
    folder = as_path(path, ConfigError).absolute()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; a run needs a folder.")
    if not folder.parent.is_dir():
        raise ConfigError(f"the folder {folder.parent} does not exist. Create it, or choose another place.")
    with _explained(folder):
        made = not folder.exists()
        if not made and not is_run(folder):
            refuse_strangers(folder, "the folder of a run", (e for e in folder.iterdir() if not _is_beginning(e)))
        folder.mkdir(exist_ok=True)
    try:
        with ExitStack() as stack:
            with _explained(folder):
                stack.enter_context(locked(folder / LOCK))
            fresh = not is_run(folder)  # looked at only now, when nobody else can begin one
            try:
                if not overwrite:
                    _refuse_run(folder)
                with _explained(folder):
                    _adopt(folder)
                    _prepare(folder)
                yield RunFolder(folder)
            except BaseException:
                if fresh and not committed(folder / CHECKPOINTS):
                    _forget(folder)
                raise
    except BaseException:
        if made:
            with suppress(OSError):  # it is not empty: somebody else has put something there
                folder.rmdir()
        raise


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, finished, damaged or just begun."""
    return listed(folder, KIND) is not None or says_run(folder)


def claim_in_run(folder: Path, *names: str) -> None:
    """Put names on the list of what lamperti wrote, before files are written under them. Raises `RunError` where
    somebody else's file has the name, and OSError."""
    _adopt(folder)
    claim(folder, KIND, *names)


def enlist_in_run(folder: Path, *names: str) -> None:
    """The same where the user chose the name, and with it to replace what has it. Raises OSError."""
    _adopt(folder)
    enlist(folder, KIND, *names)


@contextmanager
def unfinished_run(path: str | os.PathLike) -> Iterator[RunFolder]:
    """Hold the folder of a run to go on with it."""
    folder = as_path(path, ConfigError).absolute()
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder} is not the folder of a run: it has no {CONFIG}. Start one with fit.")
    if not is_run(folder):  # before anything is written to it
        raise RunError(f"{folder} is not the folder of a run: its {CONFIG} is another program's, or damaged.")
    with ExitStack() as stack:
        with _explained(folder):
            stack.enter_context(locked(folder / LOCK))
            content = read_config(folder)
            _adopt(folder)
            _prepare(folder)
        warn_of_versions(content["versions"])
        yield RunFolder(folder, content)


def _refuse_run(folder: Path) -> None:
    if (folder / MODEL_NAME).exists():
        raise ConfigError(
            f"{folder} holds a model already. Choose another folder, or pass overwrite=True (--overwrite)."
        )
    if (folder / CONFIG).exists():
        raise ConfigError(
            f"{folder} holds a run that is not finished. Resume it, choose another folder, or pass overwrite=True "
            "(--overwrite)."
        )


def _prepare(folder: Path) -> None:
    """Try, before any training, what a commit will need, and remove what a process that was killed has left."""
    place = folder / PROBE
    atomic_write(place, b"probe")
    place.unlink()
    for name in _PASSING:
        sweep_temporary(folder / name)
    sweep(folder / CHECKPOINTS)


def _is_beginning(entry: Path) -> bool:
    """Whether it is what a process leaves that begins a run just now, or was killed when it did."""
    if entry.name == LOCK:
        return is_lock(entry)
    return entry.name == PROBE or any(is_temporary(entry, name) for name in _PASSING)


def _forget(folder: Path) -> None:
    """Remove what was begun; whatever somebody else has put there meanwhile stays."""
    with suppress(OSError, RunError):
        if (folder / CHECKPOINTS).is_dir():
            (folder / CHECKPOINTS).rmdir()
        remove_listed(folder, KIND, keep=(LOCK,))
        (folder / LOCK).unlink(missing_ok=True)


def _adopt(folder: Path) -> None:
    """Give a run of a version that kept no list its list."""
    if listed(folder, KIND) is None and says_run(folder):
        start_manifest(folder, KIND, _BEFORE_MANIFESTS)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Whatever the disk refuses is a `RunError` that says what and where."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the run {folder} cannot be written ({error.strerror or error}). What was committed before is intact: "
            "make the place writable, with room, and resume; or choose another."
        ) from error
