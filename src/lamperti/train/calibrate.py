"""The noises of a trained model and all that is linear in it, fitted once more: to the likelihood of the data.

Notation   g: diffusion of each coordinate [D]      R: variance of the observation noise of each channel [P]
           C, c: loadings, offset      B x + b: linear part of the drift
Equations  docs/theory.md (26)

The bound is noisy and learned with rates that fall; whatever is not quite right in the drift by then looks like
diffusion. Paths that are drawn with too much noise in a direction that has hardly any also move loadings and drift
only slowly to where they should be. The likelihood has neither trouble, and these are few numbers: they are set to its
maximum, the rest held (docs/adr/0018, 0022).
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from lamperti._compile import compiled
from lamperti._params import positive, realise
from lamperti._process import while_training
from lamperti._typing import Array, Float, Scalar
from lamperti.emissions.linear_gaussian import NOISE_FLOOR, LinearGaussian
from lamperti.model import LatentSDE, Segment
from lamperti.smoothers import SigmaPoint

_FURTHEST = 4.0  # log g and log R, from where training left them
_REACH, _LEAST_REACH = 0.5, 0.2  # loadings and linear drift: a share of what they are, but at least so much
_ROUNDS = 60
# Held-out segments may seem less likely by so many standard errors, but never by more than so many nats a transition:
# a disaster in one of them would excuse itself by its own spread.
_DOUBT, _WORST = 2.0, 0.005
_BAD = 1e6  # cost where the likelihood is not finite: to the line search it is merely bad
_GAIN = 1e-8  # of log-likelihood a transition: a round that gains less is the last


def log_likelihood(model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    """log p(y) of every segment under the realised model, by the sigma-point chain of the emissions alone, up to what
    the encoder says of the first state, which nothing that is fitted here changes."""
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


class _Fitted(NamedTuple):
    """What is fitted to the likelihood: the noises by their logarithms, and all that is linear in the model."""

    g: Float[Array, " D"]
    R: Float[Array, " P"]
    C: Float[Array, "P D"]
    c: Float[Array, " P"]
    weight: Float[Array, "D D"]
    bias: Float[Array, " D"]

    @classmethod
    def of(cls, model: LatentSDE) -> "_Fitted":
        e, d = model.emission, realise(model.dynamics)
        assert isinstance(e, LinearGaussian)  # calibrate() has looked
        return cls(jnp.log(d.diffusion), jnp.log(e.noise), e.C, e.c, d.mean.weight, d.mean.bias)

    def put_into(self, model: LatentSDE) -> LatentSDE:
        new = (positive(jnp.exp(self.g)), jnp.exp(self.R), self.C, self.c, self.weight, self.bias)
        return eqx.tree_at(_places, model, new)


def _units() -> _Fitted:
    """Steps of the search: a tenth of a loading or a slope matters as much as a factor of e in a noise."""
    return _Fitted(*map(jnp.asarray, (1.0, 1.0, 0.1, 0.1, 0.1, 0.1)))


def _places(m: Any) -> tuple:
    d, e = m.dynamics, m.emission
    return d.diffusion, e.noise, e.C, e.c, d.mean.weight, d.mean.bias


def calibrate(model: LatentSDE, batch: Segment, held_out: Segment | None = None) -> LatentSDE:
    """The model with the noises, the loadings and the linear part of the drift under which the batch is most likely; as
    it was, where the held-out segments are clearly less likely so, or the likelihood cannot be computed."""
    if model.dynamics.diffusion_step != "scale-free" or not isinstance(model.emission, LinearGaussian):
        return model  # g is then the conjugate posterior's; or there is no R
    start, back = ravel_pytree(_Fitted.of(model))
    unit = np.asarray(ravel_pytree(jax.tree.map(jnp.full_like, _Fitted.of(model), _units()))[0])
    # Where the encoder speaks at every state, it must go on to speak of the coordinates that it knows.
    free = model.told_by == "emission"
    bounds = _bounds(_Fitted.of(model), loadings=free, drift=free and not model.dynamics.mean.fixed)
    low, high = (np.asarray(ravel_pytree(b)[0] - start) for b in bounds)

    def cost(way: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _cost_and_slope(back(start + unit * way), model, batch)
        if not np.isfinite(value):
            return _BAD, np.zeros(len(way))
        return float(value), unit * np.asarray(ravel_pytree(slope)[0])

    with while_training:
        origin = np.zeros(len(unit))
        before = cost(origin)[0]
        found = minimize(
            cost,
            origin,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low / unit, high / unit, strict=True)),
            options={"maxiter": _ROUNDS, "maxcor": 30, "ftol": _GAIN / max(1.0, abs(before))},
        )
        better = back(start + unit * found.x).put_into(model)
        judged = batch if held_out is None else held_out
        gain = np.asarray(_each(better, judged)) - np.asarray(_each(model, judged))
    n_transitions = float(np.sum(judged.link[:, model.encoder.lead :]))
    spread = gain.std(ddof=1) * np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    # a gain that is not finite is none
    return better if gain.sum() > -min(_DOUBT * spread, _WORST * n_transitions) else model


def _bounds(start: _Fitted, *, loadings: bool, drift: bool) -> tuple[_Fitted, _Fitted]:
    """How far each may go: noises by a factor, linear parts by a share of what they are, or not at all."""

    def reach(value: Array, free: bool) -> Array:
        return jnp.maximum(_REACH * jnp.abs(value), _LEAST_REACH) if free else jnp.zeros_like(value)

    far = _Fitted(
        g=jnp.full_like(start.g, _FURTHEST),
        R=jnp.full_like(start.R, _FURTHEST),
        C=reach(start.C, loadings),
        c=reach(start.c, loadings),
        weight=reach(start.weight, drift),
        bias=reach(start.bias, drift),
    )
    low, high = (jax.tree.map(move, start, far) for move in (jnp.subtract, jnp.add))
    floor = jnp.minimum(jnp.log(NOISE_FLOOR), start.R)
    return low._replace(R=jnp.maximum(low.R, floor)), high


@compiled
def _each(model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return log_likelihood(realise(model), batch)


@compiled
def _cost_and_slope(values: _Fitted, model: LatentSDE, batch: Segment) -> tuple[Scalar, _Fitted]:
    def cost(values: _Fitted) -> Scalar:
        changed = realise(values.put_into(model))
        return _a_transition(model, -jnp.sum(log_likelihood(changed, batch)), batch)

    return jax.value_and_grad(cost)(values)


def _a_transition(model: LatentSDE, total: Scalar, batch: Segment) -> Scalar:
    return total / jnp.sum(batch.link[:, model.encoder.lead :])
