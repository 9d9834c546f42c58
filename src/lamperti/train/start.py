"""The start of training: a linear-Gaussian picture of the data in Hankel coordinates.

Notation   W: window      score: whitened principal components of windows [n, K]      x: the first D of them
           dx/dt: increments along the series, from which mean drift, diffusion and q(v, lam) are regressed

Nothing here is learned by gradient; it puts the encoder's skip, the emission, the inducing inputs, the kernel scales
and the drift's posterior where one pass over the data says they should be.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.cluster.vq import kmeans2

from lamperti._params import positive
from lamperti._typing import Array, Float
from lamperti.data.delay import HankelBasis, hankel
from lamperti.data.windows import Track, interpolate
from lamperti.dynamics.initial import InitialState
from lamperti.dynamics.mean import LinearMean, zero_mean
from lamperti.dynamics.sparse_gp import DiffusionStep, SparseGPDynamics
from lamperti.emissions.linear_gaussian import EmissionMoments, LinearGaussian, emission_moments, refit
from lamperti.encoders import HankelSkip
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import trainable
from lamperti.math.normal_gamma import posterior, prior

_MAX_POINTS = 20_000
_RIDGE = 1e-3
_LEAST_SHARE = 0.1
# Noise at the start, in units of the signal's variance; smaller would pin the first chains to a wrong emission.
_LEAST_NOISE = 1e-4
# Weak prior of the precision: half a pseudo-observation, centred on the increments' own variance.
_PRIOR_SHAPE = 0.5


class LinearPicture(NamedTuple):
    """Windows of the data in principal coordinates, with the increments of the first D."""

    basis: HankelBasis
    x: Float[np.ndarray, "n D"]
    dx: Float[np.ndarray, "n D"]
    dt: Float[np.ndarray, " n"]
    y: Float[np.ndarray, "n P"]
    mask: np.ndarray


def linear_picture(
    tracks: Sequence[Track], *, dim: int, window: int, n_components: int, rng: np.random.Generator
) -> LinearPicture:
    """Embed all series by Hankel windows and principal components."""
    filled = [interpolate(t) for t in tracks]
    long = [i for i, y in enumerate(filled) if len(y) > window]
    basis = HankelBasis.from_series([filled[i] for i in long] or filled, window, n_components, rng)
    parts = []
    for i in long:
        x = basis.project(hankel(filled[i], window))[:, :dim]
        rows = slice(window - 1, -1)  # the samples that a window ends at, but for the last, which has no increment
        parts.append((x[:-1], np.diff(x, axis=0), tracks[i].dt[window - 1 :], filled[i][rows], tracks[i].mask[rows]))
    x, dx, dt, y, mask = (np.concatenate(a) for a in zip(*parts, strict=True))
    if len(x) > _MAX_POINTS:
        keep = np.sort(rng.choice(len(x), _MAX_POINTS, replace=False))
        x, dx, dt, y, mask = x[keep], dx[keep], dt[keep], y[keep], mask[keep]
    return LinearPicture(basis, x, dx, dt, y, mask)


def start_skip(picture: LinearPicture, dim: int, window: int) -> HankelSkip:
    """Whitening projection on the first D principal components."""
    basis = picture.basis
    return HankelSkip(
        offset=jnp.asarray(basis.mean),
        projection=jnp.asarray(basis.components / basis.sd[:, None]),
        weight=jnp.eye(dim, basis.n_components),
        gauge=jnp.eye(dim),
        window=window,
    )


def start_emission(picture: LinearPicture, tracks: Sequence[Track]) -> LinearGaussian:
    """Least squares of the data on the embedded states, with the noise that the data's roughness allows at most.

    The residual of that fit is not noise: a causal window lags behind the newest sample, and a start that takes the
    lag for noise stays there (observation noise too large, diffusion too small)."""
    y, mask, x = jnp.asarray(picture.y)[None], jnp.asarray(picture.mask)[None], jnp.asarray(picture.x)[None, None]
    fitted = refit(emission_moments(y, mask, x)[0])
    noise = np.clip(roughness(tracks), _LEAST_NOISE, np.maximum(np.asarray(fitted.noise), _LEAST_NOISE))
    m = fitted.moments
    # Moments that give this noise, so that the running average starts from it.
    explained = jnp.einsum("pe,pe->p", jnp.concatenate([fitted.C, fitted.c[:, None]], axis=1), m.zy)
    return refit(EmissionMoments(m.zz, m.zy, explained + jnp.asarray(noise)))


def roughness(tracks: Sequence[Track]) -> Float[np.ndarray, " P"]:
    """Variance of white noise that has the third differences of the data: an upper bound on observation noise."""
    thirds = [np.diff(interpolate(t), 3, axis=0) for t in tracks if len(t.y) > 3]
    return np.mean(np.concatenate(thirds) ** 2, axis=0) / 20.0 if thirds else np.full(tracks[0].y.shape[1], np.inf)


def start_initial(picture: LinearPicture) -> InitialState:
    x = jnp.asarray(picture.x)
    return InitialState(jnp.mean(x, axis=0), x.T @ x / x.shape[0])


def start_dynamics(
    picture: LinearPicture,
    kernels: tuple[AbstractKernel, ...],
    *,
    n_inducing: int,
    inducing: str,
    n_transitions: int,
    linear_mean: bool,
    diffusion_step: DiffusionStep,
    jitter: float,
    rng: np.random.Generator,
) -> SparseGPDynamics:
    """Regress the increments on the states: mean drift, diffusion, amplitude, and the conjugate posterior."""
    x, dt = picture.x, picture.dt[:, None]
    mean = _regress(picture) if linear_mean else zero_mean(x.shape[1])
    residual = picture.dx - dt * np.asarray(mean(jnp.asarray(x)))
    diffusion = np.maximum(np.mean(residual**2 / dt, axis=0), 1e-8)
    # amplitude^2 x diffusion is the prior variance of the drift.
    drift_variance = np.maximum(np.var(residual / dt, axis=0), 1e-8)
    dynamics = SparseGPDynamics(
        kernels=kernels,
        amplitude=jnp.asarray(np.sqrt(drift_variance / diffusion)),
        Z=jnp.asarray(inducing_inputs(x, n_inducing, inducing, rng)),
        mean=mean,
        diffusion=jnp.asarray(0.5 * diffusion),
        q=prior(jnp.full(x.shape[1], _PRIOR_SHAPE), jnp.asarray(_PRIOR_SHAPE * diffusion), n_inducing),
        prior=prior(jnp.full(x.shape[1], _PRIOR_SHAPE), jnp.asarray(_PRIOR_SHAPE * diffusion), n_inducing),
        jitter=jnp.asarray(jitter),
        diffusion_step=diffusion_step,
    )
    weight = np.full(len(x), n_transitions / len(x))
    q = _conjugate(dynamics, *(jnp.asarray(a) for a in (x, picture.dx, picture.dt, weight)))
    return SparseGPDynamics(
        kernels=tuple(trainable(k) for k in kernels),
        amplitude=positive(dynamics.amplitude),
        Z=dynamics.Z,
        mean=mean,
        diffusion=positive(_shared_noise(np.asarray(q.rate / q.shape))),
        q=q,
        prior=dynamics.prior,
        jitter=dynamics.jitter,
        diffusion_step=diffusion_step,
    )


def _shared_noise(residual: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
    """Diffusion to start from: what the regression leaves, but nowhere far below the mean over coordinates.

    Windows that overlap have increments of rank P, so some coordinates look free of noise that are not."""
    return np.maximum(residual, _LEAST_SHARE * np.mean(residual))


@jax.jit
def _conjugate(dynamics: SparseGPDynamics, x: Array, dx: Array, dt: Array, weight: Array):
    return posterior(dynamics.prior, dynamics.condition().path_terms(x, dx, dt, weight)[1])


def _regress(picture: LinearPicture) -> LinearMean:
    """Ridge regression of dx/dt on (x, 1), weighted by dt as the likelihood is."""
    z = np.concatenate([picture.x, np.ones((len(picture.x), 1))], axis=1)
    gram = (z * picture.dt[:, None]).T @ z
    ridge = _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    coefficients = np.linalg.solve(gram + ridge, z.T @ picture.dx).T
    return LinearMean(jnp.asarray(coefficients[:, :-1]), jnp.asarray(coefficients[:, -1]))


def inducing_inputs(
    x: Float[np.ndarray, "n D"], n_inducing: int, how: str, rng: np.random.Generator
) -> Float[np.ndarray, "M D"]:
    """Where the drift is pinned: centres of k-means, or a grid over the data's box (the paper)."""
    if how == "kmeans":
        spread = 1e-3 * rng.normal(size=(n_inducing, x.shape[1]))
        centres, _ = kmeans2(x, x[rng.choice(len(x), n_inducing, replace=len(x) < n_inducing)] + spread, iter=20)
        return centres
    per_axis = int(np.ceil(n_inducing ** (1.0 / x.shape[1])))
    axes = [np.linspace(np.quantile(c, 0.01), np.quantile(c, 0.99), per_axis) for c in x.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, x.shape[1])
    return grid[np.sort(rng.choice(len(grid), n_inducing, replace=False))]
