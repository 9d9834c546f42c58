"""The latent SDE: encoder, dynamics, emission and smoother put together.

Works in standardised units of value and time; lamperti.api converts.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._params import realise
from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.dynamics.initial import InitialState
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.interfaces import (
    AbstractChain,
    AbstractEmission,
    AbstractEncoder,
    AbstractSmoother,
    AbstractTransition,
    Encoding,
    Potentials,
)

ToldBy = Literal["emission", "emission*encoder", "encoder", "window"]
"""What tells the chain of the states. "window": the encoder alone, sure of the state at every sample, because the
coordinates are functions of its window by definition."""


class Segment(eqx.Module):
    """A segment of one series, or with a leading axis a batch: the encoder's lead, then the chain's samples."""

    y: Float[Array, "*B L P"]
    mask: Bool[Array, "*B L P"]
    dt: Float[Array, "*B N"]
    link: Bool[Array, "*B N"]

    def chain_part(self, lead: int) -> "Segment":
        """Without the lead; for one series."""
        return Segment(self.y[lead:], self.mask[lead:], self.dt[lead:], self.link[lead:])


class LatentSDE(eqx.Module):
    """A state space whose motion is a stochastic differential equation."""

    encoder: AbstractEncoder
    dynamics: SparseGPDynamics
    emission: AbstractEmission
    initial: InitialState
    smoother: AbstractSmoother
    told_by: ToldBy = eqx.field(static=True, default="emission")

    @property
    def latent_dim(self) -> int:
        return self.dynamics.dim

    def potentials(self, segment: Segment) -> tuple[Encoding, Potentials]:
        """What the data say of each state: the emission's likelihood, and at the first the encoder's guess of what came
        before. The encoder at every state would tell of the same noise many times, because its windows overlap."""
        encoding = self.encoder(segment.y, segment.mask, segment.dt)
        guess = encoding.potentials
        if self.told_by == "encoder":
            return encoding, guess
        part = segment.chain_part(self.encoder.lead)
        if self.told_by == "window":  # the newest sample is part of the state: filled in, it would be taken as seen
            return encoding, guess.masked(jnp.all(part.mask, axis=1))
        if self.told_by == "emission":
            guess = guess.masked(jnp.arange(len(part.y)) == 0)
        return encoding, guess * self.emission.potentials(part.y, part.mask)

    def chain(
        self,
        segment: Segment,
        transition: AbstractTransition,
        *,
        keep: Bool[Array, " T"] | None = None,
        key: PRNGKeyArray,
    ) -> AbstractChain:
        """q(x) of one segment; potentials are silent where ``keep`` is False."""
        return self.encode_chain(segment, transition, keep=keep, key=key)[1]

    def encode_chain(
        self,
        segment: Segment,
        transition: AbstractTransition,
        *,
        keep: Bool[Array, " T"] | None = None,
        key: PRNGKeyArray,
    ) -> tuple[Encoding, AbstractChain]:
        """What the encoder says, and the chain that comes of it."""
        encoding, potentials = self.potentials(segment)
        if keep is not None:
            potentials = potentials.masked(keep)
        part = segment.chain_part(self.encoder.lead)
        initial = self.initial.gaussian()
        chain = self.smoother(transition, initial, potentials, part.dt, points=encoding.mean, link=part.link, key=key)
        return encoding, chain

    def check(self) -> None:
        """Refuse a combination of parts that cannot work, before anything is trained."""
        n = self.encoder.lead + 3

        def run(model: LatentSDE, key: PRNGKeyArray) -> AbstractChain:
            model = realise(model)
            y, mask = jnp.zeros((n, self.n_channels)), jnp.ones((n, self.n_channels), dtype=bool)
            segment = Segment(y, mask, jnp.ones(n - 1), jnp.ones(n - 1, dtype=bool))
            return model.chain(segment, model.dynamics.condition(), key=key)

        eqx.filter_eval_shape(run, self, jax.random.key(0))

    @property
    def n_channels(self) -> int:
        # By way of arguments, so that a model of shapes without values can tell as well.
        state = jax.ShapeDtypeStruct((self.latent_dim,), float)
        return eqx.filter_eval_shape(lambda emission, x: emission.mean(x), self.emission, state).shape[0]
