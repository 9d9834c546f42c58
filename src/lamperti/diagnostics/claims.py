"""What may be said of the learned system, given what is known of it."""

from typing import Literal

import numpy as np

from lamperti.data.stationarity import Stationarity
from lamperti.diagnostics.fixed_points import continuous
from lamperti.evaluation.lyapunov import Exponent
from lamperti.results import FitResult

ExponentClaim = Literal["chaotic", "not chaotic", "linear", "open", "none"]
_ALIKE = 0.05  # of the exponent of the linear system


def linear_exponent(result: FitResult) -> float:
    """The largest exponent of the linear system that is nearest to the mean drift along the states of the data."""
    design = np.column_stack([np.ones(len(result.states)), result.states])
    slopes = np.linalg.lstsq(design, result.drift(result.states)[0], rcond=None)[0][1:]
    return float(continuous(np.linalg.eigvals(slopes), result.step)[0].real)


def exponent_claim(exponent: Exponent, linear: float, stationarity: Stationarity) -> ExponentClaim:
    """What a Lyapunov exponent allows to say.

    "none" where it is not finite or the data has no law that stays; "open" where its sign is; "linear" where its
    interval (two standard errors) holds what a linear system gives, which is never chaotic."""
    if not np.isfinite(exponent.mean) or not stationarity.stationary:
        return "none"
    if abs(exponent.mean) < 2 * exponent.se:
        return "open"
    if abs(exponent.mean - linear) <= 2 * exponent.se + _ALIKE * abs(linear):
        return "linear"
    return "chaotic" if exponent.mean > 0 else "not chaotic"
