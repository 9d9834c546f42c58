"""The evidence lower bound, term by term.

Notation   scale: all transitions / transitions in the batch      S: paths a series
Equations  docs/theory.md (25). Every term has weight one; the bound holds for any chain that is sampled exactly.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.dynamics.transition import GPTransition
from lamperti.math.gaussian import log_density
from lamperti.math.normal_gamma import Statistics, Weights
from lamperti.model import LatentSDE, Segment


class ElboTerms(eqx.Module):
    """The named parts of the bound, over the whole data set."""

    emission: Scalar
    initial: Scalar
    transition: Scalar
    entropy: Scalar
    kl: Scalar

    @property
    def total(self) -> Scalar:
        return self.data - self.kl

    @property
    def data(self) -> Scalar:
        """All but the divergence of the drift's posterior from its prior."""
        return self.emission + self.initial + self.transition + self.entropy


class Sampled(eqx.Module):
    """Paths of a batch, the natural step's statistics of them (over the whole data set), and how far the encoder is
    from them."""

    x: Float[Array, "B S T D"]
    statistics: Statistics
    encoder_error: Scalar


def elbo(
    model: LatentSDE,
    batch: Segment,
    *,
    weights: Weights,
    n_samples: int,
    n_transitions: Scalar,
    keep: Bool[Array, "B T"] | None = None,
    key: PRNGKeyArray,
) -> tuple[ElboTerms, Sampled]:
    """Monte Carlo estimate of the bound with S paths a series. ``model`` is realised; ``weights`` are its q's."""
    transition = model.dynamics.condition(weights)
    lead = model.encoder.lead
    n_series = batch.y.shape[0]

    def draw(segment: Segment, keep_one, key):
        key_chain, key_sample = jax.random.split(key)
        encoding, chain = model.encode_chain(segment, transition, keep=keep_one, key=key_chain)
        return chain.sample(n_samples, key=key_sample), encoding

    axes = (0, None if keep is None else 0, 0)
    paths, encoding = jax.vmap(draw, in_axes=axes)(batch, keep, jax.random.split(key, n_series))
    first = model.initial.gaussian()
    parts = jax.vmap(lambda s: s.chain_part(lead))(batch)

    emission = jax.vmap(jax.vmap(model.emission.log_density, in_axes=(None, None, 0)))(parts.y, parts.mask, paths.x)
    initial = log_density(paths.x[:, :, 0], first.mean, first.chol)
    log_p, statistics = transition_terms(transition, paths.x, parts.dt, parts.link)
    scale = n_transitions / jnp.maximum(statistics.count, 1.0)
    terms = ElboTerms(
        emission=scale * jnp.sum(emission) / n_samples,
        initial=scale * jnp.sum(initial) / n_samples,
        transition=scale * log_p,
        # The sampled entropy: its noise cancels against the other terms the closer the chain is to the posterior.
        entropy=-scale * jnp.sum(paths.log_q) / n_samples,
        kl=model.dynamics.kl(weights),
    )
    counted = encoding.known[:, :-1] & parts.link
    stray = encoder_error(encoding.mean[:, :-1], paths.x[:, :, :-1], counted)
    return terms, Sampled(paths.x, jax.tree.map(lambda t: scale * t, statistics), stray)


def encoder_error(mean: Float[Array, "B N D"], x: Float[Array, "B S N D"], counted: Bool[Array, "B N"]) -> Scalar:
    """Mean squared distance of the encoder's means from the chain's, in units of the states' variance. The chain is a
    constant here: it is the encoder that must follow."""
    target = jax.lax.stop_gradient(jnp.mean(x, axis=1))
    spread = jnp.var(target, axis=(0, 1)) + 1e-12
    each = jnp.mean((mean - target) ** 2 / spread, axis=-1)
    return jnp.sum(jnp.where(counted, each, 0.0)) / jnp.maximum(jnp.sum(counted), 1)


def transition_terms(
    transition: GPTransition, x: Float[Array, "B S T D"], dt: Float[Array, "B N"], link: Bool[Array, "B N"]
) -> tuple[Scalar, Statistics]:
    """Expected log-density of all steps of all paths, averaged over the S paths, and their statistics."""
    b, s, t, d = x.shape
    dx = x[:, :, 1:] - x[:, :, :-1]
    steps = jnp.broadcast_to(dt[:, None], (b, s, t - 1)).reshape(-1)
    weight = jnp.broadcast_to(link[:, None] / s, (b, s, t - 1)).reshape(-1)
    return transition.path_terms(x[:, :, :-1].reshape(-1, d), dx.reshape(-1, d), steps, weight)
