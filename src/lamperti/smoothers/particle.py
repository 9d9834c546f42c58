"""Particle filter with the optimal proposal, and backward simulation.

Notation   x: particles [K, D] with log-weights log_w [K]      mu: where each particle's step leads [K, D]
           proposal x' ~ N(x'; mu, Q) psi(x') / p(psi | x),  p(psi | x) = integral of N(x'; mu, Q) psi(x')
           Q = diag(noise), psi(x) = exp(-x'Lam x/2 + h'x), C = (Q^-1 + Lam)^-1: the proposal is N(C (Q^-1 mu + h), C)
           Where the noise depends on the state, Q and C are those of each particle.
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
from lamperti.math.resampling import effective_sample_size, pick, systematic
from lamperti.smoothers._chain import update, valid_steps

MARGINAL_PATHS = 256


class Cloud(NamedTuple):
    """Weighted particles at one step (or, with a leading axis, at every step)."""

    x: Float[Array, "*T K D"]
    log_w: Float[Array, "*T K"]


class Proposal(NamedTuple):
    """The optimal proposal of a step, N(C (mu / noise + h), C): that of all particles (or, with a leading axis, the
    proposals of every step), or after `at` that of each particle."""

    inverse_noise: Float[Array, "*N D"]
    Lam: Float[Array, "*N D D"]
    h: Float[Array, "*N D"]
    C: Float[Array, "*N D D"]
    chol: Float[Array, "*N D D"]
    log_scale: Float[Array, "*N"]
    dt: Float[Array, "*N"]
    link: Bool[Array, "*N"]

    def at(self, transition: AbstractTransition, x: Float[Array, "K D"]) -> "Proposal":
        """With the noise of every particle, where it depends on the state."""
        if transition.constant_noise:
            return self
        return _proposal(
            jax.vmap(transition.variance, in_axes=(0, None))(x, self.dt), self.Lam, self.h, self.dt, self.link
        )

    def step_mean(self, transition: AbstractTransition, x: Float[Array, "K D"]) -> Float[Array, "K D"]:
        """Where the step leads; an unlinked one begins anew at N(0, I)."""
        return jnp.where(self.link, jax.vmap(transition.mean, in_axes=(0, None))(x, self.dt), 0.0)

    def mean(self, mu: Float[Array, "K D"]) -> Float[Array, "K D"]:
        return small.matvec(self.C, self.inverse_noise * mu + self.h)

    def log_evidence(self, mu: Float[Array, "K D"]) -> Float[Array, " K"]:
        """log p(psi | x) of every particle."""
        b = self.inverse_noise * mu + self.h
        quadratic = jnp.sum(b * small.matvec(self.C, b) - self.inverse_noise * mu**2, axis=-1)
        return self.log_scale + 0.5 * quadratic

    def log_transition(self, x: Float[Array, "K D"], mu: Float[Array, "K D"]) -> Float[Array, " K"]:
        """log N(x; mu, noise)."""
        scaled = self.inverse_noise * (x - mu) ** 2 - jnp.log(self.inverse_noise) + LOG_2PI
        return -0.5 * jnp.sum(scaled, axis=-1)


def proposals(
    transition: AbstractTransition, potentials: Potentials, dt: Float[Array, " N"], link: Bool[Array, " N"]
) -> Proposal:
    """The proposals of all steps. The noise of a step is the same at every particle, so the D x D algebra is done
    here, once a step and outside the scan. Where it is not, that is done again for every particle (`Proposal.at`)."""
    Lam, h = potentials.precision[1:], potentials.information[1:]
    anywhere = jnp.zeros(h.shape[-1])
    noise = jax.vmap(transition.variance, in_axes=(None, 0))(anywhere, dt)
    return _proposal(noise, Lam, h, dt, link[:, None])._replace(link=link)


def _proposal(noise: Array, Lam: Array, h: Array, dt: Array, link: Array) -> Proposal:
    noise = jnp.where(link, noise, 1.0)
    C, log_det = small.inverse_pd(jnp.eye(noise.shape[-1]) / noise[..., None, :] + Lam)
    log_scale = -0.5 * (log_det + jnp.sum(jnp.log(noise), axis=-1))
    return Proposal(1.0 / noise, Lam, h, C, small.cholesky(C), log_scale, dt, link)


class ParticleChain(AbstractChain):
    """Filtered particles of all steps; paths are drawn by backward simulation.

    Its density is that of initial x transitions x potentials over the estimated normaliser, so the entropy tends to
    the exact one as particles grow. The filter is a constant for the gradient: a path's derivative is that of the
    proposals along it, (22), with their noise held; see docs/theory.md.
    """

    transition: AbstractTransition
    initial: Gaussian
    potentials: Potentials
    proposals: Proposal
    clouds: Cloud
    mu: Float[Array, "N K D"]
    log_z: Scalar
    key: PRNGKeyArray

    def sample(self, n: int, *, key: PRNGKeyArray) -> PathSamples:
        x = self._follow(self._simulate_back(n, key=key))
        # At a fixed path the derivative of log q has mean zero: only the path's own is kept, the rest is noise.
        fixed = jax.lax.stop_gradient(self)
        mu = jax.vmap(lambda p, x: p.step_mean(fixed.transition, x))(fixed.proposals, x[:-1])
        log_p = jax.vmap(lambda p, before, x, mu: p.at(fixed.transition, before).log_transition(x, mu))(
            fixed.proposals, x[:-1], x[1:], mu
        )
        log_joint = (
            log_density(x[0], fixed.initial.mean, fixed.initial.chol)
            + jnp.sum(jnp.where(fixed.proposals.link[:, None], log_p, 0.0), axis=0)
            + jax.vmap(fixed.potentials.log_value, in_axes=1)(x)
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
        return self.sample(max(MARGINAL_PATHS, self.mu.shape[1]), key=self.key)

    def _simulate_back(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "T S D"]:
        """Paths through the filter's particles."""
        n_times, n_particles = self.clouds.log_w.shape
        uniform = jax.random.uniform(key, (n_times, n))
        last = jnp.broadcast_to(self.clouds.log_w[-1], (n, n_particles))
        x_last = self.clouds.x[-1][pick(last, uniform=uniform[-1])]

        def back(x_next, step):
            cloud, mu, proposal, uniform = step
            inverse_noise = proposal.at(transition, cloud.x).inverse_noise
            # log w_k + log N(x_{k+1}; mu_k, noise), up to what all particles share
            scaled = inverse_noise * mu
            constant = cloud.log_w - 0.5 * jnp.sum(scaled * mu, axis=-1)
            score = constant + x_next @ scaled.T
            if not transition.constant_noise:
                score = score + 0.5 * (jnp.sum(jnp.log(inverse_noise), axis=-1) - x_next**2 @ inverse_noise.T)
            index = pick(score, uniform=uniform)
            return cloud.x[index], cloud.x[index]

        before = jax.tree.map(lambda a: a[:-1], self.clouds)
        transition, steps = jax.lax.stop_gradient((self.transition, self.proposals))
        _, x = jax.lax.scan(back, x_last, (before, self.mu, steps, uniform[:-1]), reverse=True)
        return jnp.concatenate([x, x_last[None]])

    def _follow(self, x: Float[Array, "T S D"]) -> Float[Array, "T S D"]:
        """The same paths as functions of the parameters: x' = proposal mean(x) + chol(C) eps with the eps that the
        path has."""
        mean, cov = update(
            self.initial.mean, self.initial.cov, self.potentials.precision[0], self.potentials.information[0]
        )
        first = _held(x[0], mean, small.cholesky(cov))

        def forward(before, step):
            x, proposal = step
            proposal = proposal.at(self.transition, before)
            after = _held(x, proposal.mean(proposal.step_mean(self.transition, before)), proposal.chol)
            return after, after

        _, rest = jax.lax.scan(forward, first, (x[1:], self.proposals))
        return jnp.concatenate([first[None], rest])


