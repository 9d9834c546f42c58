"""What all comparisons of long-run behaviour share: the shape of their data, and what they refuse."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from lamperti._errors import ConfigError

Paths = Float[np.ndarray, "_N _T"]  # underscores: the two sets that are compared may differ in number
Pool = Float[np.ndarray, " n"]
Distance = Callable[[Paths, Paths], float]


def check_paths(model: Paths, real: Paths) -> None:
    """Refuse sets that cannot be compared. The model's paths may be non-finite: that is a finding, not an error."""
    if model.ndim != 2 or real.ndim != 2 or model.shape[1] != real.shape[1]:
        raise ConfigError(
            f"paths must be [N, T] with the same T, got {model.shape} and {real.shape}. Cut the longer paths."
        )
    if not np.isfinite(real).all() or real.std() == 0:
        raise ConfigError("the real paths must be finite and not constant. Fill gaps, or take stretches without them.")
