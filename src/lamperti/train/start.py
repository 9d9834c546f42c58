"""The start of training: a linear-Gaussian picture of the data in Hankel coordinates.

Notation   W: window      score: whitened principal components of windows [n, K]      x: the first D of them
           dx/dt: increments along the series, from which mean drift, diffusion and q(v, lam) are regressed

Nothing here is learned by gradient; it puts the encoder's skip, the emission, the inducing inputs, the kernel scales
and the drift's posterior where one pass over the data says they should be. ``linear_picture`` and
``inducing_inputs`` are NumPy; what is made of them is jax, to be called inside one compiled function: op by op it would
compile two hundred small programs.
"""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.cluster.vq import kmeans2

from lamperti._errors import SeriesError
from lamperti._params import positive
from lamperti._typing import Array, Bool, Float, Scalar
from lamperti.data.coordinates import Coordinates
from lamperti.data.delay import HankelBasis, hankel
from lamperti.data.predictive import horizons, predictive_directions, windows_and_futures
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
_LEAST_VARIANCE = 1e-8


class LinearPicture(NamedTuple):
    """Windows of the data in principal coordinates, with the increments of the first D."""

    offset: Float[np.ndarray, " W*P"]
    projection: Float[np.ndarray, "K W*P"]  # whitening
    x: Float[np.ndarray, "n D"]
    dx: Float[np.ndarray, "n D"]
    dt: Float[np.ndarray, " n"]
    y: Float[np.ndarray, "n P"]
    mask: Bool[np.ndarray, "n P"]
    roughness: Float[np.ndarray, " P"]


def linear_picture(
    tracks: Sequence[Track],
    *,
    dim: int,
    window: int,
    n_components: int,
    coordinates: Coordinates = "components",
    rng: np.random.Generator,
) -> LinearPicture:
    """Embed all series by Hankel windows: principal components, or the functions of a window that predict best."""
    filled = [interpolate(t) for t in tracks]
    long = [i for i, y in enumerate(filled) if len(y) > window]
    if not long:
        raise SeriesError(
            f"no series is longer than the delay window of {window} samples; the longest has {max(map(len, filled))}. "
            f"Pass a series of at least {window + 1} samples, or a shorter window."
        )
    basis = HankelBasis.from_series([filled[i] for i in long], window, n_components, rng)
    if coordinates == "predictive":
        basis = _predictive(basis, [filled[i] for i in long], window, dim, rng)
    parts = []
    for i in long:
        x = basis.project(hankel(filled[i], window))[:, :dim]
        rows = slice(window - 1, -1)  # the samples that a window ends at, but for the last, which has no increment
        parts.append((x[:-1], np.diff(x, axis=0), tracks[i].dt[window - 1 :], filled[i][rows], tracks[i].mask[rows]))
    x, dx, dt, y, mask = (np.concatenate(a) for a in zip(*parts, strict=True))
    if len(x) > _MAX_POINTS:
        keep = np.sort(rng.choice(len(x), _MAX_POINTS, replace=False))
        x, dx, dt, y, mask = x[keep], dx[keep], dt[keep], y[keep], mask[keep]
    return LinearPicture(basis.mean, basis.components / basis.sd[:, None], x, dx, dt, y, mask, roughness(tracks))


def _predictive(
    basis: HankelBasis, y: list[Float[np.ndarray, "_ P"]], window: int, dim: int, rng: np.random.Generator
) -> HankelBasis:
    """The basis with its first rows those that predict; the network goes on to see principal components besides."""
    shortest = min(window, max(map(len, y)) - window)  # samples ahead of a window that the longest series has
    past, future = windows_and_futures(y, window, horizons(shortest), rng)
    if len(past) <= dim:
        return basis
    _, B = predictive_directions(past, future, dim)
    rest = basis.n_components - len(B)
    components = np.concatenate([B, basis.components[:rest]])
    return HankelBasis(basis.mean, components, np.concatenate([np.ones(len(B)), basis.sd[:rest]]))


def start_skip(picture: LinearPicture, dim: int, window: int) -> HankelSkip:
    """Whitening projection on the first D principal components."""
    return HankelSkip(
        offset=jnp.asarray(picture.offset),
        projection=jnp.asarray(picture.projection),
        weight=jnp.eye(dim, len(picture.projection)),
        gauge=jnp.eye(dim),
        window=window,
    )


def start_emission(picture: LinearPicture) -> LinearGaussian:
    """Least squares of the data on the embedded states, with the noise that the data's roughness allows at most.

    The residual of that fit is not noise: a causal window lags behind the newest sample, and a start that takes the
    lag for noise stays there (observation noise too large, diffusion too small)."""
    y, mask, x = jnp.asarray(picture.y)[None], jnp.asarray(picture.mask)[None], jnp.asarray(picture.x)[None, None]
    fitted = refit(emission_moments(y, mask, x)[0])
    noise = jnp.clip(jnp.asarray(picture.roughness), _LEAST_NOISE, jnp.maximum(fitted.noise, _LEAST_NOISE))
    m = fitted.moments
    # Moments that give this noise, so that the running average starts from it.
    explained = jnp.einsum("pe,pe->p", jnp.concatenate([fitted.C, fitted.c[:, None]], axis=1), m.zy)
    return refit(EmissionMoments(m.zz, m.zy, explained + noise))


