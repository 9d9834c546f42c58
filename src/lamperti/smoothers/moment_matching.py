"""The paper's smoother: exact moments of the drift at a Gaussian input (assumed-density filter)."""

import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.interfaces import AbstractSmoother, AbstractTransition, Gaussian, Potentials
from lamperti.smoothers._chain import GaussianChain, build_chain
from lamperti.smoothers._filter import filter_pushed


class MomentMatching(AbstractSmoother):
    """Needs a transition with closed-form moments: squared-exponential, linear and constant kernels and their sums."""

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
    ) -> GaussianChain:
        link = jnp.ones(dt.shape, dtype=bool) if link is None else link
        filtered, steps = filter_pushed(transition.pusher(), initial, potentials, dt, link)
        return build_chain(filtered, steps, initial, potentials, link, parallel=False)
