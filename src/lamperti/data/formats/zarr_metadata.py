"""What a Zarr store says about its arrays, read and checked before any of their bytes are decoded.

Codecs are looked up by name, and some can run code or call libraries that were never meant for foreign bytes; so only
those on a list are let through, for every array of the store, wanted or not.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from lamperti._errors import SeriesError
from lamperti.data.local import open_local

CODECS_3 = frozenset({"bytes", "transpose", "gzip", "zstd", "blosc", "crc32c"})
CODECS_2 = frozenset({"blosc", "gzip", "zlib", "zstd", "lz4", "bz2", "lzma", "shuffle", "delta", "crc32"})
# Complex numbers are let through because the gate refuses them by name: left out, they would go unnoticed.
_TYPES_3 = frozenset(
    ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)]
)
_DATES_3 = ("numpy.datetime64", "numpy.timedelta64")
_TYPE_2 = re.compile(r"^[<>|]([iufbc]\d+|[Mm]8\[\d*[a-zμ]+\])$")
_MAX_METADATA = 1 << 20
_NAMES = ("zarr.json", ".zarray", ".zgroup")


def is_store(folder: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return any((folder / name).is_file() for name in _NAMES)


def read_metadata(store: Path, files: list[str]) -> list[dict[str, Any]]:
    """Name, path, format, dims and attributes of every plain array of a store whose ``files`` are these.

    One that is of another kind has a name and a reason (``left_out``) only. Raises `SeriesError` for an array that is
    not made by known codecs, or of Python objects.
    """
    arrays = []
    for file in sorted(files):
        place = Path(file)
        if place.name == "zarr.json":
            content = _json(store / place)
            if content.get("node_type") == "array":
                arrays.append(_version_3(content, place.parent))
            elif content.get("node_type") != "group":
                raise SeriesError(f"{file} says neither 'array' nor 'group'. Write the store again.")
        elif place.name == ".zarray":
            attributes = place.with_name(".zattrs")
            about = _json(store / attributes) if str(attributes) in files else {}
            arrays.append(_version_2(_json(store / place), about, place.parent))
    if not arrays:
        raise SeriesError("the store holds no array.")
    return arrays


def _json(path: Path) -> dict[str, Any]:
    with open_local(path) as file:
        text = file.read(_MAX_METADATA + 1)
    if len(text) > _MAX_METADATA:
        raise SeriesError(f"{path.name} holds more than {_MAX_METADATA} bytes, which metadata does not.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SeriesError(f"{path.parent.name}/{path.name} is not JSON ({error}). Write the store again.") from None
    if not isinstance(content, dict):
        raise SeriesError(f"{path.parent.name}/{path.name} is not a JSON object. Write the store again.")
    return content


def _version_3(content: dict[str, Any], place: Path) -> dict[str, Any]:
    name = _name(place)
    if content.get("zarr_format") != 3 or content.get("storage_transformers"):
        raise SeriesError(f"array {name!r} is not plain Zarr version 3. Write the store again.")
    grid = _at(content, "chunk_grid", "name")
    if grid != "regular" or _at(content, "chunk_key_encoding", "name") not in ("default", "v2"):
        raise SeriesError(f"array {name!r} has chunks of a kind that is not read. Write it with a regular grid.")
    _check_sizes(name, content.get("shape"), _at(content, "chunk_grid", "configuration", "chunk_shape"))
    codecs = content.get("codecs")
    if not isinstance(codecs, list) or not codecs:
        raise SeriesError(f"array {name!r} names no codecs. Write the store again.")
    for codec in codecs:
        _check_codec(name, codec, "name", CODECS_3)
    kind = content.get("data_type")
    if not (kind in _TYPES_3 if isinstance(kind, str) else _at(kind, "name") in _DATES_3):
        return _not_numbers(name, kind)
    attributes = _attributes(name, content.get("attributes", {}))
    dims = content.get("dimension_names") or [None] * len(content["shape"])
    return _described(name, place, 3, dims, attributes, content["shape"])


def _version_2(content: dict[str, Any], attributes: dict[str, Any], place: Path) -> dict[str, Any]:
    name = _name(place)
    if content.get("zarr_format") != 2:
        raise SeriesError(f"array {name!r} is of Zarr version {content.get('zarr_format')!r}; 2 and 3 are read.")
    _check_sizes(name, content.get("shape"), content.get("chunks"))
    filters = content.get("filters") or []
    if not isinstance(filters, list):
        raise SeriesError(f"array {name!r} has filters that are not a list. Write the store again.")
    for codec in [*filters, content.get("compressor")]:
        if codec is not None:
            _check_codec(name, codec, "id", CODECS_2)
    kind = content.get("dtype")
    if not isinstance(kind, str) or not _TYPE_2.match(kind):
        return _not_numbers(name, kind)
    attributes = _attributes(name, attributes)
    dims = attributes.pop("_ARRAY_DIMENSIONS", None)
    if dims is not None and content.get("fill_value") is not None:
        # xarray, which writes these, keeps the mark of missing values in the array's fill value.
        attributes.setdefault("_FillValue", content["fill_value"])
    return _described(name, place, 2, dims or [None] * len(content["shape"]), attributes, content["shape"])


def _described(
    name: str, place: Path, version: int, dims: Any, attributes: dict[str, Any], shape: list[int]
) -> dict[str, Any]:
    if not isinstance(dims, list) or len(dims) != len(shape) or not all(d is None or isinstance(d, str) for d in dims):
        raise SeriesError(f"array {name!r} has {len(shape)} axes but names for them are {dims!r}.")
    named = [d or f"axis of {n}" for d, n in zip(dims, shape, strict=True)]
    return {"name": name, "path": str(place), "format": version, "dims": named, "attributes": attributes}


def _not_numbers(name: str, kind: Any) -> dict[str, Any]:
    """Text may stand beside the data; objects may not, because their codecs rebuild Python objects."""
    if isinstance(kind, str) and (kind in ("string", "|O") or kind[:2] == "|O"):
        raise SeriesError(
            f"array {name!r} holds Python objects or text of any length ({kind}). Leave it out of the store."
        )
    if not isinstance(kind, (str, dict)):
        raise SeriesError(f"array {name!r} has the data type {kind!r}, which is not read. Write plain numbers.")
    shown = kind if isinstance(kind, str) else _at(kind, "name")
    return {"name": name, "left_out": f"it holds {shown}, not numbers"}


def _name(place: Path) -> str:
    return place.name or "y"


def _attributes(name: str, attributes: Any) -> dict[str, Any]:
    if not isinstance(attributes, dict):
        raise SeriesError(f"array {name!r} has attributes that are not a JSON object. Write the store again.")
    return dict(attributes)


def _check_codec(name: str, codec: Any, key: str, allowed: frozenset[str]) -> None:
    known = codec.get(key) if isinstance(codec, dict) else codec
    if not isinstance(known, str) or known not in allowed:
        raise SeriesError(
            f"array {name!r} uses the codec {known!r}; only {', '.join(sorted(allowed))} are let through. Write the "
            "store again with one of these."
        )


def _check_sizes(name: str, shape: Any, chunks: Any) -> None:
    for what, sizes, least in (("shape", shape, 0), ("chunks", chunks, 1)):
        good = isinstance(sizes, list) and all(type(n) is int and least <= n < 2**48 for n in sizes)
        if not good or len(sizes) > 8:
            raise SeriesError(f"array {name!r} declares {what} {sizes!r}, which cannot be. Write the store again.")
    if len(shape) != len(chunks) or math.prod(chunks) > 2**31:
        raise SeriesError(f"array {name!r} has shape {shape} and chunks {chunks}, which do not go together.")


def _at(content: Any, *path: str) -> Any:
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content
