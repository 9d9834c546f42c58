"""Figures with matplotlib. They are plain ``Figure`` objects without global state: no window opens, and any backend,
or none, will do. Write one with ``figure.savefig("name.png")``, or with `write_png`, whole or not at all."""

from lamperti.viz._style import write_png
from lamperti.viz.checks import diagnostics
from lamperti.viz.compare import drift_fields, evolution, long_run, state_spaces
from lamperti.viz.courses import courses, paths, states
from lamperti.viz.data import overview
from lamperti.viz.dimensions import dimensions
from lamperti.viz.equation import drift
from lamperti.viz.forecasts import forecast_fan, free_run
from lamperti.viz.phase import phase_space
from lamperti.viz.training import training

__all__ = [
    "courses",
    "diagnostics",
    "dimensions",
    "drift",
    "drift_fields",
    "evolution",
    "forecast_fan",
    "free_run",
    "long_run",
    "overview",
    "paths",
    "phase_space",
    "state_spaces",
    "states",
    "training",
    "write_png",
]
