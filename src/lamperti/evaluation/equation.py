"""Is the learned equation the true one? Drift and diffusion in the true coordinates, and eigenvalues.

Notation   z: latent [D]   x: true state [D]   x = T z + c: the affine alignment, by least squares
           f, g: drift [K, D] and diffusion [K, D] (variance per unit time) of the learned equation in z
           b: occupied bins of the true state space, of weight w_b, about the mean state x_b of their samples
Equations  truth:   E[dx | x_b]/dt and Cov[dx | x_b]/dt over one sample interval dt, by simulation of the true system
           learned: T f(z_b) and T diag(g(z_b)) T' at z_b = T^-1 (x_b - c)
           error:   sqrt(sum_b w_b |learned - truth|^2 / sum_b w_b |truth|^2)
           Kramers-Moyal: mean and covariance of the observed increments of each bin, over dt; the yardstick of
           someone who sees the whole state

The conditional mean over a whole sample interval, not the drift of the equation, is what sampled data determine.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Int

from lamperti._errors import ConfigError
from lamperti.data.systems import System

# Copies of each bin's state that are simulated at a time; bounds the memory, not the result.
_CHUNK = 200_000

Field = Callable[[Float[np.ndarray, "K D"]], Float[np.ndarray, "K D"]]


@dataclass(frozen=True)
class Alignment:
    """The affine map from latent to true coordinates."""

    matrix: Float[np.ndarray, "D D"]
    offset: Float[np.ndarray, " D"]

    @classmethod
    def fit(cls, latent: Float[np.ndarray, "N D"], state: Float[np.ndarray, "N D"]) -> "Alignment":
        """Least squares of states on latents of the same samples."""
        if latent.shape != state.shape or latent.ndim != 2 or len(latent) <= latent.shape[1] + 1:
            raise ConfigError(
                "an alignment needs as many latent as true coordinates, [N, D] each with N > D + 1; got "
                f"{latent.shape} and {state.shape}. Fit the model with the true dimension."
            )
        weights = np.linalg.lstsq(np.column_stack([latent, np.ones(len(latent))]), state, rcond=None)[0]
        return cls(weights[:-1].T, weights[-1])

    def to_latent(self, x: Float[np.ndarray, "K D"]) -> Float[np.ndarray, "K D"]:
        return np.linalg.solve(self.matrix, (x - self.offset).T).T


@dataclass(frozen=True)
class Moments:
    """Drift and diffusion at some points."""

    drift: Float[np.ndarray, "B D"]
    diffusion: Float[np.ndarray, "B D D"]


@dataclass(frozen=True)
class Bins:
    """Occupied bins of the state space: their mean states, their shares of the samples, and who is in them."""

    x: Float[np.ndarray, "B D"]
    share: Float[np.ndarray, " B"]
    member: Int[np.ndarray, " N"]
    """Bin of every sample; -1 where its bin holds too few."""


@dataclass(frozen=True)
class EquationError:
    """Relative errors over occupied bins; a ratio of 1 is as good as Kramers-Moyal on the fully observed state."""

    drift: float
    diffusion: float
    drift_of_kramers_moyal: float
    diffusion_of_kramers_moyal: float

    @property
    def drift_ratio(self) -> float:
        return self.drift / self.drift_of_kramers_moyal

    @property
    def diffusion_ratio(self) -> float:
        return self.diffusion / self.diffusion_of_kramers_moyal


def occupied_bins(x: Float[np.ndarray, "N D"], bins: int = 10, least: int = 20) -> Bins:
    """Bins of the box around the samples that hold at least ``least`` of them."""
    low, high = x.min(axis=0), x.max(axis=0)
    index = np.minimum(((x - low) / np.where(high > low, high - low, 1.0) * bins).astype(int), bins - 1)
    _, number, counts = np.unique(index @ bins ** np.arange(x.shape[1]), return_inverse=True, return_counts=True)
    full = np.flatnonzero(counts >= least)
    if not full.size:
        raise ConfigError(
            f"no bin holds {least} samples (the fullest has {counts.max()}). Use fewer bins, or more data."
        )
    renumber = np.full(len(counts), -1)
    renumber[full] = np.arange(len(full))
    member = renumber[number]
    centre = np.stack([x[member == b].mean(axis=0) for b in range(len(full))])
    return Bins(centre, counts[full] / counts[full].sum(), member)


def true_moments(
    system: System,
    x: Float[np.ndarray, "B D"],
    dt: float,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    substeps: int | None = None,
) -> Moments:
    """E[dx | x]/dt and Cov[dx | x]/dt over one sample interval, by simulation (in closed form if linear)."""
    if system.matrix is not None:
        drift = x @ (system.transition_matrix(dt) - np.eye(x.shape[1])).T / dt
        diffusion = system.process_covariance(dt) / dt
        return Moments(drift, np.broadcast_to(diffusion, (len(x), *diffusion.shape)))
    rng, advance = np.random.default_rng(seed), system.stepper(dt, substeps)
    drifts, diffusions = [], []
    for part in np.array_split(x, -(-len(x) * n_draws // _CHUNK)):
        moved = advance(np.repeat(part, n_draws, axis=0), rng).reshape(len(part), n_draws, -1)
        found = _moments(moved - part[:, None], dt)
        drifts.append(found.drift)
        diffusions.append(found.diffusion)
    return Moments(np.concatenate(drifts), np.concatenate(diffusions))


def kramers_moyal(states: Float[np.ndarray, "R T D"], dt: float, bins: Bins) -> Moments:
    """Mean and covariance of the increments in each bin, over dt. ``bins`` are those of all states but the last of
    each series."""
    steps = np.diff(states, axis=1).reshape(-1, states.shape[-1])
    if len(steps) != len(bins.member):
        raise ConfigError(
            f"the bins hold {len(bins.member)} samples and there are {len(steps)} increments. "
            "Make the bins from states[:, :-1]."
        )
    found = [_moments(steps[bins.member == b][None], dt) for b in range(len(bins.x))]
    return Moments(np.concatenate([m.drift for m in found]), np.concatenate([m.diffusion for m in found]))


def equation_error(
    drift: Field,
    diffusion: Field,
    alignment: Alignment,
    system: System,
    states: Float[np.ndarray, "R T D"],
    dt: float,
    *,
    bins: int = 10,
    seed: int = 0,
    substeps: int | None = None,
) -> EquationError:
    """Errors of a learned equation where the true states have been, beside those of Kramers-Moyal on these states.

    Args:
        drift, diffusion: of the latent equation, per unit of time; points [K, D] to values [K, D], as the first
            answers of ``FitResult.drift`` and ``FitResult.diffusion``.
        alignment: from latent to true coordinates.
        system: what made the data.
        states: its states, sampled every ``dt``.
        bins: bins an axis.
    """
    occupied = occupied_bins(states[:, :-1].reshape(-1, states.shape[-1]), bins)
    truth = true_moments(system, occupied.x, dt, seed=seed, substeps=substeps)
    z, T = alignment.to_latent(occupied.x), alignment.matrix
    learned = Moments(drift(z) @ T.T, np.einsum("ij,bj,kj->bik", T, diffusion(z), T))
    seen = kramers_moyal(states, dt, occupied)
    return EquationError(*_errors(learned, truth, occupied.share), *_errors(seen, truth, occupied.share))


def drift_eigenvalues(drift: Field, points: Float[np.ndarray, "N D"]) -> Complex[np.ndarray, " D"]:
    """Eigenvalues of the best affine approximation of a drift over some points, slowest decay first.

    They do not depend on the coordinates, so no alignment is needed.
    """
    centred = points - points.mean(axis=0)
    values = drift(points)
    slope = np.linalg.lstsq(centred, values - values.mean(axis=0), rcond=None)[0].T
    return _ordered(np.linalg.eigvals(slope))


def euler_eigenvalues(system: System, dt: float) -> Complex[np.ndarray, " D"]:
    """Eigenvalues (exp(lam dt) - 1)/dt that a linear system has for someone who takes Euler steps of dt."""
    return _ordered((np.linalg.eigvals(system.transition_matrix(dt)) - 1) / dt)


def _ordered(eigenvalues: np.ndarray) -> Complex[np.ndarray, " D"]:
    # rounding must not decide the order within a complex pair
    return eigenvalues[np.lexsort((np.imag(eigenvalues), -np.real(eigenvalues).round(9)))].astype(complex)


def _moments(steps: Float[np.ndarray, "B n D"], dt: float) -> Moments:
    mean = steps.mean(axis=1)
    spread = steps - mean[:, None]
    return Moments(mean / dt, np.einsum("bni,bnj->bij", spread, spread) / (steps.shape[1] - 1) / dt)


def _errors(found: Moments, truth: Moments, share: Float[np.ndarray, " B"]) -> tuple[float, float]:
    return _relative(found.drift, truth.drift, share), _relative(found.diffusion, truth.diffusion, share)


def _relative(found: np.ndarray, truth: np.ndarray, share: Float[np.ndarray, " B"]) -> float:
    axes = tuple(range(1, truth.ndim))
    return float(np.sqrt(share @ ((found - truth) ** 2).sum(axis=axes) / (share @ (truth**2).sum(axis=axes))))
