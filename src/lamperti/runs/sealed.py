"""The configuration of a run as its folder keeps it: JSON with a checksum, so that no edited one is gone on with."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamperti._errors import RunError
from lamperti.io import RUN_CONFIG as CONFIG

SCHEMA = 1


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
    if content["schema"] > SCHEMA:
        raise RunError(f"{folder} was written by lamperti {content['version']}. Install a newer lamperti.")
    return content


def sealed(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"sha256": _checksum(content), "run": content}, indent=1, allow_nan=False).encode()


def says_run(folder: Path) -> bool:
    """Whether the configuration in a folder is that of a run, be it edited since."""
    try:
        return json.loads((folder / CONFIG).read_bytes())["run"]["format"] == "lamperti-run"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()
