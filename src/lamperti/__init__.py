"""lamperti: the state space of a partly observed system, as a stochastic differential equation with uncertainty.

Importing lamperti switches jax to 64-bit floats for the whole process and turns on jax's persistent compilation
cache; see ``lamperti._runtime`` for why, and for the environment variables that overrule it.
"""

from lamperti import _runtime

_runtime.configure()

from lamperti._errors import (  # noqa: E402 - jax must be configured before anything imports it
    CapabilityError,
    ConfigError,
    DependencyError,
    ForkError,
    LampertiError,
    LampertiWarning,
    ModelFileError,
    RunError,
    SeriesError,
    TrainingError,
)
from lamperti.api import build, embed, fit, forecast, resume, simulate  # noqa: E402
from lamperti.config import FitConfig, ModelConfig  # noqa: E402
from lamperti.data import systems  # noqa: E402
from lamperti.data.checking import Check, check  # noqa: E402
from lamperti.data.reading import read  # noqa: E402
from lamperti.data.series import Series  # noqa: E402
from lamperti.io import load, save  # noqa: E402
from lamperti.model import LatentSDE  # noqa: E402
from lamperti.results import Embedding, FitResult, Forecast, Simulation  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "CapabilityError",
    "Check",
    "ConfigError",
    "DependencyError",
    "Embedding",
    "FitConfig",
    "FitResult",
    "Forecast",
    "ForkError",
    "LampertiError",
    "LampertiWarning",
    "LatentSDE",
    "ModelConfig",
    "ModelFileError",
    "RunError",
    "Series",
    "SeriesError",
    "Simulation",
    "TrainingError",
    "build",
    "check",
    "embed",
    "fit",
    "forecast",
    "load",
    "read",
    "resume",
    "save",
    "simulate",
    "systems",
]
