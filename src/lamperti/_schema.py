"""The formats that model files have had, and the way from each to the next."""

from typing import Any

import numpy as np

SCHEMA = 6
AXES = "model.dynamics.axes"


def migrated(content: dict[str, Any]) -> dict[str, Any]:
    """The header as the present format has it, one step of its history at a time."""
    while content["schema"] < SCHEMA:
        content = _MIGRATIONS[content["schema"]](content) | {"schema": content["schema"] + 1}
    return content


def added_arrays(schema: int, latent_dim: int) -> dict[str, np.ndarray]:
    """The arrays that a format does not have yet, with what they stand for in its models."""
    # Before format 3 the kernels saw the coordinates themselves.
    return {AXES: np.eye(latent_dim)} if schema < 3 else {}


def _from_1(content: dict[str, Any]) -> dict[str, Any]:
    """Format 1 had no units and no repairs, and told of the numerical guard by totals: in its records and, without a
    time, of rollbacks."""
    history, records = content["history"], content["history"]["records"]
    events: list[tuple[int, str, int]] = []
    for kind, totals in (("refused step", records["refused"]), ("shortened step", records["halvings"])):
        rises = zip(records["iteration"], totals, [0, *totals[:-1]], strict=True)
        events += [(iteration, kind, total - before) for iteration, total, before in rises if total > before]
    if history["rollbacks"]:
        last = records["iteration"][-1]
        events += [(last, kind, history["rollbacks"]) for kind in ("rollback", "raised jitter")]
    names = ("iteration", "kind", "count")
    columns = {name: [event[k] for event in events] for k, name in enumerate(names)}
    history = {**history, "events": columns}
    return content | {"units": [""] * len(content["names"]), "time_unit_name": "", "repairs": [], "history": history}


def _from_3(content: dict[str, Any]) -> dict[str, Any]:
    """Format 3 did not know what was trained on, nor of calendars, and no drift of it pulled back."""
    return content | {"trained_on": None, "clock": None, "bounded": False}


def _from_4(content: dict[str, Any]) -> dict[str, Any]:
    """In format 4 the noise of the motion was constant, and nothing said how the latent dimension was chosen."""
    return content | {"state_noise": False, "dimensions": None}


_MIGRATIONS = {
    1: _from_1,
    2: dict,
    3: _from_3,
    4: _from_4,
    5: dict,
}  # formats 3 and 6 changed nothing in headers that are read
