"""The likelihood of the data under a model, by the sigma-point chain of the emissions alone.

Notation   Q: covariance of the noise of the motion per unit of time [D, D]      w: moments of the drift's weights
Equations  docs/theory.md (26)

What the encoder makes of the window that ends at the first sample takes the place of that sample, which would count
twice otherwise: the likelihood is that of all later samples given that window, up to a constant of each segment. Where
the encoder has seen too little to speak, the first sample counts as the others do.
"""

import dataclasses

import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, Scalar
from lamperti.interfaces import AffineStep, Encoding, Potentials
from lamperti.math.normal_gamma import Weights
from lamperti.model import LatentSDE, Segment
from lamperti.smoothers._chain import Filtered, GaussianChain, build_chain, update
from lamperti.smoothers._filter import filter_pushed
from lamperti.smoothers.sigma_point import sigma_point_step


def log_likelihood(
    model: LatentSDE, batch: Segment, Q: Float[Array, "D D"] | None = None, w: Weights | None = None
) -> Float[Array, " B"]:
    """log p(y) of every segment under the realised model; ``Q`` and ``w`` in place of what it has."""

    def one(segment: Segment, chain: GaussianChain) -> Scalar:
        part = segment.chain_part(model.encoder.lead)
        encoding, _ = model.potentials(segment)
        # A potential is the emission's density over its value at the origin.
        origin = jnp.zeros((part.y.shape[0], model.latent_dim))
        counted = part.mask & ~_spoken_for(encoding)[:, None]
        return chain.log_normaliser() + model.emission.log_density(part.y, counted, origin)

    return jax.vmap(one)(batch, _chains(model, batch, Q, w))


def _spoken_for(encoding: Encoding) -> Bool[Array, " T"]:
    """The first state, if the encoder says something of it."""
    return (jnp.arange(len(encoding.known)) == 0) & encoding.known


def state_covariance(model: LatentSDE, batch: Segment, Q: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """Covariance of all states of all segments, what is not known of them included."""
    chains = _chains(model, batch, Q)
    marginals, counts = jax.vmap(lambda chain: chain.marginals())(chains), chains.valid.astype(float)
    n = jnp.sum(counts)
    mean = jnp.einsum("bt,bti->i", counts, marginals.mean) / n
    away = marginals.mean - mean
    return jnp.einsum("bt,btij->ij", counts, marginals.cov + away[..., :, None] * away[..., None, :]) / n


def state_means(model: LatentSDE, batch: Segment) -> tuple[Float[Array, "B T D"], Bool[Array, "B T"]]:
    """Smoothed means of all states of all segments, and which of them belong to the data."""
    chains = _chains(model, batch)
    return jax.vmap(lambda chain: chain.marginals().mean)(chains), chains.valid


def filtered_states(
    model: LatentSDE, batch: Segment, w: Weights | None = None
) -> tuple[Float[Array, "B T D"], Float[Array, "B T D D"]]:
    """Mean and covariance of all states of all segments, each given what was seen until then."""
    if model.told_by == "window":
        return _read_off(model, batch)
    filtered = _filtered(model, batch, None, w)[0]
    return filtered.mean, filtered.cov


def _read_off(model: LatentSDE, batch: Segment) -> tuple[Float[Array, "B T D"], Float[Array, "B T D D"]]:
    """States by their windows, which tell them all but exactly; where too little of a window was observed, what came
    before would tell more, but those are few."""
    initial = model.initial.gaussian()

    def one(segment: Segment) -> tuple[Array, Array]:
        potentials = model.encoder(segment.y, segment.mask, segment.dt).potentials
        return jax.vmap(update, in_axes=(None, None, 0, 0))(
            initial.mean, initial.cov, potentials.precision, potentials.information
        )

    return jax.vmap(one)(batch)


def _chains(
    model: LatentSDE, batch: Segment, Q: Float[Array, "D D"] | None = None, w: Weights | None = None
) -> GaussianChain:
    """The chain of every segment, with a leading axis."""
    initial = model.initial.gaussian()
    filtered, steps, potentials = _filtered(model, batch, Q, w)

    def one(filtered, steps, potentials, link):
        return build_chain(filtered, steps, initial, potentials, link, parallel=False)

    return jax.vmap(one)(filtered, steps, potentials, batch.link[:, model.encoder.lead :])


def _filtered(
    model: LatentSDE, batch: Segment, Q: Float[Array, "D D"] | None, w: Weights | None
) -> tuple[Filtered, AffineStep, Potentials]:
    """The filter over every segment, its steps and what the data say of each state."""
    transition = model.dynamics.condition(w)
    if model.told_by != "window":
        model = dataclasses.replace(model, told_by="emission")
    initial = model.initial.gaussian()

    def step(mean: Float[Array, " D"], cov: Float[Array, "D D"], dt: Scalar) -> AffineStep:
        def noise(x: Float[Array, " D"]) -> Float[Array, "D D"]:
            return jnp.diag(transition.variance(x, dt)) if Q is None else dt * Q

        return sigma_point_step(transition.mean, noise, mean, cov, dt)

    def one(segment: Segment) -> tuple[Filtered, AffineStep, Potentials]:
        part = segment.chain_part(model.encoder.lead)
        encoding, potentials = model.potentials(segment)
        first = _spoken_for(encoding)
        potentials = encoding.potentials.masked(first) * potentials.masked(~first)
        return *filter_pushed(step, initial, potentials, part.dt, part.link), potentials

    return jax.vmap(one)(batch)
