"""Variables over named dimensions, as NetCDF, Zarr and xarray have them, laid out as a table of rows in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamperti._errors import SeriesError
from lamperti.data.options import ReadOptions
from lamperti.data.table import Table
from lamperti.data.time_names import TIME_COLUMNS

_MAX_CHANNELS = 256


@dataclass(frozen=True, eq=False)
class Variable:
    """Values over named dimensions. One that has the name of its only dimension is that dimension's coordinate."""

    name: str
    dims: tuple[str, ...]
    values: np.ndarray
    unit: str = ""

    @property
    def is_coordinate(self) -> bool:
        return self.dims == (self.name,)


def cube_table(variables: list[Variable], options: ReadOptions, left_out: Mapping[str, str] | None = None) -> Table:
    """Rows in time, for one series after the other if there is a dimension of series (``id``). A dimension that is
    neither time nor id numbers channels.

    ``left_out``: what there is besides that cannot be read, and why. It is told, and refused where it is needed.
    """
    coordinates = {v.name: v for v in variables if v.is_coordinate}
    data = [v for v in variables if not v.is_coordinate and v.dims]
    dims = list(dict.fromkeys(d for v in data for d in v.dims))
    left_out = left_out or {}
    # A dimension whose labels cannot be read still tells series apart, by number.
    for name in (*(options.columns or ()), None if options.id in dims else options.id, options.time):
        if name is not None and name in left_out:
            raise SeriesError(f"{name!r} was asked for but {left_out[name]}. Write it as numbers.")
    time = _time_dimension(data, coordinates, dims, options)
    data = [v for v in data if time in v.dims]
    named = options.columns
    if named is not None:
        wanted = (*named, *(() if options.id is None else (options.id,)))
        data = [
            v for v in data if is_asked_for(v.name, wanted) or (v.name in TIME_COLUMNS and v.dims == (time,))
        ]  # a table of vectors may have its times among them
    if time not in coordinates and not (options.dt is not None and named):
        clock = next((name for name in (time, *TIME_COLUMNS) if name in left_out or name in {v.name for v in data}), "")
        if clock in left_out:
            raise SeriesError(
                f"{clock!r} should be the times but {left_out[clock]}. Write it as numbers or dates, or name the "
                "channels by columns= and give dt=."
            )
    if not data:
        raise SeriesError(f"no variable runs along {time!r}, or none of those asked for. It has: {_listed(variables)}.")
    id = options.id if options.id in dims else None
    labels = _labels(id, coordinates, data) if id else None
    length = next(v.values.shape[v.dims.index(time)] for v in data)
    columns: dict[str, np.ndarray] = {}
    units: dict[str, str] = {}
    for variable in data:
        for name, rows in _columns(variable, time, id, coordinates):
            if name in columns:
                raise SeriesError(f"two variables would make a column {name!r}. Rename one.")
            if rows.ndim == 1:
                rows = np.broadcast_to(rows, (1 if labels is None else len(labels), length))
            columns[name], units[name] = rows.reshape(-1), variable.unit
            if len(columns) > _MAX_CHANNELS:
                raise SeriesError(
                    f"more than {_MAX_CHANNELS} channels, dimensions {', '.join(dims)}. Select some first."
                )
    stamps = coordinates[time].values if time in coordinates else None
    repeat = 1 if labels is None else len(labels)
    return Table(
        columns,
        units={**units, "index": coordinates[time].unit if time in coordinates else ""},
        times=None if stamps is None else np.tile(stamps, repeat),
        groups=None if labels is None else np.repeat(labels, length),
        utc=frozenset({"index"}),
        settled=True,
        repairs=tuple(f"{name!r} was left out: {why}" for name, why in left_out.items() if named is None),
    )


def wanted_variables(options: ReadOptions) -> list[str] | None:
    """The variables that may be needed; None for all. Coordinates are needed always."""
    if options.columns is None or options.channel is not None:
        return None
    return [*options.columns, *(name for name in (options.time, options.id, *TIME_COLUMNS) if name is not None)]


def is_asked_for(name: str, wanted: Sequence[str] | None) -> bool:
    """Whether a variable is among those wanted: itself, or (as name_label) a channel of it."""
    return wanted is None or any(w == name or w.startswith(f"{name}_") for w in wanted)


def _time_dimension(
    data: list[Variable], coordinates: dict[str, Variable], dims: list[str], options: ReadOptions
) -> str:
    if options.time is not None:
        if options.time not in dims:
            raise SeriesError(f"there is no dimension {options.time!r}. The data has: {', '.join(dims) or 'none'}.")
        return options.time
    dated = [name for name, c in coordinates.items() if c.values.dtype.kind == "M" and name in dims]
    usual = [name for name in dims if name in TIME_COLUMNS and name != options.id]
    rest = [name for name in dims if name != options.id]
    for found in (usual, dated, rest):
        if len(found) == 1:
            return found[0]
    raise SeriesError(f"which dimension is time? The data has: {', '.join(dims) or 'none'}. Name it with time=.")


def _labels(id: str, coordinates: dict[str, Variable], data: list[Variable]) -> np.ndarray:
    if id in coordinates:
        return np.array([str(label) for label in coordinates[id].values], dtype=object)
    return np.arange(next(v.values.shape[v.dims.index(id)] for v in data if id in v.dims))


def _columns(
    variable: Variable, time: str, id: str | None, coordinates: dict[str, Variable]
) -> list[tuple[str, np.ndarray]]:
    """The columns [T] or [R, T] of a variable: one, or one for each place along a dimension that is left."""
    rest = [d for d in variable.dims if d not in (time, id)]
    if len(rest) > 1:
        raise SeriesError(
            f"variable {variable.name!r} has dimensions ({', '.join(variable.dims)}); besides time and id there "
            "may be one more, of channels. Select places first."
        )
    order = [d for d in (*rest, id, time) if d is not None and d in variable.dims]
    values = variable.values.transpose([variable.dims.index(d) for d in order])
    if not rest:
        return [(variable.name, values)]
    labels: Any = coordinates[rest[0]].values if rest[0] in coordinates else range(len(values))
    return [(f"{variable.name}_{label}", part) for label, part in zip(labels, values, strict=True)]


def _listed(variables: list[Variable]) -> str:
    return ", ".join(f"{v.name} ({', '.join(v.dims)})" for v in variables) or "nothing"
