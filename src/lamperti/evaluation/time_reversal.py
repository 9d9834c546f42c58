"""Does a free-running model know which way time goes? Moments that change sign when a path is played backwards.

Notation   x: paths [N, T], centred and scaled by the real paths' mean and sd; l: lag in samples
Equations  quadratic(l) = E[x_k^2 x_{k+l} - x_k x_{k+l}^2]        cubic(l) = E[x_k^3 x_{k+l} - x_k x_{k+l}^3]

Both vanish for a reversible process, as every stationary Gaussian one is. Spectrum, autocorrelation and the law of
the values are blind to the direction of time. The quadratic one also vanishes where x and -x have the same law
(Lorenz's x1, van der Pol), the cubic one does not.
"""

import numpy as np
from jaxtyping import Float, Int

from lamperti._errors import ConfigError
from lamperti.evaluation._paths import Paths, check_paths

N_LAGS = 12


def asymmetry(paths: Paths, lags: Int[np.ndarray, " L"]) -> Float[np.ndarray, "L 2"]:
    """The quadratic and the cubic moment at every lag; zero where time could run either way."""
    if np.any(lags < 1) or np.any(lags >= paths.shape[1]):
        raise ConfigError(f"lags must lie between 1 and T-1 = {paths.shape[1] - 1}, got {lags.tolist()}.")
    moments = []
    for lag in lags:
        now, then = paths[:, :-lag], paths[:, lag:]
        product = now * then
        moments.append([np.mean(product * (now - then)), np.mean(product * (now**2 - then**2))])
    return np.array(moments)


def asymmetry_distance(model: Paths, real: Paths, max_lag: int | None = None) -> float:
    """Root mean square difference of the moments over lags in geometric steps, by default to an eighth of a path."""
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    longest = max(1, real.shape[1] // 8) if max_lag is None else max_lag
    lags = np.unique(np.geomspace(1, longest, N_LAGS).round().astype(int))
    ours, theirs = (asymmetry((p - real.mean()) / real.std(), lags) for p in (model, real))
    return float(np.sqrt(np.mean((ours - theirs) ** 2)))
