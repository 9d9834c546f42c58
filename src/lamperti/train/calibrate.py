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
to where it is diagonal (docs/adr/0023). Of the points that the search goes through, held-out segments choose
(docs/adr/0025).
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
from lamperti._errors import CapabilityError
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
_JUDGED_EVERY = 10  # rounds, after which held-out segments are looked at
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
        e, d = model.emission, model.dynamics
        assert isinstance(e, LinearGaussian)  # calibrate() has looked
        tilt, still = jnp.zeros((d.dim, d.dim)), jnp.zeros_like(d.q.shift)
        return cls(2.0 * jnp.log(_sds(model)), tilt, jnp.log(e.noise), e.C, e.c, d.mean.weight, d.mean.bias, still)

    def put_into(self, model: LatentSDE) -> LatentSDE:
        """The model with the noises and the linear parts."""
        g = jnp.exp(self.g)
        rate = model.dynamics.q.shape * g  # which is in force where the diffusion's step is the conjugate one
        new = (positive(g), rate, jnp.exp(self.R), self.C, self.c, self.weight, self.bias)
        return eqx.tree_at(_places, model, new)

    def settled_in(self, model: LatentSDE) -> LatentSDE:
        """The model with all of it but the tilt, its drift's prior what it was.

        The prior's variance is amplitude^2 g: with another g the amplitude is another, and so are whitened weights. Of
        the precision of these, the part that the data gave grows with it; the prior's does not."""
        d = model.dynamics
        ratio = jnp.exp(2.0 * jnp.log(_sds(model)) - self.g)
        eye = jnp.eye(d.Z.shape[0])
        prec = eye + ratio[:, None, None] * (d.q.prec - eye)
        mu = self.weights(model).mu / jnp.sqrt(ratio)[:, None]
        amplitude = realise(d).amplitude * jnp.sqrt(ratio)
        return eqx.tree_at(
            lambda m: (m.dynamics.amplitude, m.dynamics.q.prec, m.dynamics.q.shift),
            self.put_into(model),
            (positive(amplitude), prec, jnp.einsum("dij,dj->di", prec, mu)),
        )

    def weights(self, model: LatentSDE) -> Weights:
        w = weights(model.dynamics.q)
        return w._replace(mu=w.mu + jnp.einsum("d,dij,dj->di", _sds(model), w.root, self.drift))

    def Q(self, model: LatentSDE) -> Float[Array, "D D"]:
        sd = _sds(model)
        M = jnp.eye(len(sd)) + jnp.tril(self.tilt, -1) * sd[:, None] / sd[None, :]
        return (M * jnp.exp(self.g)) @ M.T


def _sds(model: LatentSDE) -> Float[Array, " D"]:
    """Root of the diffusion that is in force."""
    return 1.0 / jnp.sqrt(realise(model.dynamics).posterior().mean_precision)


def _units() -> _Fitted:
    """Steps of the search: a tenth of a loading or a slope matters as much as a factor of e in a noise."""
    return _Fitted(*map(jnp.asarray, (1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 1.0)))


def _places(m: Any) -> tuple:
    d, e = m.dynamics, m.emission
    return d.diffusion, d.q.rate, e.noise, e.C, e.c, d.mean.weight, d.mean.bias


def calibrate(
    model: LatentSDE,
    batch: Segment,
    held_out: Segment | None = None,
    *,
    n_transitions: int | None = None,
    max_seconds: float = math.inf,
) -> LatentSDE:
    """The model with the noises, loadings and mean drift under which the batch is most likely, in coordinates where its
    diffusion is diagonal. Never one under which held-out segments are less likely than they were: where there is none
    on the way to the maximum, with other noises only; where there is none then either, or the likelihood cannot be
    computed, as it was.

    ``n_transitions``: of all the data that the batch stands for, against which the drift's prior is weighed.
    ``max_seconds``: when the search takes longer, what it has found by then.
    Raises `CapabilityError` for an emission that is not linear and Gaussian: its noise is not one that is fitted."""
    if not isinstance(model.emission, LinearGaussian):
        raise CapabilityError(
            f"the likelihood fit knows only LinearGaussian emissions; got {type(model.emission).__name__}. "
            "Use FitConfig(calibrate=False)."
        )
    prior_share = _count(model, batch) / (n_transitions or _count(model, batch))
    judged = batch if held_out is None else held_out
    deadline = time.monotonic() + max_seconds
    with while_training:
        # Where the encoder speaks at every state, it must go on to speak of the coordinates that it knows.
        for only_noises in (False, True) if model.told_by == "emission" else (True,):
            way = _climb(model, batch, judged, prior_share, only_noises, deadline)
            chosen = chosen_point(np.stack([likely for _, likely in way]))
            if chosen == 0:
                continue
            found = way[chosen][0]
            better = found.settled_in(model) if only_noises else _turned_to_suit(model, found, batch)
            if float(np.sum(_each(better, judged))) >= float(np.sum(way[0][1])):  # one that is not finite is not
                return better
    return model


