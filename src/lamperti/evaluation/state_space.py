"""Does a free-running model visit the same states as often? Divergence of occupations in delay space.

Notation   model, real: evenly sampled paths [N, T] of one observable
           z_k = (y_k, y_{k+lag}, ..., y_{k+(m-1) lag}): delay vectors, m = dimension
           p, q: share of the real, of the model's delay vectors in each of bins^m cells of a box
Equations  D_stsp = sum p log(p/q),   p = (n + alpha) / (N + alpha K) over K cells

The box spans the real values; one more cell holds whatever lies outside, so that an escape is counted, not lost.
"""

import numpy as np
from jaxtyping import Float, Int

from lamperti._errors import ConfigError
from lamperti.data.correlation import first_minimum_lag
from lamperti.evaluation._paths import Paths, check_paths

BINS = 30
ALPHA = 1e-5
DIMENSION = 3


def delay_vectors(paths: Paths, lag: int, dimension: int) -> Float[np.ndarray, "K m"]:
    """Delay vectors pooled over paths, oldest coordinate first."""
    n = paths.shape[1] - (dimension - 1) * lag
    if lag < 1 or dimension < 1 or n < 1:
        raise ConfigError(
            f"{dimension} delays of {lag} samples need paths of at least {(dimension - 1) * lag + 1} samples, "
            f"got {paths.shape[1]}. Take longer paths, or a shorter lag (at least 1)."
        )
    return np.stack([paths[:, i * lag : i * lag + n] for i in range(dimension)], axis=-1).reshape(-1, dimension)


def state_space_distance(
    model: Paths,
    real: Paths,
    lag: int | None = None,
    dimension: int = DIMENSION,
    bins: int = BINS,
    alpha: float = ALPHA,
) -> float:
    """D_stsp, the Kullback-Leibler divergence of the model's occupation of delay space from the real one, in nats.

    ``lag`` is that of the first minimum of the real paths' mutual information unless it is given. The floor is far
    from 0: cells that only one of two finite sets visits weigh log(1/alpha) each. Use ``ratio_to_floor``.
    """
    check_paths(model, real)
    if not np.isfinite(model).all():
        return np.inf
    if bins < 1 or not alpha > 0:
        raise ConfigError(f"a divergence of histograms needs bins >= 1 and alpha > 0, got {bins} and {alpha}.")
    lag = first_minimum_lag(list(real), max_lag=_longest_lag(real, dimension)).lag if lag is None else lag
    box = float(real.min()), float(real.max())
    cells = [_cells(delay_vectors(paths, lag, dimension), box, bins) for paths in (real, model)]
    # Cells that neither set visits hold alpha / (N + alpha K) on both sides and are summed in one go.
    visited, place = np.unique(np.concatenate(cells), return_inverse=True)
    n_cells = bins**dimension + 1
    counts = [np.bincount(part, minlength=len(visited)) for part in np.split(place, [len(cells[0])])]
    p, q = ((n + alpha) / (n.sum() + alpha * n_cells) for n in counts)
    empty_p, empty_q = (alpha / (n.sum() + alpha * n_cells) for n in counts)
    rest = (n_cells - len(visited)) * empty_p * np.log(empty_p / empty_q)
    return float(np.sum(p * np.log(p / q)) + rest)


def outside_share(paths: Paths, real: Paths) -> float:
    """Share of the values that lie outside the box of the real ones, non-finite values among them."""
    inside = (paths >= real.min()) & (paths <= real.max())  # False for NaN
    return float(1 - inside.mean())


def _longest_lag(real: Paths, dimension: int) -> int:
    """A lag at which at least half of a path is left for delay vectors."""
    return max(real.shape[1] // (2 * max(dimension - 1, 1)), 1)


def _cells(z: Float[np.ndarray, "K m"], box: tuple[float, float], bins: int) -> Int[np.ndarray, " K"]:
    """Number of the cell of each vector; bins^m for those outside the box."""
    low, high = box
    index = np.minimum(((z - low) / (high - low) * bins).astype(int), bins - 1)
    number = index @ bins ** np.arange(z.shape[1])
    return np.where(((z >= low) & (z <= high)).all(axis=1), number, bins ** z.shape[1])
