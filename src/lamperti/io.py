"""Model files: one safetensors file holds the arrays, and in its header, as JSON, all the rest.

Nothing in a file is ever run. The model is rebuilt from its configuration, which fixes the name, shape and type of
every array; a file whose arrays differ in any of them, are not finite, or do not match the checksum is refused. So is
one whose checksum is right and whose content cannot be: a checksum says that a file is whole, not that it is honest.
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
import numpy as np
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from lamperti._errors import ModelFileError
from lamperti._params import PositiveParam, realise
from lamperti._runtime import refuse_fork
from lamperti._schema import AXES, SCHEMA, added_arrays, migrated
from lamperti.config import Config, FitConfig, ModelConfig
from lamperti.data._checks import as_names
from lamperti.data.dimensions import pack_dimensions, unpack_dimensions
from lamperti.data.files import as_path, atomic_write, why_not_replaced
from lamperti.data.packed_scaler import pack_scaler, unpack_scaler
from lamperti.data.scaling import LONGEST, SHORTEST, Scaler
from lamperti.data.training_data import TrainingData
from lamperti.model import LatentSDE
from lamperti.results import FitResult
from lamperti.train.arrays import Arrays, copied, filled, is_array, named, positive_definite
from lamperti.train.bounded import blank_region, with_region
from lamperti.train.build import skeleton
from lamperti.train.fitted import with_noise
from lamperti.train.history import checked_history, pack_history

MODEL_NAME = "model.safetensors"  # of the model file in the folder of a run
RUN_CONFIG = "config.json"  # what makes a folder that of a run
_FORMAT = "lamperti-model"
_MOST_SAID = 200  # characters of what is wrong with a header, which may be as long as the file
# What a sd, a variance or the parameter of a Gamma distribution is never but positive; parameters that are held as
# logarithms come on top.
_POSITIVE = {"scaler.scale", "model.emission.noise"} | {
    f"model.dynamics.{name}"
    for name in ("jitter", "region.low", "region.high", "q.shape", "q.rate", "prior.shape", "prior.rate")
}
_LARGEST, _FURTHEST_STATE = 1e100, 1e6  # states are of the order of one; what is far beyond would overflow later
_MOST_CHANNELS = 10_000
_TRAINED_ON = TypeAdapter(TrainingData | None)


def save(result: FitResult, path: str | os.PathLike) -> None:
    """Write a fitted model to one file, whole or not at all.

    ``path``: the file; in an existing folder, ``model.safetensors`` is written. The folder of a run keeps its own
    model. Raises `ModelFileError`.

    ```python
    lp.save(result, "lorenz.safetensors")
    ```
    """
    if not isinstance(result, FitResult):
        raise ModelFileError(f"got a {type(result).__name__} first. Write lamperti.save(result, path).")
    file = _file(path)
    if file.name == MODEL_NAME and (file.parent / RUN_CONFIG).exists():
        raise ModelFileError(
            f"{file.parent} is the folder of a run (it has a {RUN_CONFIG}), whose model would be replaced. Choose "
            "another file."
        )
    if reason := why_not_replaced(file):
        raise ModelFileError(f"{file} cannot be written: {reason}. Choose another name.")
    if file.is_file() and file.stat().st_size and not _is_model(file):
        raise ModelFileError(f"{file} is not a model of lamperti and stays as it is. Choose another name.")
    write_model(result, file)


def write_model(result: FitResult, file: Path) -> None:
    """Write a model file, in the folder of a run too."""
    from lamperti import __version__  # not yet known when this module is imported

    if _structure(result.model) != _structure(_skeleton(result.config.model, len(result.names), **_form(result))):
        raise ModelFileError(
            "this model was put together by hand and does not follow its configuration, so it could not be rebuilt "
            "from a file. Save results of lamperti.fit, with the model as it was fitted."
        )
    arrays = copied(result.model, "model")
    arrays |= {"scaler.shift": result.scaler.shift, "scaler.scale": result.scaler.scale, "states": result.states}
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "version": __version__,
        "model": result.config.model.model_dump(mode="json"),
        "fit": result.config.fit.model_dump(mode="json"),
        "names": list(result.names),
        "units": list(result.units or [""] * len(result.names)),
        "repairs": list(result.repairs),
        "time_unit": result.scaler.time_unit,
        "time_unit_name": result.time_unit,
        "clock": pack_scaler(result.scaler),
        **_form(result),
        "history": pack_history(result.history),
        "trained_on": None if result.trained_on is None else dataclasses.asdict(result.trained_on),
        "dimensions": pack_dimensions(result.dimensions),
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
    refuse_fork()
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
            content = migrated(content)
            config = Config(ModelConfig(**content["model"]), FitConfig(**content["fit"]))
            names = as_names(_texts(content["names"]), _number_of_channels(opened, content["names"]))
            form = {name: _of_type(bool, content[name]) for name in ("realised", "bounded", "state_noise")}
            blank = _skeleton(config.model, len(names), **form)
            history = checked_history(content["history"])
            time_unit = float(_of_type((int, float), content["time_unit"]))
            clock = unpack_scaler(content["clock"], time_unit, content["time_unit_name"], names)
            labels = {
                "units": _texts(content["units"], len(names)),
                "time_unit": _of_type(str, content["time_unit_name"]),
                "repairs": _texts(content["repairs"]),
                "trained_on": _TRAINED_ON.validate_json(json.dumps(content["trained_on"]), strict=True),
                "dimensions": unpack_dimensions(content["dimensions"], config.model.latent_dim),
            }
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_SAID]
            raise ModelFileError(f"its header is damaged ({what}).") from None
        added = added_arrays(_content(metadata)["schema"], blank.latent_dim)
        expected = {name: leaf for name, leaf in _expected(blank, len(names)).items() if name not in added}
        arrays = _arrays(opened, expected)
    if _checksum(metadata["lamperti"], arrays) != metadata.get("sha256"):
        raise ModelFileError("the checksum does not match: the file was changed or damaged. Copy or save it again.")
    arrays |= added
    _check_values(arrays, config.model, len(names))
    if not SHORTEST <= time_unit <= LONGEST:
        raise ModelFileError(f"its time unit is {time_unit}, which is no step of time.")
    scaler = Scaler(arrays["scaler.shift"], arrays["scaler.scale"], time_unit, **clock)
    return FitResult(filled(blank, arrays, "model"), history, config, scaler, names, arrays["states"], **labels)


def _is_model(file: Path) -> bool:
    try:
        with safe_open(file, framework="numpy") as opened:
            return "lamperti" in (opened.metadata() or {})
    except (OSError, SafetensorError):
        return False


def _content(metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        content = json.loads(metadata["lamperti"])
        known = content["format"] == _FORMAT and type(content["schema"]) is int
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


def _number_of_channels(opened: Any, names: Any) -> int:
    """As the arrays have it: looked at first, because names may be made up in any number."""
    n_channels = math.prod(opened.get_slice("scaler.shift").get_shape())
    if not 0 < n_channels <= _MOST_CHANNELS or len(_of_type(list, names)) != n_channels:
        raise ValueError(f"{len(names)} names for {n_channels} channels; {_MOST_CHANNELS} are the most")
    return n_channels


def _of_type(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r} is not of the type that belongs there")
    return value


def _texts(values: Any, length: int | None = None) -> tuple[str, ...]:
    texts = tuple(_of_type(list, values))
    if not all(isinstance(text, str) for text in texts) or length not in (None, len(texts)):
        raise ValueError(f"{values!r} are not texts, one a channel")
    return texts


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
    expected = {name: (leaf.dtype, leaf.shape) for name, leaf in named(blank, "model").items()}
    return expected | {
        "scaler.shift": (np.dtype(float), (n_channels,)),
        "scaler.scale": (np.dtype(float), (n_channels,)),
        "states": (np.dtype(float), (None, blank.latent_dim)),
    }


def _check_values(arrays: Arrays, config: ModelConfig, n_channels: int) -> None:
    """Refuse what no training gives."""
    constrained = {name for name in named(skeleton(config, n_channels), "model") if name.endswith(".raw")}
    positive = _POSITIVE | {name.removesuffix(".raw") for name in constrained}
    for name, array in arrays.items():
        with np.errstate(over="ignore"):
            value = np.exp(array) if name in constrained else array
        fault = "finite" if not np.isfinite(value).all() else ""
        furthest = _FURTHEST_STATE if name == "states" else _LARGEST
        if not name.startswith("scaler.") and not (np.abs(value) <= furthest).all():
            fault = fault or "numbers of a model: they are far too large"
        if name.removesuffix(".raw") in positive and not (value > 0).all():
            fault = fault or "positive"
        if name == "model.dynamics.q.prec" and not fault:
            fault = "" if positive_definite(value) else "positive definite"
        if name == AXES and not fault and np.linalg.matrix_rank(value) < len(value):
            fault = "those of an invertible matrix"
        if fault:
            raise ModelFileError(f"the array {name!r} holds values that are not {fault}. Train the model again.")


def _checksum(header: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(header.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()


def _file(path: str | os.PathLike) -> Path:
    file = as_path(path, ModelFileError)
    return file / MODEL_NAME if file.is_dir() else file


def _skeleton(config: ModelConfig, n_channels: int, *, realised: bool, bounded: bool, state_noise: bool) -> LatentSDE:
    blank = skeleton(config, n_channels)
    blank = eqx.filter_eval_shape(with_noise, blank, blank.dynamics.q.shift) if state_noise else blank
    blank = with_region(blank, blank_region(blank.latent_dim, n_channels)) if bounded else blank
    return eqx.filter_eval_shape(realise, blank) if realised else blank


def _form(result: FitResult) -> dict[str, bool]:
    """Whether the model's positive parameters are held as values already, its drift pulls back, and its noise depends
    on the state."""
    d = result.model.dynamics
    realised = not isinstance(d.amplitude, PositiveParam)
    return {"realised": realised, "bounded": d.region is not None, "state_noise": d.noise is not None}


def _structure(model: LatentSDE) -> Any:
    """Everything about a model but the values of its arrays."""
    leaves, structure = jax.tree.flatten(model)
    return structure, [(leaf.shape, leaf.dtype) if is_array(leaf) else leaf for leaf in leaves]
