"""The noises of a trained model, fitted once more: to the likelihood of the data instead of the bound.

Notation   g: diffusion of each coordinate [D]      R: variance of the observation noise of each channel [P]
Equations  docs/theory.md (26)

The bound is noisy and learned with rates that fall; whatever is not quite right in the drift by then looks like
diffusion. The likelihood has no noise, and the two kinds of noise are few numbers: they are set to its maximum, drift
and loadings held (docs/adr/0018).
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from lamperti._compile import compiled
from lamperti._params import positive, realise
from lamperti._process import while_training
from lamperti._typing import Array, Float, Scalar
from lamperti.emissions.linear_gaussian import NOISE_FLOOR, LinearGaussian
from lamperti.model import LatentSDE, Segment
from lamperti.smoothers import SigmaPoint

_FURTHEST = 4.0  # from where training left log g and log R
_ROUNDS = 40
_GAIN = 1e-6  # of log-likelihood a transition: a round that gains less is the last


def log_likelihood(model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    """log p(y) of every segment under the realised model, by the sigma-point chain of the emissions alone, up to what
    the encoder says of the first state, which g and R do not change."""
    transition = model.dynamics.condition()
    model = dataclasses.replace(model, told_by="emission")

    def one(segment: Segment) -> Scalar:
        part = segment.chain_part(model.encoder.lead)
        _, potentials = model.potentials(segment)
        origin = jnp.zeros((part.y.shape[0], model.latent_dim))
        chain = SigmaPoint()(
            transition,
            model.initial.gaussian(),
            potentials,
            part.dt,
            points=origin,
            link=part.link,
            key=jax.random.key(0),
        )
        # A potential is the emission's density over its value at the origin.
        return chain.log_normaliser() + model.emission.log_density(part.y, part.mask, origin)

    return jax.vmap(one)(batch)


def calibrate(model: LatentSDE, batch: Segment, held_out: Segment | None = None) -> LatentSDE:
    """The model with the g and R under which the batch is most likely; as it was, where that is no gain for the
    held-out segments, or the likelihood cannot be computed."""
    if model.dynamics.diffusion_step != "scale-free" or not isinstance(model.emission, LinearGaussian):
        return model  # g is then the conjugate posterior's; or there is no R
    start = np.log(np.concatenate([realise(model.dynamics).diffusion, model.emission.noise]))
    low = np.full(model.latent_dim, -np.inf), np.full(len(start) - model.latent_dim, np.log(NOISE_FLOOR))
    bounds = np.clip(start - _FURTHEST, np.minimum(np.concatenate(low), start), None), start + _FURTHEST

    def cost(noises: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _cost_and_slope(jnp.asarray(noises), model, batch)
        return float(value), np.asarray(slope)

    with while_training:
        before = cost(start)[0]
        found = minimize(
            cost,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(*bounds, strict=True)),
            options={"maxiter": _ROUNDS, "ftol": _GAIN / max(1.0, abs(before))},
        )
        better = _with_noises(model, jnp.asarray(found.x))
        judged = batch if held_out is None else held_out
        gain = float(_cost(model, judged)) - float(_cost(better, judged))
    return better if gain > 0 else model  # a gain that is not finite is none


@compiled
def _cost(model: LatentSDE, batch: Segment) -> Scalar:
    return _mean_cost(model, batch)


@compiled
def _cost_and_slope(noises: Float[Array, " K"], model: LatentSDE, batch: Segment) -> tuple[Scalar, Array]:
    return jax.value_and_grad(lambda noises: _mean_cost(_with_noises(model, noises), batch))(noises)


def _mean_cost(model: LatentSDE, batch: Segment) -> Scalar:
    """Minus the log-likelihood a transition."""
    return -jnp.sum(log_likelihood(realise(model), batch)) / jnp.sum(batch.link[:, model.encoder.lead :])


def _with_noises(model: LatentSDE, noises: Float[Array, " K"]) -> LatentSDE:
    """``noises``: log g and log R."""
    g, R = noises[: model.latent_dim], noises[model.latent_dim :]
    new = (positive(jnp.exp(g)), jnp.exp(R))
    return eqx.tree_at(lambda m: (m.dynamics.diffusion, m.emission.noise), model, new)
