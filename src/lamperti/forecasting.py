"""Roll-outs of the learned equation: from a filter over the context, or from anywhere.

Notation   x: states [S, D]      one step is 1 in the model's time unit, the median step of the data
           start "filter": particles of the learned drift, diffusion and emission over the context
           start "encoder": the last state of the encoder's chain (the paper)
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._compile import compiled
from lamperti._params import realise
from lamperti._typing import Array, Bool, Float, Int, PRNGKeyArray, Scalar
from lamperti.dynamics.sparse_gp import DriftDraws
from lamperti.dynamics.transition import GPTransition
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.interfaces import AffineStep
from lamperti.kernels import linear_in_state
from lamperti.math import small
from lamperti.math.resampling import systematic
from lamperti.model import LatentSDE, Segment
from lamperti.smoothers._chain import Filtered, predict, update
from lamperti.smoothers._filter import filter_pushed
from lamperti.smoothers.particle import Cloud, Proposal, draw_noise, move_particles, proposals, start_particles
from lamperti.smoothers.sigma_point import sigma_point_step

Start = Literal["filter", "encoder"]
_FAR = 8.0  # sds of what the filter expected of a sample


class ContextState(eqx.Module):
    """States at the end of the context, and the smallest share of effective particles on the way."""

    x: Float[Array, "S D"]
    least_ess: Scalar


class StepForecasts(eqx.Module):
    """What the filter expected of a sample, given those before it; with a leading axis, of each after the first."""

    mean: Float[Array, "*N P"]
    sd: Float[Array, "*N P"]


@compiled
def filter_context(
    model: LatentSDE, segment: Segment, *, n_samples: int, n_particles: int, key: PRNGKeyArray
) -> ContextState:
    """What is known of the last state of one series: by a particle filter of the learned model, or, where the model is
    linear or reads the state off its window, by a Gaussian filter."""
    model = realise(model)
    if _has_gaussian_states(model):
        filtered, _ = _gaussian_filter(model, segment)
        last = _last(model, segment)
        noise = jax.random.normal(key, (n_samples, model.latent_dim))
        x = filtered.mean[last] + small.matvec(small.cholesky(filtered.cov[last]), noise)
        return ContextState(x, jnp.asarray(1.0))
    key_start, key_filter, key_pick = jax.random.split(key, 3)
    transition, steps, cloud = _open(model, segment, n_particles, key=key_start)

    def forward(state, inputs):
        before, least = state
        step, key = inputs
        after, ess, _ = _filter_step(model, transition, before, step, key=key)
        # After the end of the series (padding) the particles stay where they are.
        kept = jax.tree.map(lambda a, b: jnp.where(step.proposal.link, a, b), after, before)
        share = jnp.where(jnp.isfinite(ess), ess / n_particles, 0.0)
        return (kept, jnp.where(step.proposal.link, jnp.minimum(least, share), least)), None

    keys = jax.random.split(key_filter, steps.proposal.dt.shape[0])
    start = (_Followed(cloud, jnp.asarray(False)), jnp.asarray(1.0))
    ((cloud, _), least), _ = jax.lax.scan(forward, start, (steps, keys))
    return ContextState(cloud.x[systematic(cloud.log_w, uniform=jax.random.uniform(key_pick), n=n_samples)], least)


def is_linear(model: LatentSDE) -> bool:
    """Whether the model is linear and Gaussian, but for what lies outside the region of the data."""
    kernels_linear = all(linear_in_state(kernel) for kernel in model.dynamics.kernels)
    gaussian = isinstance(model.emission, LinearGaussian) and model.told_by == "emission"
    return kernels_linear and gaussian and model.dynamics.noise is None


def _has_gaussian_states(model: LatentSDE) -> bool:
    """Whether what is known of a state, given the samples until then, is Gaussian: exactly, or because its window tells
    it all but exactly."""
    return is_linear(model) or (model.told_by == "window" and isinstance(model.emission, LinearGaussian))


def _last(model: LatentSDE, segment: Segment) -> Int[Array, ""]:
    """The last state of the data; after it comes padding, which is not linked."""
    return jnp.sum(segment.link[model.encoder.lead :])


def _gaussian_filter(model: LatentSDE, segment: Segment) -> tuple[Filtered, AffineStep]:
    """The Kalman filter over one series, and its steps. Sigma points are exact for what is linear; elsewhere they carry
    the state over samples of which too little was observed."""
    transition = model.dynamics.condition()
    part = segment.chain_part(model.encoder.lead)
    _, potentials = model.potentials(segment)

    def step(mean: Float[Array, " D"], cov: Float[Array, "D D"], dt: Scalar) -> AffineStep:
        return sigma_point_step(transition.mean, lambda x: jnp.diag(transition.variance(x, dt)), mean, cov, dt)

    return filter_pushed(step, model.initial.gaussian(), potentials, part.dt, part.link)


class _FilterStep(NamedTuple):
    """What the filter needs of the data at a step (or, with a leading axis, at every step): the proposal, the sample,
    and the state by encoder and emission alone, from which a filter that has lost its way begins anew."""

    proposal: Proposal
    y: Float[Array, "*N P"]
    mask: Bool[Array, "*N P"]
    mean: Float[Array, "*N D"]
    chol: Float[Array, "*N D D"]


def _open(
    model: LatentSDE, segment: Segment, n_particles: int, *, key: PRNGKeyArray
) -> tuple[GPTransition, _FilterStep, Cloud]:
    """What the filter over a series starts from: transition, all steps, first particles. The encoder speaks at the
    first state only: its windows overlap, so more of it would count the same noise many times."""
    transition = model.dynamics.condition()
    part = segment.chain_part(model.encoder.lead)
    encoding = model.encoder(segment.y, segment.mask, segment.dt)
    likelihood = model.emission.potentials(part.y, part.mask)
    initial, told = model.initial.gaussian(), encoding.potentials * likelihood
    cloud, _ = start_particles(initial, told, n_particles, key=key)
    mean, cov = jax.vmap(update, in_axes=(None, None, 0, 0))(
        initial.mean, initial.cov, told.precision[1:], told.information[1:]
    )
    proposal = proposals(transition, likelihood, part.dt, part.link)
    return transition, _FilterStep(proposal, part.y[1:], part.mask[1:], mean, small.cholesky(cov)), cloud


class _Followed(NamedTuple):
    """The particles, and whether the last sample was far from all that they expected."""

    cloud: Cloud
    surprised: Bool[Array, ""]


def _filter_step(
    model: LatentSDE, transition: GPTransition, before: _Followed, step: _FilterStep, *, key: PRNGKeyArray
) -> tuple[_Followed, Scalar, StepForecasts]:
    """One step of the filter, the effective number of particles that it left, and what was expected of the sample.

    When two samples running lie far off in most channels, no particle is near the state, and with little noise in the
    motion none would come back: they are drawn anew. A single one is an outlier, to be passed over."""
    cloud = before.cloud
    key_state, key_noise, key_move, key_anew = jax.random.split(key, 4)
    ahead = step.proposal.step_mean(transition, cloud.x)
    noise = step.proposal.at(transition, cloud.x).inverse_noise
    ahead = ahead + jax.random.normal(key_state, ahead.shape) / jnp.sqrt(noise)
    y = model.emission.sample(ahead, key=key_noise)
    weight = jax.nn.softmax(cloud.log_w)
    mean = weight @ y
    expected = StepForecasts(mean, jnp.sqrt(weight @ (y - mean) ** 2))
    moved = move_particles(transition, cloud, step.proposal, draw_noise(key_move, cloud.x.shape))
    # not "further than": of particles that are no longer finite it must be true as well
    far = step.mask & ~(jnp.abs(step.y - mean) <= _FAR * expected.sd)
    seen = jnp.any(step.mask)
    surprised = seen & (2 * jnp.sum(far) > jnp.sum(step.mask))
    lost = surprised & before.surprised
    n = cloud.x.shape[0]
    anew = step.mean + small.matvec(step.chol, jax.random.normal(key_anew, cloud.x.shape))
    kept = Cloud(jnp.where(lost, anew, moved.cloud.x), jnp.where(lost, -jnp.log(n), moved.cloud.log_w))
    return _Followed(kept, jnp.where(seen, surprised & ~lost, before.surprised)), moved.ess, expected


@compiled
def predict_steps(model: LatentSDE, segment: Segment, *, n_particles: int, key: PRNGKeyArray) -> StepForecasts:
    """One-step forecasts of the observations along one series, noise included, by the same filter."""
    model = realise(model)
    if _has_gaussian_states(model):
        filtered, steps = _gaussian_filter(model, segment)
        mean, cov = jax.vmap(predict)(steps, filtered.mean[:-1], filtered.cov[:-1])
        e = model.emission
        assert isinstance(e, LinearGaussian)
        return StepForecasts(e.mean(mean), jnp.sqrt(jnp.einsum("pi,tij,pj->tp", e.C, cov, e.C) + e.noise))
    key_start, key_filter = jax.random.split(key)
    transition, steps, cloud = _open(model, segment, n_particles, key=key_start)

    def forward(before, inputs):
        step, key = inputs
        after, _, expected = _filter_step(model, transition, before, step, key=key)
        return after, expected

    start = _Followed(cloud, jnp.asarray(False))
    return jax.lax.scan(forward, start, (steps, jax.random.split(key_filter, steps.proposal.dt.shape[0])))[1]


@compiled
def standardised_increments(model: LatentSDE, segment: Segment, *, key: PRNGKeyArray) -> Float[Array, "N D"]:
    """(dx - E dx) / sd dx along a path drawn from the chain of one series.

    A drawn path, because smoothed means are smoother than the states: for a right model, the increments along draws
    are independent standard normals, those along means are not.
    """
    model = realise(model)
    key_chain, key_path = jax.random.split(key)
    transition = model.dynamics.condition()
    dt = segment.dt[model.encoder.lead :]
    x = model.chain(segment, transition, key=key_chain).sample(1, key=key_path).x[0]
    mean = jax.vmap(transition.mean)(x[:-1], dt)
    return (x[1:] - mean) / jnp.sqrt(jax.vmap(transition.variance)(x[:-1], dt))


@compiled
def encode_context(model: LatentSDE, segment: Segment, *, n_samples: int, key: PRNGKeyArray) -> ContextState:
    """Draws from the last state of the model's chain. Padding says nothing and is unlinked, so the last linked state
    is found by walking the smoothed paths."""
    model = realise(model)
    key_chain, key_sample = jax.random.split(key)
    chain = model.chain(segment, model.dynamics.condition(), key=key_chain)
    last = _last(model, segment)
    return ContextState(chain.sample(n_samples, key=key_sample).x[:, last], jnp.asarray(1.0))


@compiled
def roll_out(draws: DriftDraws, x: Float[Array, "S D"], *, n_steps: int, key: PRNGKeyArray) -> Float[Array, "S H D"]:
    """Euler-Maruyama, one drift function a path from beginning to end."""

    def step(x, key):
        x = x + draws(x) + jnp.sqrt(draws.noise(x)) * jax.random.normal(key, x.shape)
        return x, x

    _, path = jax.lax.scan(step, x, jax.random.split(key, n_steps))
    return jnp.swapaxes(path, 0, 1)


@compiled
def draw_drifts(model: LatentSDE, *, n: int, uncertain: bool, key: PRNGKeyArray) -> DriftDraws:
    """n drift functions from the posterior, or n times its mean."""
    dynamics = realise(model).dynamics
    return dynamics.draw(n, key=key) if uncertain else dynamics.central(n)


@compiled
def pick(n: int, n_picked: int, *, key: PRNGKeyArray) -> Int[Array, " K"]:
    """So many of n, each once where there are enough."""
    return jax.random.choice(key, n, (n_picked,), replace=n < n_picked)


@compiled
def smooth(model: LatentSDE, segment: Segment, *, key: PRNGKeyArray):
    """Marginals of the states of one series."""
    model = realise(model)
    return model.chain(segment, model.dynamics.condition(), key=key).marginals()


@compiled
def emit(model: LatentSDE, x: Float[Array, "S H D"], *, noise: bool, key: PRNGKeyArray) -> Float[Array, "S H P"]:
    """Observations of states, with or without observation noise."""
    return model.emission.sample(x, key=key) if noise else model.emission.mean(x)


@compiled
def drift_moments(model: LatentSDE, x: Float[Array, "K D"]) -> tuple[Array, Array]:
    """Mean and sd of the drift at points, in the model's units."""
    transition = realise(model).dynamics.condition()
    variance = jax.vmap(transition.drift_variance)(x) / transition.precision
    return jax.vmap(transition.drift)(x), jnp.sqrt(jnp.maximum(variance, 0.0))


@compiled
def diffusion_moments(model: LatentSDE, x: Float[Array, "K D"]) -> tuple[Array, Array]:
    """Mean and sd of the diffusion exp(s(x)) / lam at points, lam with its Gamma posterior, in the model's units."""
    dynamics = realise(model).dynamics
    q = dynamics.posterior()
    shape = jnp.maximum(q.shape, 2.0 + 1e-3)
    mean = q.rate / (shape - 1.0) * jnp.exp(jax.vmap(dynamics.condition().log_noise)(x))
    return mean, mean / jnp.sqrt(shape - 2.0)