def _held(x: Float[Array, "S D"], mean: Float[Array, "*S D"], chol: Float[Array, "*c D D"]) -> Float[Array, "S D"]:
    """x, with the derivative of mean + chol eps at the eps that gives x."""
    eps = small.matvec(small.lower_inverse(chol), x - mean)
    moving = mean + small.matvec(chol, jax.lax.stop_gradient(eps))
    return x + moving - jax.lax.stop_gradient(moving)


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
        potentials = potentials.masked(valid_steps(link))  # what is said of padding is no data
        steps = proposals(transition, potentials, dt, link)
        clouds, mu, log_z, key_chain = self._filter(
            *jax.lax.stop_gradient((transition, initial, potentials, steps)), key
        )
        return ParticleChain(transition, initial, potentials, steps, clouds, mu, log_z, key_chain)

    def _filter(self, transition, initial, potentials, steps: Proposal, key: PRNGKeyArray):
        key_start, key_filter, key_chain = jax.random.split(key, 3)
        first, log_z = start_particles(initial, potentials, self.n_particles, key=key_start)

        def forward(state, inputs):
            cloud, log_z = state
            moved = move_particles(transition, cloud, *inputs)
            return (moved.cloud, log_z + moved.gain), (moved.cloud, moved.mu)

        # For all steps at once: inside the scan the generator takes a third of the filter's time.
        noise = draw_noise(key_filter, (steps.dt.shape[0], *first.x.shape))
        (_, log_z), (clouds, mu) = jax.lax.scan(forward, (first, log_z), (steps, noise))
        clouds = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, clouds)
        return clouds, mu, log_z, key_chain


