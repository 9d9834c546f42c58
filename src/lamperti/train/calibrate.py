"""What of a trained model can be fitted to the likelihood of the data directly: its noises, all that is linear in it,
and the mean of its drift.

Notation   g, R: noises of the motion [D] and the observation [P]      C, c: loadings, offset      B x + b: linear drift
           Q = M diag(g) M': covariance of the motion's noise, M with a unit diagonal and zeros above [D, D]
           mu, Sigma = root root': mean and covariance of the drift's weights, times g [D, M], [D, M, M]
Equations  docs/theory.md (26), (27)

The bound is noisy and learned with rates that fall; whatever is not quite right in the drift by then looks like
diffusion. Paths that are drawn with too much noise in a direction that has hardly any also move loadings and drift
only slowly to where they should be. The likelihood has neither trouble (docs/adr/0018, 0022). Steps of the drift's
weights are in sds of their posterior, in which the likelihood is about equally curved in all directions; their prior
is that of the bound. The noise of a sampled system has directions of its own, place and velocity of an oscillator get
theirs together, and the model's diffusion is diagonal: Q is fitted as a matrix, and the coordinates are then turned
to where it is diagonal (docs/adr/0023).
"""

import math
import time
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
from lamperti.math.normal_gamma import Weights, weights
from lamperti.model import LatentSDE, Segment
from lamperti.train.gauge import carry, gauge_transform
from lamperti.train.likelihood import log_likelihood, state_covariance

_FURTHEST = 4.0  # log g and log R, from where training left them
_REACH, _LEAST_REACH = 0.5, 0.2  # loadings and linear drift: a share of what they are, but at least so much
_TILT = 10.0  # entries of M below the diagonal, between coordinates of equal noise
_SDS = 10.0  # weights of the drift, in sds of their posterior
_ROUNDS = 250
# Held-out segments may seem less likely by so many standard errors, but never by more than so many nats a transition:
# a disaster in one of them would excuse itself by its own spread.
_DOUBT, _WORST = 2.0, 0.005
_BAD = 1e6  # cost where the likelihood is not finite: to the line search it is merely bad
_GAIN = 1e-8  # of log-likelihood a transition: a round that gains less is the last


class _Fitted(NamedTuple):
    """What is fitted to the likelihood: the noises by their logarithms, the linear parts, and the drift's weights."""

    g: Float[Array, " D"]
    tilt: Float[Array, "D D"]
    """M below its diagonal, in units of the sds that the coordinates' noises have at the start; the rest is ignored."""
    R: Float[Array, " P"]
    C: Float[Array, "P D"]
    c: Float[Array, " P"]
    weight: Float[Array, "D D"]
    bias: Float[Array, " D"]
    drift: Float[Array, "D M"]
    """mu, from where training left it, in sds of its posterior."""

    @classmethod
    def of(cls, model: LatentSDE) -> "_Fitted":
        e, d = model.emission, realise(model.dynamics)
        assert isinstance(e, LinearGaussian)  # calibrate() has looked
        tilt, still = jnp.zeros((d.dim, d.dim)), jnp.zeros_like(d.q.shift)
        return cls(jnp.log(d.diffusion), tilt, jnp.log(e.noise), e.C, e.c, d.mean.weight, d.mean.bias, still)

    def put_into(self, model: LatentSDE) -> LatentSDE:
        """The model with all of it but the tilt."""
        shift = jnp.einsum("dij,dj->di", model.dynamics.q.prec, self.weights(model).mu)
        new = (positive(jnp.exp(self.g)), jnp.exp(self.R), self.C, self.c, self.weight, self.bias, shift)
        return eqx.tree_at(_places, model, new)

    def weights(self, model: LatentSDE) -> Weights:
        w = weights(model.dynamics.q)
        return w._replace(mu=w.mu + jnp.einsum("d,dij,dj->di", _sds(model), w.root, self.drift))

    def Q(self, model: LatentSDE) -> Float[Array, "D D"]:
        sd = _sds(model)
        M = jnp.eye(len(sd)) + jnp.tril(self.tilt, -1) * sd[:, None] / sd[None, :]
        return (M * jnp.exp(self.g)) @ M.T


def _sds(model: LatentSDE) -> Float[Array, " D"]:
    return jnp.sqrt(realise(model.dynamics).diffusion)


def _units() -> _Fitted:
    """Steps of the search: a tenth of a loading or a slope matters as much as a factor of e in a noise."""
    return _Fitted(*map(jnp.asarray, (1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 1.0)))


def _places(m: Any) -> tuple:
    d, e = m.dynamics, m.emission
    return d.diffusion, e.noise, e.C, e.c, d.mean.weight, d.mean.bias, d.q.shift


def calibrate(
    model: LatentSDE,
    batch: Segment,
    held_out: Segment | None = None,
    *,
    n_transitions: int | None = None,
    max_seconds: float = math.inf,
) -> LatentSDE:
    """The model with the noises, loadings and mean drift under which the batch is most likely, in coordinates where its
    diffusion is diagonal. Where held-out segments are clearly less likely so, with other noises only; where they are
    then as well, or the likelihood cannot be computed, as it was.

    ``n_transitions``: of all the data that the batch stands for, against which the drift's prior is weighed.
    ``max_seconds``: when the search takes longer, what it has found by then."""
    if model.dynamics.diffusion_step != "scale-free" or not isinstance(model.emission, LinearGaussian):
        return model  # g is then the conjugate posterior's; or there is no R
    prior_share = _count(model, batch) / (n_transitions or _count(model, batch))
    judged = batch if held_out is None else held_out
    deadline = time.monotonic() + max_seconds
    with while_training:
        # Where the encoder speaks at every state, it must go on to speak of the coordinates that it knows.
        for only_noises in (False, True) if model.told_by == "emission" else (True,):
            found = _most_likely(model, batch, prior_share, only_noises, deadline)
            better = found.put_into(model) if only_noises else _settled(model, found, batch)
            gain = np.asarray(_each(better, judged)) - np.asarray(_each(model, judged))
            spread = gain.std(ddof=1) * np.sqrt(len(gain)) if len(gain) > 1 else 0.0
            if gain.sum() > -min(_DOUBT * spread, _WORST * _count(model, judged)):  # one that is not finite is none
                return better
    return model


