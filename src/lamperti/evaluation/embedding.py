"""How much of the true state does a latent state hold? Held-out regressions and kept neighbourhoods.

Notation   latent: z of each series [T, D]      state: x of each series [T, E], sample by sample the same times
Equations  R2 = 1 - sum (x - x_hat)^2 / sum (x - mean)^2 over held-out samples, coordinate by coordinate
           trustworthiness = 1 - 2/(N k (2N - 3k - 1)) sum over z-neighbours that are no x-neighbours of (rank in x - k)
           continuity: the same with x and z exchanged

Samples close in time are nearly copies, so whole blocks of time are held out, with a gap on either side of each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from lamperti._errors import ConfigError

Regression = Callable[
    [Float[np.ndarray, "N D"], Float[np.ndarray, "N E"], Float[np.ndarray, "K D"]], Float[np.ndarray, "K E"]
]

# Kernel ridge solves one system of this size a setting and fold; more samples sharpen the answer little.
MAX_KERNEL_SAMPLES = 1000
RIDGES = (1e-6, 1e-4, 1e-2)
WIDTHS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Neighbourhoods:
    """1 where every neighbour is kept, about 1/2 where neighbours are unrelated."""

    trustworthiness: float
    """Neighbours in the latent space are neighbours in truth: nothing was folded together."""
    continuity: float
    """Neighbours in truth are neighbours in the latent space: nothing was torn apart."""


def affine_r2(
    latent: Sequence[Float[np.ndarray, "_T D"]], state: Sequence[Float[np.ndarray, "_T E"]], n_folds: int = 5
) -> Float[np.ndarray, " E"]:
    """Held-out R2 of each state coordinate as an affine map of the latent state; 1 is the most."""
    return _held_out_r2(latent, state, n_folds, _affine)


def kernel_r2(
    latent: Sequence[Float[np.ndarray, "_T D"]],
    state: Sequence[Float[np.ndarray, "_T E"]],
    n_folds: int = 5,
    *,
    seed: int = 0,
) -> Float[np.ndarray, " E"]:
    """Held-out R2 of each state coordinate as a smooth map of the latent state.

    Kernel ridge regression with a squared-exponential kernel, of what an affine map leaves: beyond the training
    samples the map goes on as a plane instead of falling back to the mean. Width and ridge are chosen on a part of the
    training blocks, never on the held-out ones. At most 1,000 training samples, drawn at random, are used.
    """
    rng = np.random.default_rng(seed)
    return _held_out_r2(latent, state, n_folds, lambda z, x, new: _SmoothMap.fit(z, x, rng)(new))


def smooth_map(
    latent: Float[np.ndarray, "N D"], state: Float[np.ndarray, "N E"], *, seed: int = 0
) -> Callable[[Float[np.ndarray, "K D"]], Float[np.ndarray, "K E"]]:
    """The map from latent to true states that ``kernel_r2`` judges, fitted to all of these samples."""
    shift, scale = latent.mean(axis=0), _spread(latent)
    found = _SmoothMap.fit((latent - shift) / scale, state, np.random.default_rng(seed))
    return lambda new: found((new - shift) / scale)


def neighbourhoods(
    latent: Float[np.ndarray, "N D"],
    state: Float[np.ndarray, "N E"],
    k: int = 12,
    *,
    max_samples: int = 1000,
    seed: int = 0,
) -> Neighbourhoods:
    """Trustworthiness and continuity of a latent space; each coordinate is scaled to unit sd first.

    At most ``max_samples`` samples, drawn at random, are compared, which also spaces them in time.
    """
    if len(latent) != len(state):
        raise ConfigError(f"latent and state must be the same samples, got {len(latent)} and {len(state)}.")
    n = min(len(latent), max_samples)
    if not 1 <= k < n / 2:
        raise ConfigError(f"k must lie between 1 and half of the {n} samples, got {k}.")
    chosen = np.random.default_rng(seed).permutation(len(latent))[:n]
    ranks = [_ranks(_standardise(points[chosen])) for points in (latent, state)]
    worst = n * k * (2 * n - 3 * k - 1) / 2
    lost = [np.sum(np.where(near <= k, np.maximum(far - k, 0), 0)) for near, far in (ranks, ranks[::-1])]
    return Neighbourhoods(*(float(1 - total / worst) for total in lost))


def _held_out_r2(
    latent: Sequence[np.ndarray], state: Sequence[np.ndarray], n_folds: int, regress: Regression
) -> Float[np.ndarray, " E"]:
    if len(latent) != len(state) or not latent or any(len(z) != len(x) for z, x in zip(latent, state, strict=True)):
        raise ConfigError("latent and state must hold the same series, each with the same samples.")
    if n_folds < 2:
        raise ConfigError(f"n_folds must be at least 2, got {n_folds}.")
    fold, edge = (np.concatenate(parts) for parts in zip(*(_blocks(len(z), n_folds) for z in latent), strict=True))
    z, x = _standardise(np.concatenate(latent)), np.concatenate(state)
    error, total = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for held in range(n_folds):
        test, train = fold == held, (fold != held) & ~edge
        if train.sum() <= z.shape[1] + 1 or not test.any():
            raise ConfigError(f"{len(z)} samples are too few for {n_folds} blocks a series. Use longer series.")
        error += ((x[test] - regress(z[train], x[train], z[test])) ** 2).sum(axis=0)
        total += ((x[test] - x[train].mean(axis=0)) ** 2).sum(axis=0)
    return 1 - error / total


def _blocks(n: int, n_folds: int) -> tuple[Int[np.ndarray, " T"], Bool[np.ndarray, " T"]]:
    """The block of every sample, and which samples are too close to another block to train on (a tenth of one)."""
    place = np.arange(n) * n_folds / n
    fold = place.astype(int)
    inside = place - fold
    first, last = fold == 0, fold == n_folds - 1
    return fold, ((inside < 0.1) & ~first) | ((inside > 0.9) & ~last)


def _affine(z: np.ndarray, x: np.ndarray, new: np.ndarray) -> np.ndarray:
    return _with_ones(new) @ _plane(z, x)


def _plane(z: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "D1 E"]:
    return np.linalg.lstsq(_with_ones(z), x, rcond=None)[0]


def _with_ones(z: np.ndarray) -> Float[np.ndarray, "N D1"]:
    return np.column_stack([z, np.ones(len(z))])


@dataclass(frozen=True, eq=False)
class _SmoothMap:
    """An affine map, and kernel ridge regression of what it leaves."""

    centres: Float[np.ndarray, "K D"]
    weights: Float[np.ndarray, "K E"]
    plane: Float[np.ndarray, "D1 E"]
    scale: float

    def __call__(self, new: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N E"]:
        near = np.exp(-cdist(new, self.centres, "sqeuclidean") / self.scale)
        return _with_ones(new) @ self.plane + near @ self.weights

    @classmethod
    def fit(cls, z: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> "_SmoothMap":
        """Width and ridge are those that do best on the last fifth; taken in order of time, it is a block again."""
        cut = int(0.8 * len(z))
        fit, check = _thin(cut, rng), cut + _thin(len(z) - cut, rng)
        width, ridge = min(
            ((width, ridge) for width in WIDTHS for ridge in RIDGES),
            key=lambda s: float(((cls._solved(z[fit], x[fit], *s)(z[check]) - x[check]) ** 2).sum()),
        )
        chosen = _thin(len(z), rng)
        return cls._solved(z[chosen], x[chosen], width, ridge)

    @classmethod
    def _solved(cls, z: np.ndarray, x: np.ndarray, width: float, ridge: float) -> "_SmoothMap":
        scale, plane = 2 * width**2 * z.shape[1], _plane(z, x)
        gram = np.exp(-cdist(z, z, "sqeuclidean") / scale)
        gram[np.diag_indices_from(gram)] += ridge * len(z)
        left = x - _with_ones(z) @ plane
        return cls(z, cho_solve(cho_factor(gram, lower=True), left), plane, scale)


def _thin(n: int, rng: np.random.Generator) -> Int[np.ndarray, " K"]:
    return np.sort(rng.permutation(n)[:MAX_KERNEL_SAMPLES])


def _standardise(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(axis=0)) / _spread(z)


def _spread(z: np.ndarray) -> np.ndarray:
    """Standard deviations, and 1 where nothing varies."""
    sd = z.std(axis=0)
    return np.where(sd > 0, sd, 1.0)


def _ranks(points: np.ndarray) -> Int[np.ndarray, "N N"]:
    """ranks[i, j] is 1 for the nearest neighbour j of i; a point is its own number 0."""
    distance = cdist(points, points)
    np.fill_diagonal(distance, -1.0)
    return np.argsort(np.argsort(distance, axis=1), axis=1)