def start_particles(initial: Gaussian, potentials: Potentials, n: int, *, key: PRNGKeyArray) -> tuple[Cloud, Scalar]:
    """Particles from initial x first potential, which is a Gaussian, and the log of its integral."""
    Lam, h = potentials.precision[0], potentials.information[0]
    mean, cov = update(initial.mean, initial.cov, Lam, h)
    x = mean + small.matvec(small.cholesky(cov), jax.random.normal(key, (n, mean.shape[0])))
    log_z = log_evidence(initial.mean, initial.cov, Lam, h)
    return Cloud(x, jnp.full(n, -jnp.log(n))), log_z


class Moved(NamedTuple):
    """A cloud one step on, the gain in log-normaliser, the ESS, and where each *old* particle's step led."""

    cloud: Cloud
    gain: Scalar
    ess: Scalar
    mu: Float[Array, "K D"]


class Noise(NamedTuple):
    """The random numbers of a step (or, with a leading axis, of every step): the move's, and the resampling's."""

    normal: Float[Array, "*N K D"]
    uniform: Float[Array, "*N"]


def draw_noise(key: PRNGKeyArray, shape: tuple[int, ...]) -> Noise:
    """``shape`` is that of the particles of a step, or of all steps."""
    key_move, key_resample = jax.random.split(key)
    return Noise(jax.random.normal(key_move, shape), jax.random.uniform(key_resample, shape[:-2]))


def move_particles(transition: AbstractTransition, cloud: Cloud, proposal: Proposal, noise: Noise) -> Moved:
    """Weigh the old particles by the next potential, resample when needed, move by the optimal proposal."""
    proposal = proposal.at(transition, cloud.x)
    mu = proposal.step_mean(transition, cloud.x)
    log_w = cloud.log_w + proposal.log_evidence(mu)
    gain = jax.nn.logsumexp(log_w)
    log_w = log_w - gain
    n = log_w.shape[0]
    ess = effective_sample_size(log_w)
    resample = ess < 0.5 * n
    index = jnp.where(resample, systematic(log_w, uniform=noise.uniform), jnp.arange(n))
    chol = proposal.chol if transition.constant_noise else proposal.chol[index]
    x = proposal.mean(mu)[index] + small.matvec(chol, noise.normal)
    return Moved(Cloud(x, jnp.where(resample, -jnp.log(n), log_w)), gain, ess, mu)


def log_evidence(
    mean: Float[Array, " D"], cov: Float[Array, "D D"], Lam: Float[Array, "D D"], h: Float[Array, " D"]
) -> Scalar:
    """log of the integral of N(x; mean, cov) exp(-x'Lam x/2 + h'x)."""
    inverse, log_det = small.inverse_pd(cov)
    C, log_det_prec = small.inverse_pd(inverse + Lam)
    scaled = small.matvec(inverse, mean)
    b = scaled + h
    return 0.5 * (jnp.sum(b * small.matvec(C, b)) - jnp.sum(mean * scaled) - log_det_prec - log_det)
