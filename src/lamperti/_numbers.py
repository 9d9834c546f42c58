"""Numbers and truth values as users give them: Python's or NumPy's, but neither for the other, and no durations."""

from typing import Any

import numpy as np

from lamperti._errors import ConfigError, SeriesError

_MOST_SEED = 2**63 - 1


def is_whole(value: Any) -> bool:
    """Whether this is a whole number. NumPy's durations are among its integers, and are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_real(value: Any) -> bool:
    """The same for a number that may have a fraction."""
    return is_whole(value) or isinstance(value, float | np.floating)


def as_whole(name: str, value: Any, least: int | None = None) -> int:
    """``value`` as Python's own integer, which does not overflow. Raises `ConfigError`, which calls it ``name``."""
    if not is_whole(value) or (least is not None and value < least):
        at_least = "" if least is None else f" of at least {least}"
        raise ConfigError(f"{name} must be a whole number{at_least}; got {value!r}.")
    return int(value)


def as_count(name: str, value: Any) -> int:
    """The same for a number of things, of which there is at least one."""
    return as_whole(name, value, 1)


def as_seed(value: Any) -> int:
    """The same for the seed of something random."""
    try:
        seed = as_whole("seed", value, 0)
    except ConfigError:
        seed = -1
    if not 0 <= seed <= _MOST_SEED:
        raise ConfigError(f"seed must be a whole number from 0 to 2**63 - 1; got {value!r}.")
    return seed


def as_flag(name: str, value: Any) -> bool:
    """A truth value. A word such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def plain(value: Any) -> Any:
    """A number of NumPy, also within a list or a tuple, as Python's own; anything else as it is."""
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def as_points(x: Any, dim: int) -> np.ndarray:
    """Latent points [..., D] that a caller gave."""
    try:
        points = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise SeriesError(
            f"x must be latent points, numbers [..., {dim}]; got a {type(x).__name__}. States of a series: "
            "lamperti.embed(result, series).mean."
        ) from None
    if points.ndim == 0 or points.shape[-1] != dim:
        raise SeriesError(f"x must have {dim} latent coordinates along its last axis; got shape {points.shape}.")
    return points
