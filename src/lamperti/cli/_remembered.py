"""Data for a run: a file given, or the one that the run was fitted to; read as it was then unless told otherwise."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lamperti._errors import ConfigError
from lamperti.cli._source import Source
from lamperti.data.reading import options_for, read
from lamperti.data.series import DATES, Series
from lamperti.runs.sealed import CONFIG, read_config

_AS_BEFORE = Source()


class Recording(NamedTuple):
    """A file and how to read it."""

    path: Path
    options: dict[str, Any]
    time_unit: str = ""  # of the model

    def read(self) -> list[Series]:
        series = read(self.path, **self.options)
        asked = any(self.options.get(name) is not None for name in ("time", "dt"))
        if self.time_unit == DATES and not asked and any(one.time_unit != DATES for one in series):
            raise ConfigError(
                f"the model was trained with dates, and {self.path} was read without. Pass --time COLUMN, or --dt with "
                "the step in seconds."
            )
        return series


def recording(
    run: Path, data: Path | None, source: Source, names: Sequence[str] | None = None, time_unit: str = ""
) -> Recording:
    """``data``, or the data of the run when it is None; ``names`` are the channels to read, if they are known.

    ``time_unit`` is that of the model: one that was trained with dates needs times, or a step."""
    origin = (read_config(run)["origin"] or {}) if (run / CONFIG).is_file() else {}
    if data is None:
        if source != _AS_BEFORE:
            raise ConfigError("options of reading are remembered by the run; give them only with DATA.")
        if not origin:
            raise ConfigError(f"{run} does not say where its data came from. Give DATA.")
        data = Path(origin["path"])
    if not origin:
        return Recording(data, source.options(names), time_unit)
    options = options_for(data, origin["options"])
    if names is not None:
        options.setdefault("columns", list(names))
        if "units" in options:  # channels may have been left out since, as constant
            options["units"] = {name: unit for name, unit in options["units"].items() if name in options["columns"]}
    return Recording(data, _overlaid(options, source), time_unit)


def _overlaid(options: dict[str, Any], source: Source) -> dict[str, Any]:
    """Remembered options with those that were given now in their place; one that was given empty is forgotten."""
    changed = [name for name in vars(source) if getattr(source, name) != getattr(_AS_BEFORE, name)]
    forgotten = [name for name in changed if getattr(source, name) in ("", [""])]
    if "dt" in changed:  # instead of the column of times, not beside it
        forgotten += ["time", "time_format", "timezone"]
    elif "time" in changed:
        forgotten.append("dt")
    kept = {name: value for name, value in options.items() if name not in forgotten}
    new = dataclasses.replace(source, **{name: None for name in changed if name in forgotten}).options()
    new = {name: new[name] for name in changed if name in new}
    if "units" in new:
        new["units"] = kept.get("units", {}) | new["units"]
    return kept | new
