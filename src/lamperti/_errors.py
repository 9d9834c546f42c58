"""Exceptions of the library.

Each message says what was wrong, what was found and how to mend it; the command line prints it as it is.
"""

from typing import Any

from lamperti._text import escaped


class LampertiError(Exception):
    """Root of everything that lamperti raises on purpose.

    Names of foreign origin are part of many messages: what would command a terminal or turn the direction of writing
    is written out as an escape.
    """

    def __init__(self, message: object = ""):
        super().__init__(escaped(str(message)))


class SeriesError(LampertiError, ValueError):
    """The data cannot be used as given."""


class ConfigError(LampertiError, ValueError):
    """An option is unknown, out of range, or does not go with another."""


class CapabilityError(LampertiError, TypeError):
    """Two parts of a model do not work together; the message names one that does."""


class TrainingError(LampertiError, RuntimeError):
    """Training could not go on; the message says what to change. ``history`` (if any) tells what led to it."""

    def __init__(self, message: str, history: Any = None):
        super().__init__(message)
        self.history = history


class RunError(LampertiError, RuntimeError):
    """The folder of a run cannot be written or read, is in use, or does not go with the data."""


class ModelFileError(LampertiError, ValueError):
    """A file is not a lamperti model, or not an intact one."""


class DependencyError(LampertiError, ImportError):
    """An optional library is needed and absent; the message says what to install."""


class ForkError(LampertiError, RuntimeError):
    """The process was forked from one that had used jax; the message says how to start workers."""


class LampertiWarning(UserWarning):
    """Something a careful user would want to know, but that does not stop the work."""

    def __init__(self, message: object = ""):
        super().__init__(escaped(str(message)))
