"""Paths that no smoother draws: always the same, so that every answer that is made of them is exact."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from known_models import WINDOW, Known, encoded, unsure_drift
from lamperti._params import positive
from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.data.windows import Track, segment
from lamperti.interfaces import AbstractChain, AbstractSmoother, Gaussian, Marginals, PathSamples, Potentials
from lamperti.math.normal_gamma import prior
from lamperti.model import LatentSDE, Segment
from lamperti.train.loop import as_segment

LEAD, LENGTH, S = WINDOW - 1, 6, 2
MOVES = np.array([[0.0, 0.0], [0.3, -0.2]])  # of the second path from the first
KNOWN = Known()
PRIOR = prior(jnp.asarray([2.0, 3.0]), jnp.asarray([0.4, 0.3]), 3)


class FixedPaths(AbstractChain):
    """Two paths that are always the same, with a made-up density."""

    points: Float[Array, "T D"]

    def sample(self, n: int, *, key: PRNGKeyArray) -> PathSamples:
        assert n == S
        x = self.points + jnp.asarray(MOVES)[:, None, :] * jnp.cos(jnp.arange(LENGTH))[:, None]
        return PathSamples(x, 0.1 * jnp.sum(x**2, axis=(1, 2)))

    def entropy(self) -> Scalar:
        raise AssertionError("not needed here")

    def marginals(self) -> Marginals:
        raise AssertionError("not needed here")

    def last(self) -> Gaussian:
        raise AssertionError("not needed here")

    def log_normaliser(self) -> Scalar:
        raise AssertionError("not needed here")


class Along(AbstractSmoother):
    """No smoother: paths along the encoder's means."""

    def __call__(
        self,
        transition,
        initial: Gaussian,
        potentials: Potentials,
        dt: Float[Array, " N"],
        *,
        points: Float[Array, "T D"],
        link: Bool[Array, " N"] | None = None,
        key: PRNGKeyArray,
    ) -> FixedPaths:
        return FixedPaths(jax.lax.stop_gradient(points))


def made_model() -> LatentSDE:
    """A drift that is not linear; a prior that is not its posterior; moments of an emission that fits other data."""
    model = KNOWN.model(smoother=Along(), gp=unsure_drift())
    half = np.random.default_rng(5).normal(size=(2, 4, 3))
    zz = np.einsum("pki,pkj->pij", half, half) / 4
    other = np.random.default_rng(6).normal(size=(2, 3))
    moments = eqx.tree_at(
        lambda m: (m.zz, m.zy, m.yy), model.emission.moments,
        (jnp.asarray(zz), jnp.einsum("pij,pj->pi", zz, other), jnp.einsum("pi,pij,pj->p", other, zz, other) + 0.5),
    )  # fmt: skip
    return eqx.tree_at(
        lambda m: (m.dynamics.prior, m.dynamics.diffusion, m.dynamics.amplitude, m.emission.moments), model,
        (PRIOR, positive(model.dynamics.diffusion), positive(model.dynamics.amplitude), moments),
    )  # fmt: skip


class Data(NamedTuple):
    """All segments: each of five transitions, in each one value of the second channel missing."""

    batch: Segment
    n_transitions: int


def made_data() -> Data:
    rng = np.random.default_rng(1)
    tracks = []
    for n in (12, 24):
        dt = rng.uniform(0.5, 1.6, size=n - 1)
        series = KNOWN.simulated(dt * KNOWN.step, seed=n)
        mask = np.stack([np.ones(n, bool), np.arange(n) % LENGTH != 3], axis=1)
        tracks.append(Track(KNOWN.scaler.values(series.values), mask, dt))
    cut = segment(tracks, LENGTH, LEAD)
    return Data(as_segment(cut.cover()), cut.n_transitions)


DATA = made_data()


def paths() -> np.ndarray:
    y = np.asarray(DATA.batch.y)
    means = np.array([[encoded(one[k : k + WINDOW])[0] for k in range(LENGTH)] for one in y])
    return means[:, None] + MOVES[:, None, :] * np.cos(np.arange(LENGTH))[:, None]


def drift_of(d, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A(x) [..., D, M], P + A Sigma A' [..., D] and the mean drift [..., D], from their definitions."""
    length, variance = np.asarray(d.kernels[0].lengthscale), float(d.kernels[0].variance)

    def k(a, b):
        return variance * np.exp(-0.5 * (((a[..., None, :] - b) / length) ** 2).sum(axis=-1))

    Z, s = np.asarray(d.Z), np.asarray(d.amplitude)
    L = np.linalg.cholesky(k(Z, Z) + float(d.jitter) * np.eye(len(Z)))
    white = k(x, Z) @ np.linalg.inv(L).T
    A = s[:, None] * white[..., None, :]
    Sigma = np.linalg.inv(np.asarray(d.q.prec))
    mu = np.einsum("dij,dj->di", Sigma, np.asarray(d.q.shift))
    P = s**2 * (variance - (white**2).sum(axis=-1, keepdims=True))
    f = x @ np.asarray(d.mean.weight).T + np.asarray(d.mean.bias) + np.einsum("...dm,dm->...d", A, mu)
    return A, P + np.einsum("...di,dij,...dj->...d", A, Sigma, A), f