def chosen_point(likely: Float[np.ndarray, "K B"]) -> int:
    """Which point of a search to take, by the log-likelihoods of B held-out segments at each; the first is the start.

    The latest under which they are not less likely than at the start, and not clearly (by a standard error) less likely
    than at the best: a few segments cannot tell points near the maximum apart, and the batch, which can, likes the
    latest best."""
    total = np.where(np.isfinite(likely).all(axis=1), likely.sum(axis=1), -np.inf)
    behind = likely[np.argmax(total)] - likely
    doubt = behind.std(axis=1, ddof=1) * np.sqrt(likely.shape[1]) if likely.shape[1] > 1 else np.zeros(len(likely))
    good = (total >= total[0]) & np.isfinite(total) & (behind.sum(axis=1) <= doubt)
    return int(np.flatnonzero(good)[-1]) if good.any() else 0


def _climb(
    model: LatentSDE, batch: Segment, judged: Segment, prior_share: float, only_noises: bool, deadline: float
) -> list[tuple[_Fitted, np.ndarray]]:
    """Points on the way from the model to where the batch is most likely, each with what the judged segments say."""
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

    points: list[tuple[_Fitted, np.ndarray]] = []
    rounds = 0

    def look(way: np.ndarray) -> None:
        values = back(start + unit * way)
        points.append((values, np.asarray(_each_at(values, model, judged))))

    def after_a_round(way: np.ndarray) -> None:
        nonlocal rounds
        rounds += 1
        if rounds % _JUDGED_EVERY == 0:
            look(way)
        if time.monotonic() > deadline:
            raise StopIteration

    nowhere = np.zeros(len(unit))
    before = cost(nowhere)[0]
    look(nowhere)
    found = minimize(
        cost,
        nowhere,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / unit, high / unit, strict=True)),
        callback=after_a_round,
        options={"maxiter": _ROUNDS, "maxcor": 30, "ftol": _GAIN / max(1.0, abs(before))},
    )
    look(found.x)
    return points


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


def _turned_to_suit(model: LatentSDE, values: _Fitted, batch: Segment) -> LatentSDE:
    """The model with what was found, in coordinates where states have unit covariance and Q is diagonal."""
    changed = values.settled_in(model)
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
def _each_at(values: _Fitted, model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return _likelihood_at(values, model, batch)


def _likelihood_at(values: _Fitted, model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return log_likelihood(realise(values.put_into(model)), batch, values.Q(model), values.weights(model))


@compiled
def _cost_and_slope(values: _Fitted, model: LatentSDE, batch: Segment, prior_share: Scalar) -> tuple[Scalar, _Fitted]:
    def cost(values: _Fitted) -> Scalar:
        likely = jnp.sum(_likelihood_at(values, model, batch))
        # With the noise that training left: with another, the prior of the drift would be another.
        far = 0.5 * jnp.sum(jnp.sum(values.weights(model).mu ** 2, axis=1) / _sds(model) ** 2)
        return (prior_share * far - likely) / jnp.sum(batch.link[:, model.encoder.lead :])

    return jax.value_and_grad(cost)(values)


def _count(model: LatentSDE, batch: Segment) -> float:
    """Transitions of the chains of a batch."""
    return float(np.sum(batch.link[:, model.encoder.lead :]))
