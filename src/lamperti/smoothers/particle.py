"""Particle filter with the optimal proposal, and backward simulation.

Notation   x: particles [K, D] with log-weights log_w [K]      mu: where each particle's step leads [K, D]
           proposal x' ~ N(x'; mu, Q) psi(x') / p(psi | x),  p(psi | x) = integral of N(x'; mu, Q) psi(x')
           The weights use the old particles only: w' = w p(psi | x); resampled before the move when ESS < K/2.
Equations  docs/theory.md (21)-(24)
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.interfaces import (
    AbstractChain,
    AbstractSmoother,
    AbstractTransition,
    Gaussian,
    Marginals,
    PathSamples,
    Potentials,
)
from lamperti.math import small
from lamperti.math.gaussian import LOG_2PI, log_density
from lamperti.math.resampling import effective_sample_size, systematic
from lamperti.smoothers._chain import update, valid_steps

_MARGINAL_PATHS = 256


class Cloud(NamedTuple):
    """Weighted particles at one step (or, with a leading axis, at every step)."""

    x: Float[Array, "*T K D"]
    log_w: Float[Array, "*T K"]


class ParticleChain(AbstractChain):
    """Filtered particles of all steps; paths are drawn by backward simulation.

    Its density is that of initial x transitions x potentials over the estimated normaliser, so the entropy tends to
    the exact one as particles grow. Ancestor indices are constants for the gradient.
    """

    clouds: Cloud
    mu: Float[Array, "N K D"]
    noise: Float[Array, "N K D"]
    initial: Gaussian
    potentials: Potentials
    link: Bool[Array, " N"]
    log_z: Scalar
    key: PRNGKeyArray

    def sample(self, n: int, *, key: PRNGKeyArray) -> PathSamples:
        key_last, key_back = jax.random.split(key)
        last = jax.random.categorical(key_last, jax.lax.stop_gradient(self.clouds.log_w[-1]), shape=(n,))
        x_last = self.clouds.x[-1][last]

        def back(x_next, step):
            x, log_w, mu, noise, key = step
            fixed = jax.lax.stop_gradient((x_next, log_w, mu, noise))
            index = jax.random.categorical(key, _backward_logits(*fixed))
            chosen = x[index]
            log_p = _log_normal(x_next, mu[index], noise[index])
            return chosen, (chosen, log_p)

        n_steps = self.mu.shape[0]
        steps = (
            self.clouds.x[:-1],
            self.clouds.log_w[:-1],
            self.mu,
            self.noise,
            jax.random.split(key_back, n_steps),
        )
        _, (x, log_p) = jax.lax.scan(back, x_last, steps, reverse=True)
        x = jnp.concatenate([x, x_last[None]])
        log_joint = (
            log_density(x[0], self.initial.mean, self.initial.chol)
            + jnp.sum(jnp.where(self.link[:, None], log_p, 0.0), axis=0)
            + jax.vmap(self.potentials.log_value, in_axes=1)(x)
        )
        return PathSamples(jnp.swapaxes(x, 0, 1), log_joint - self.log_z)

    def entropy(self) -> Scalar:
        return -jnp.mean(self._paths().log_q)

    def marginals(self) -> Marginals:
        x = self._paths().x
        mean = jnp.mean(x, axis=0)
        away = x - mean
        return Marginals(mean, jnp.einsum("sti,stj->tij", away, away) / x.shape[0])

    def last(self) -> Gaussian:
        w = jax.nn.softmax(self.clouds.log_w[-1])
        mean = w @ self.clouds.x[-1]
        away = self.clouds.x[-1] - mean
        cov = (w[:, None] * away).T @ away
        floor = 1e-12 * (1.0 + jnp.trace(cov)) * jnp.eye(mean.shape[0])
        return Gaussian(mean, small.cholesky(cov + floor))

    def log_normaliser(self) -> Scalar:
        return self.log_z

    def _paths(self) -> PathSamples:
        return self.sample(max(_MARGINAL_PATHS, self.mu.shape[1]), key=self.key)


class Particle(AbstractSmoother):
    """Particles for any kernel and any shape of posterior; slower and noisier than the Gaussian chains."""

    n_particles: int = eqx.field(static=True, default=200)

    def __call__(
        self,
        transition: AbstractTransition,
        initial: Gaussian,
        potentials: Potentials,
        dt: Float[Array, " N"],
        *,
        points: Float[Array, "T D"],
        link: Bool[Array, " N"] | None = None,
        key: PRNGKeyArray,
    ) -> ParticleChain:
        link = jnp.ones(dt.shape, dtype=bool) if link is None else link
        key_start, key_filter, key_chain = jax.random.split(key, 3)
        first, log_z = start_particles(initial, potentials, self.n_particles, key=key_start)

        def forward(state, inputs):
            cloud, log_z = state
            after, gain, _, mu, noise = move_particles(transition, cloud, *inputs)
            return (after, log_z + gain), (after, mu, noise)

        n_steps = dt.shape[0]
        inputs = (
            potentials.precision[1:], potentials.information[1:], dt, link, jax.random.split(key_filter, n_steps)
        )  # fmt: skip
        (_, log_z), (clouds, mu, noise) = jax.lax.scan(forward, (first, log_z), inputs)
        clouds = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, clouds)
        keep = valid_steps(link)
        return ParticleChain(clouds, mu, noise, initial, potentials.masked(keep), link, log_z, key_chain)


def start_particles(initial: Gaussian, potentials: Potentials, n: int, *, key: PRNGKeyArray) -> tuple[Cloud, Scalar]:
    """Particles from initial x first potential, which is a Gaussian, and the log of its integral."""
    Lam, h = potentials.precision[0], potentials.information[0]
    mean, cov = update(initial.mean, initial.cov, Lam, h)
    x = mean + small.matvec(small.cholesky(cov), jax.random.normal(key, (n, mean.shape[0])))
    log_z = log_evidence(initial.mean, initial.cov, Lam, h)
    return Cloud(x, jnp.full(n, -jnp.log(n))), log_z


def move_particles(
    transition: AbstractTransition,
    cloud: Cloud,
    Lam: Float[Array, "D D"],
    h: Float[Array, " D"],
    dt: Scalar,
    link: Array,
    key: PRNGKeyArray,
) -> tuple[Cloud, Scalar, Scalar, Float[Array, "K D"], Float[Array, "K D"]]:
    """Weigh the old particles by the next potential, resample when needed, move by the optimal proposal.

    Returns the new cloud, the gain in log-normaliser, the ESS, and each *old* particle's mean and variance."""
    key_resample, key_move = jax.random.split(key)
    mu = jnp.where(link, jax.vmap(transition.mean, in_axes=(0, None))(cloud.x, dt), 0.0)
    noise = jnp.where(link, jax.vmap(transition.variance, in_axes=(0, None))(cloud.x, dt), 1.0)
    cov = noise[:, :, None] * jnp.eye(noise.shape[-1])
    log_w = cloud.log_w + jax.vmap(log_evidence, in_axes=(0, 0, None, None))(mu, cov, Lam, h)
    gain = jax.nn.logsumexp(log_w)
    log_w = log_w - gain
    n = log_w.shape[0]
    ess = effective_sample_size(jax.lax.stop_gradient(log_w))
    resample = ess < 0.5 * n
    index = jnp.where(resample, systematic(jax.lax.stop_gradient(log_w), key=key_resample), jnp.arange(n))
    mean, post = jax.vmap(update, in_axes=(0, 0, None, None))(mu[index], cov[index], Lam, h)
    x = mean + small.matvec(small.cholesky(post), jax.random.normal(key_move, mean.shape))
    return Cloud(x, jnp.where(resample, -jnp.log(n), log_w)), gain, ess, mu, noise


def log_evidence(
    mean: Float[Array, " D"], cov: Float[Array, "D D"], Lam: Float[Array, "D D"], h: Float[Array, " D"]
) -> Scalar:
    """log of the integral of N(x; mean, cov) exp(-x'Lam x/2 + h'x)."""
    inverse, log_det = small.inverse_pd(cov)
    C, log_det_prec = small.inverse_pd(inverse + Lam)
    scaled = small.matvec(inverse, mean)
    b = scaled + h
    return 0.5 * (jnp.sum(b * small.matvec(C, b)) - jnp.sum(mean * scaled) - log_det_prec - log_det)


def _backward_logits(x_next, log_w, mu, noise) -> Float[Array, "S K"]:
    """log w_k + log N(x_{k+1}; mu_k, noise_k), squares expanded into matrix products."""
    inv = 1.0 / noise
    constant = log_w - 0.5 * jnp.sum(jnp.log(noise) + inv * mu**2, axis=-1)
    return constant + x_next @ (inv * mu).T - 0.5 * x_next**2 @ inv.T


def _log_normal(x, mean, variance) -> Float[Array, "..."]:
    return -0.5 * jnp.sum((x - mean) ** 2 / variance + jnp.log(variance) + LOG_2PI, axis=-1)
