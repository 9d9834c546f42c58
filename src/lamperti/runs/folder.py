"""The folder of a run.

config.json         configuration, fingerprint of the data and where it came from, versions; with a checksum
history.jsonl       records and events, a line each
checkpoints/        the last commits: where training stood
model.safetensors   the model, once training ended or was interrupted
figures/            drawn by the command line when training has ended
lock                held while a process works on the run
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import optax
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from lamperti._errors import ConfigError, LampertiWarning, RunError, TrainingError
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.files import as_path, atomic_write, sweep_temporary
from lamperti.data.series import Series
from lamperti.io import MODEL_NAME, RUN_CONFIG, write_model
from lamperti.model import LatentSDE
from lamperti.results import Config, FitResult
from lamperti.runs.commits import KEPT, DamagedCommitError, clear, commit, committed, read_commit, sweep
from lamperti.runs.fingerprint import check_same_data, fingerprint, versions
from lamperti.runs.lines import history_lines
from lamperti.runs.lock import locked
from lamperti.train.arrays import named
from lamperti.train.history import History
from lamperti.train.position import Position, restore

CONFIG, HISTORY, CHECKPOINTS, FIGURES, LOCK = RUN_CONFIG, "history.jsonl", "checkpoints", "figures", "lock"
PROBE = ".probe"
_SCHEMA = 1
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

    def begin(
        self, config: Config, series: Sequence[Series], model: LatentSDE, origin: Mapping[str, Any] | None
    ) -> None:
        """Make this the folder of a new run, of a model of this size; what an older run left is removed."""
        from lamperti import __version__  # not yet known when this module is imported

        self._check_space(model)
        content = {
            "format": "lamperti-run",
            "schema": _SCHEMA,
            "version": __version__,
            "versions": versions(),
            "model": config.model.model_dump(mode="json"),
            "fit": config.fit.model_dump(mode="json"),
            "data": fingerprint(series),
            "origin": origin,
        }
        with _explained(self.path):
            clear(self.path / CHECKPOINTS)
            for name in (MODEL_NAME, HISTORY):
                (self.path / name).unlink(missing_ok=True)
            for figure in (self.path / FIGURES).glob("*.png"):
                figure.unlink()
            (self.path / CHECKPOINTS).mkdir(exist_ok=True)
            atomic_write(self.path / CONFIG, _sealed(content))
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
    """Hold a folder for a new run. When nothing is committed to a folder that was made here, it vanishes."""
    folder = as_path(path, ConfigError).absolute()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; a run needs a folder.")
    if not folder.parent.is_dir():
        raise ConfigError(f"the folder {folder.parent} does not exist. Create it, or choose another place.")
    with _explained(folder):
        made = not folder.exists()
        folder.mkdir(exist_ok=True)
    try:
        with ExitStack() as stack:
            with _explained(folder):
                stack.enter_context(locked(folder / LOCK))
                if not overwrite:
                    _refuse_run(folder)
                _prepare(folder)
            yield RunFolder(folder)
    except BaseException:
        if made and not committed(folder / CHECKPOINTS):
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def unfinished_run(path: str | os.PathLike) -> Iterator[RunFolder]:
    """Hold the folder of a run to go on with it."""
    folder = as_path(path, ConfigError).absolute()
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder} is not the folder of a run: it has no {CONFIG}. Start one with fit.")
    with ExitStack() as stack:
        with _explained(folder):
            stack.enter_context(locked(folder / LOCK))
            content = read_config(folder)
            _prepare(folder)
        _warn_of_versions(content["versions"])
        yield RunFolder(folder, content)


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run. Raises `RunError` unless it is as it was written."""
    try:
        sealed = json.loads((folder / CONFIG).read_bytes())
        content = sealed["run"]
        intact = sealed["sha256"] == _checksum(content) and content["format"] == "lamperti-run"
    except OSError as error:
        raise RunError(f"{folder / CONFIG} cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise RunError(f"{folder / CONFIG} is damaged or was edited. Start a new run.")
    if content["schema"] > _SCHEMA:
        raise RunError(f"{folder} was written by lamperti {content['version']}. Install a newer lamperti.")
    return content


def _sealed(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"sha256": _checksum(content), "run": content}, indent=1, allow_nan=False).encode()


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


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
    for name in (CONFIG, HISTORY, MODEL_NAME, PROBE):
        sweep_temporary(folder / name)
    sweep(folder / CHECKPOINTS)


def _warn_of_versions(before: Mapping[str, str]) -> None:
    changed = [f"{name} {old} is now {new}" for name, new in versions().items() if (old := before.get(name)) != new]
    if changed:
        warnings.warn(
            f"the run was started with other versions ({', '.join(changed)}): it goes on, but not bit by bit as it "
            "would have.",
            LampertiWarning,
            stacklevel=5,
        )


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