def roughness(tracks: Sequence[Track]) -> Float[np.ndarray, " P"]:
    """Variance of white noise that has the third differences of the data: an upper bound on observation noise."""
    thirds = [np.diff(interpolate(t), 3, axis=0) for t in tracks if len(t.y) > 3]
    return np.mean(np.concatenate(thirds) ** 2, axis=0) / 20.0 if thirds else np.full(tracks[0].y.shape[1], np.inf)


def start_initial(picture: LinearPicture) -> InitialState:
    x = jnp.asarray(picture.x)
    return InitialState(jnp.mean(x, axis=0), x.T @ x / x.shape[0])


def start_dynamics(
    picture: LinearPicture,
    Z: Float[Array, "M D"],
    kernels: tuple[AbstractKernel, ...],
    *,
    share: Scalar,
    linear_mean: bool,
    diffusion_step: DiffusionStep,
    jitter: float,
) -> SparseGPDynamics:
    """Regress the increments on the states: mean drift, diffusion, amplitude, and the conjugate posterior.

    ``share``: transitions of all the data for each point of the picture."""
    x, dx, dt = (jnp.asarray(a) for a in (picture.x, picture.dx, picture.dt))
    n_points, dim = x.shape
    mean = regress_mean(x, dx, dt) if linear_mean else zero_mean(dim)
    residual = dx - dt[:, None] * mean(x)
    diffusion = jnp.maximum(jnp.mean(residual**2 / dt[:, None], axis=0), _LEAST_VARIANCE)
    # amplitude^2 x diffusion is the prior variance of the drift.
    drift_variance = jnp.maximum(jnp.var(residual / dt[:, None], axis=0), _LEAST_VARIANCE)
    weak = prior(jnp.full(dim, _PRIOR_SHAPE), _PRIOR_SHAPE * diffusion, len(Z))
    dynamics = SparseGPDynamics(
        kernels=kernels,
        amplitude=jnp.sqrt(drift_variance / diffusion),
        Z=jnp.asarray(Z),
        mean=mean,
        diffusion=0.5 * diffusion,
        q=weak,
        prior=weak,
        jitter=jnp.asarray(jitter),
        axes=jnp.eye(dim),
        diffusion_step=diffusion_step,
    )
    weight = jnp.full(n_points, share)
    q = posterior(weak, dynamics.condition().path_terms(x, dx, dt, weight)[1])
    return dataclasses.replace(
        dynamics,
        kernels=tuple(trainable(k) for k in kernels),
        amplitude=positive(dynamics.amplitude),
        diffusion=positive(_shared_noise(q.rate / q.shape)),
        q=q,
    )


def _shared_noise(residual: Float[Array, " D"]) -> Float[Array, " D"]:
    """Diffusion to start from: what the regression leaves, but nowhere far below the mean over coordinates.

    Windows that overlap have increments of rank P, so some coordinates look free of noise that are not."""
    return jnp.maximum(residual, _LEAST_SHARE * jnp.mean(residual))


def regress_mean(x: Float[Array, "n D"], dx: Float[Array, "n D"], dt: Float[Array, " n"]) -> LinearMean:
    """Ridge regression of dx/dt on (x, 1), weighted by dt as the likelihood is."""
    z = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)
    gram = (z * dt[:, None]).T @ z
    ridge = _RIDGE * jnp.trace(gram) / len(gram) * jnp.eye(len(gram))
    coefficients = jnp.linalg.solve(gram + ridge, z.T @ dx).T
    return LinearMean(coefficients[:, :-1], coefficients[:, -1])


def inducing_inputs(
    x: Float[np.ndarray, "n D"], n_inducing: int, how: str, rng: np.random.Generator
) -> Float[np.ndarray, "M D"]:
    """Where the drift is pinned: centres of k-means, or a grid over the data's box (the paper)."""
    if how == "kmeans":
        spread = 1e-3 * rng.normal(size=(n_inducing, x.shape[1]))
        first = x[rng.choice(len(x), n_inducing, replace=len(x) < n_inducing)] + spread
        with warnings.catch_warnings():
            # A centre that attracts no point stays where it was, which is good enough for an inducing input.
            warnings.filterwarnings("ignore", message="One of the clusters is empty", category=UserWarning)
            return kmeans2(x, first, iter=20)[0]
    per_axis = int(np.ceil(n_inducing ** (1.0 / x.shape[1])))
    axes = [np.linspace(np.quantile(c, 0.01), np.quantile(c, 0.99), per_axis) for c in x.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, x.shape[1])
    return grid[np.sort(rng.choice(len(grid), n_inducing, replace=False))]
