"""Figures with matplotlib. They are plain ``Figure`` objects without global state: no window opens, and any backend,
or none, will do. Write one with ``figure.savefig("name.png")``, or with `write_png`, whole or not at all."""

from lamperti.viz._style import write_png
from lamperti.viz.data import overview
from lamperti.viz.forecasts import forecast_fan, free_run
from lamperti.viz.phase import phase_space
from lamperti.viz.training import training

__all__ = ["forecast_fan", "free_run", "overview", "phase_space", "training", "write_png"]
