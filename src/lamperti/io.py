"""Model files: one safetensors file holds the arrays, and in its header, as JSON, all the rest.

Nothing in a file is ever run. The model is rebuilt from its configuration, which fixes the name, shape and type of
every array; a file whose arrays differ in any of them, are not finite, or do not match the checksum is refused.
"""

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from lamperti._errors import ConfigError, ModelFileError
from lamperti._params import PositiveParam, realise
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.files import atomic_write
from lamperti.data.scaling import Scaler
from lamperti.model import LatentSDE
from lamperti.results import Config, FitResult
from lamperti.train.build import skeleton
from lamperti.train.loop import History, Record

MODEL_NAME = "model.safetensors"  # of the model file in the folder of a run
SCHEMA = 1
_FORMAT = "lamperti-model"
_SHORT_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON itself has no such numbers

Arrays = dict[str, np.ndarray]


def save(result: FitResult, path: str | os.PathLike) -> None:
    """Write a fitted model to one file, whole or not at all.

    ``path``: the file; in an existing folder, ``model.safetensors`` is written. Raises `ModelFileError`.

    ```python
    lp.save(result, "lorenz.safetensors")
    ```
    """
    from lamperti import __version__  # not yet known when this module is imported

    file = _file(path)
    if _structure(result.model) != _structure(_skeleton(result.config.model, len(result.names), _is_real(result))):
        raise ModelFileError(
            "this model was put together by hand and does not follow its configuration, so it could not be rebuilt "
            "from a file. Save results of lamperti.fit, with the model as it was fitted."
        )
    arrays = {f"model.{name}": np.asarray(leaf) for name, leaf in _named(result.model).items()}
    arrays |= {"scaler.shift": result.scaler.shift, "scaler.scale": result.scaler.scale, "states": result.states}
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "version": __version__,
        "model": result.config.model.model_dump(mode="json"),
        "fit": result.config.fit.model_dump(mode="json"),
        "names": list(result.names),
        "time_unit": result.scaler.time_unit,
        "realised": _is_real(result),
        "history": _pack_history(result.history),
    }
    header = json.dumps(content, allow_nan=False, separators=(",", ":"))
    try:
        atomic_write(file, to_bytes(arrays, {"lamperti": header, "sha256": _checksum(header, arrays)}))
    except OSError as error:
        raise ModelFileError(f"{file} cannot be written ({error.strerror}). Choose another place.") from None


def load(path: str | os.PathLike) -> FitResult:
    """Read a fitted model. ``path``: a file written by `save`, or the folder of a run of the command line.

    Raises `ModelFileError` when it is not an intact lamperti model that this version can read.
    """
    file = _file(path)
    if not file.is_file():
        where = f"the folder {path} has no {MODEL_NAME}" if Path(path).is_dir() else f"there is no file {file}"
        raise ModelFileError(f"{where}. Give a file written by lamperti.save, or the folder of a run.")
    try:
        return _read(file)
    except ModelFileError as error:
        raise ModelFileError(f"{file}: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{file} cannot be read ({error.strerror or error}).") from None
    except SafetensorError as error:
        raise ModelFileError(f"{file} is not a lamperti model, or only a part of one ({error}).") from None


def _read(file: Path) -> FitResult:
    with safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata() or {}
        content = _content(metadata)
        try:
            config = Config(ModelConfig(**content["model"]), FitConfig(**content["fit"]))
            names = tuple(str(name) for name in content["names"])
            blank = _skeleton(config.model, len(names), bool(content["realised"]))
            history = _unpack_history(content["history"])
            time_unit = float(content["time_unit"])
        except (AttributeError, KeyError, TypeError, ValueError, ConfigError) as error:
            raise ModelFileError(f"its header is damaged ({type(error).__name__}: {error}).") from None
        arrays = _arrays(opened, _expected(blank, len(names)))
    if _checksum(metadata["lamperti"], arrays) != metadata.get("sha256"):
        raise ModelFileError("the checksum does not match: the file was changed or damaged. Copy or save it again.")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds values that are not finite. Train the model again.")
    if not (0.0 < time_unit < math.inf):
        raise ModelFileError(f"its time unit is {time_unit}, which is not a positive number.")
    model = _filled(blank, arrays)
    scaler = Scaler(arrays["scaler.shift"], arrays["scaler.scale"], time_unit)
    return FitResult(model, history, config, scaler, names, arrays["states"])


