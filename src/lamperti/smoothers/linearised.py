"""The default smoother: linearise the drift along a trajectory, then an exact linear-Gaussian chain."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.interfaces import AbstractSmoother, AbstractTransition, Gaussian, Potentials
from lamperti.smoothers._chain import GaussianChain, build_chain, unlink
from lamperti.smoothers._filter import filter_parallel, filter_steps


class Linearised(AbstractSmoother):
    """Linearise at ``points`` (the encoder means), then ``relinearise`` times at the smoothed means.

    Kernel work is done for all steps at once; only D x D algebra is sequential, or logarithmic in T with
    ``scan="associative"``. The points are constants for the gradient: they move the chain only to second order.
    """

    scan: Literal["sequential", "associative"] = eqx.field(static=True, default="sequential")
    relinearise: int = eqx.field(static=True, default=0)

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
        run = filter_parallel if self.scan == "associative" else filter_steps
        for attempt in range(self.relinearise + 1):
            at = jax.lax.stop_gradient(points)
            steps = unlink(jax.vmap(transition.linearise)(at[:-1], dt), link)
            filtered = run(steps, initial, potentials)
            chain = build_chain(filtered, steps, initial, potentials, link, parallel=self.scan == "associative")
            if attempt < self.relinearise:
                points = chain.means()
        return chain