def _most_likely(model: LatentSDE, batch: Segment, prior_share: float, only_noises: bool, deadline: float) -> _Fitted:
    origin = _Fitted.of(model)
    start, back = ravel_pytree(origin)
    unit = np.asarray(ravel_pytree(jax.tree.map(jnp.full_like, origin, _units()))[0])
    low, high = (np.asarray(ravel_pytree(b)[0] - start) for b in _bounds(origin, model, only_noises))

    def cost(way: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _cost_and_slope(back(start + unit * way), model, batch, jnp.asarray(prior_share))
        steepness = unit * np.asarray(ravel_pytree(slope)[0])
        if not (np.isfinite(value) and np.isfinite(steepness).all()):
            return _BAD, np.zeros(len(way))
        return float(value), steepness

    nowhere = np.zeros(len(unit))
    before = cost(nowhere)[0]

    def watch_the_clock(_: np.ndarray) -> None:
        if time.monotonic() > deadline:
            raise StopIteration

    found = minimize(
        cost,
        nowhere,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / unit, high / unit, strict=True)),
        callback=watch_the_clock,
        options={"maxiter": _ROUNDS, "maxcor": 30, "ftol": _GAIN / max(1.0, abs(before))},
    )
    return back(start + unit * found.x)


def _bounds(start: _Fitted, model: LatentSDE, only_noises: bool) -> tuple[_Fitted, _Fitted]:
    """How far each may go: noises by a factor, linear parts by a share of what they are, or not at all."""

    def reach(value: Array) -> Array:
        return jnp.maximum(_REACH * jnp.abs(value), _LEAST_REACH)

    far = _Fitted(
        g=jnp.full_like(start.g, _FURTHEST),
        tilt=jnp.full_like(start.tilt, _TILT if _turns(model) else 0.0),
        R=jnp.full_like(start.R, _FURTHEST),
        C=reach(start.C),
        c=reach(start.c),
        weight=reach(start.weight),
        bias=reach(start.bias),
        drift=jnp.full_like(start.drift, _SDS),
    )
    if model.dynamics.mean.fixed:
        far = far._replace(weight=jnp.zeros_like(far.weight), bias=jnp.zeros_like(far.bias))
    if only_noises:
        far = jax.tree.map(jnp.zeros_like, far)._replace(g=far.g, R=far.R)
    low, high = (jax.tree.map(move, start, far) for move in (jnp.subtract, jnp.add))
    floor = jnp.minimum(jnp.log(NOISE_FLOOR), start.R)
    return low._replace(R=jnp.maximum(low.R, floor)), high


def _turns(model: LatentSDE) -> bool:
    """Drifts whose coordinates have kernels of their own cannot be mixed; a single one has nothing to mix."""
    return len(model.dynamics.kernels) == 1 and model.latent_dim > 1


def _settled(model: LatentSDE, values: _Fitted, batch: Segment) -> LatentSDE:
    """The model with what was found, in coordinates where states have unit covariance and Q is diagonal."""
    changed = values.put_into(model)
    if not _turns(model):
        return changed
    Q = np.asarray(values.Q(model))
    cov = np.asarray(_spread(changed, batch, jnp.asarray(Q)))
    positive_definite = np.isfinite(cov).all() and np.linalg.eigvalsh(cov)[0] > 0
    T = gauge_transform(cov, Q) if positive_definite else None
    if T is None:  # states in a plane: the turn that makes Q diagonal and leaves the first coordinate
        L = np.linalg.cholesky(Q)
        T = np.linalg.inv(L / np.diagonal(L))
    return carry(changed, jnp.asarray(T), jnp.asarray(Q))


@compiled
def _spread(model: LatentSDE, batch: Segment, Q: Float[Array, "D D"]) -> Float[Array, "D D"]:
    return state_covariance(realise(model), batch, Q)


@compiled
def _each(model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return log_likelihood(realise(model), batch)


@compiled
def _cost_and_slope(values: _Fitted, model: LatentSDE, batch: Segment, prior_share: Scalar) -> tuple[Scalar, _Fitted]:
    def cost(values: _Fitted) -> Scalar:
        w = values.weights(model)
        likely = jnp.sum(log_likelihood(realise(values.put_into(model)), batch, values.Q(model), w))
        # With the noise that training left: with another, the prior of the drift would be another.
        far = 0.5 * jnp.sum(jnp.sum(w.mu**2, axis=1) / _sds(model) ** 2)
        return (prior_share * far - likely) / jnp.sum(batch.link[:, model.encoder.lead :])

    return jax.value_and_grad(cost)(values)


def _count(model: LatentSDE, batch: Segment) -> float:
    """Transitions of the chains of a batch."""
    return float(np.sum(batch.link[:, model.encoder.lead :]))