def _content(metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        content = json.loads(metadata["lamperti"])
        known = content["format"] == _FORMAT and isinstance(content["schema"], int)
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known:
        raise ModelFileError("this is a safetensors file, but not a lamperti model.")
    if content["schema"] > SCHEMA:
        raise ModelFileError(
            f"it was written by lamperti {content.get('version')} (format {content['schema']}); this version reads "
            f"formats up to {SCHEMA}. Install a newer lamperti."
        )
    return content


def _arrays(opened: Any, expected: Mapping[str, tuple[np.dtype, tuple[int | None, ...]]]) -> Arrays:
    """All arrays of a file, each checked against what the configuration says before it is read."""
    found = set(opened.keys())
    if found != set(expected):
        odd = sorted(found ^ set(expected))[0]
        raise ModelFileError(f"the array {odd!r} is {'unknown' if odd in found else 'missing'}.")
    arrays = {}
    for name, (dtype, shape) in expected.items():
        part = opened.get_slice(name)
        actual = tuple(part.get_shape())
        fits = len(actual) == len(shape) and all(b is None or a == b for a, b in zip(actual, shape, strict=True))
        if part.get_dtype() != f"F{8 * dtype.itemsize}" or not fits or 0 in actual:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise ModelFileError(
                f"the array {name!r} is {part.get_dtype()} {list(actual)}, but should be {dtype} [{wanted}]."
            )
        arrays[name] = opened.get_tensor(name)
    return arrays


def _expected(blank: LatentSDE, n_channels: int) -> dict[str, tuple[np.dtype, tuple[int | None, ...]]]:
    expected = {f"model.{name}": (leaf.dtype, leaf.shape) for name, leaf in _named(blank).items()}
    real = np.dtype(float)
    return expected | {
        "scaler.shift": (real, (n_channels,)),
        "scaler.scale": (real, (n_channels,)),
        "states": (real, (None, blank.latent_dim)),
    }


def _checksum(header: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _file(path: str | os.PathLike) -> Path:
    file = Path(path)
    return file / MODEL_NAME if file.is_dir() else file


def _skeleton(config: ModelConfig, n_channels: int, realised: bool) -> LatentSDE:
    blank = skeleton(config, n_channels)
    return eqx.filter_eval_shape(realise, blank) if realised else blank


def _is_real(result: FitResult) -> bool:
    """Whether the model's positive parameters are held as values already."""
    return not isinstance(result.model.dynamics.amplitude, PositiveParam)


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _structure(model: LatentSDE) -> Any:
    """Everything about a model but the values of its arrays."""
    leaves, structure = jax.tree.flatten(model)
    return structure, [(leaf.shape, leaf.dtype) if _is_array(leaf) else leaf for leaf in leaves]


def _named(model: LatentSDE) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves if _is_array(leaf)}


def _filled(blank: LatentSDE, arrays: Arrays) -> LatentSDE:
    leaves, structure = jax.tree_util.tree_flatten_with_path(blank)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    filled = [
        jnp.asarray(arrays[f"model.{name}"]) if _is_array(leaf) else leaf
        for name, (_, leaf) in zip(names, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, filled)


def _pack_history(history: History) -> dict[str, Any]:
    """Records by column, so that no name is written twice."""
    columns = [field.name for field in dataclasses.fields(Record)]
    plain = {field.name: _pack(getattr(history, field.name)) for field in dataclasses.fields(history)[1:]}
    return {**plain, "records": {name: [_pack(getattr(r, name)) for r in history.records] for name in columns}}


def _unpack_history(content: Mapping[str, Any]) -> History:
    plain = {name: _unpack(value) for name, value in content.items() if name != "records"}
    columns = content["records"]
    rows = zip(*columns.values(), strict=True)
    records = [Record(**{name: _unpack(v) for name, v in zip(columns, row, strict=True)}) for row in rows]
    return History(records=records, **plain)


def _pack(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _unpack(value: Any) -> Any:
    return _SHORT_FLOATS.get(value, value) if isinstance(value, str) else value
