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

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from lamperti._compile import compiled, to_jax
from lamperti._errors import CapabilityError
from lamperti._params import realise
from lamperti._process import while_training
from lamperti._typing import Array, Float, Scalar
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.model import LatentSDE, Segment
from lamperti.train.fitted import UNITS, Fitted, What, flat, noise_sds, search_range, shaped, turns
from lamperti.train.gauge import carry, gauge_transform
from lamperti.train.likelihood import log_likelihood, state_covariance

_ROUNDS = 250
_JUDGED_EVERY = 10  # rounds, after which held-out segments are looked at
_BAD = 1e6  # cost where the likelihood is not finite: to the line search it is merely bad
_GAIN = 1e-8  # of log-likelihood a transition: a round that gains less is the last


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
        searches: tuple[What, ...] = ("all", "noises") if model.told_by == "emission" else ("noises",)
        for what in searches:
            way = _climb(model, batch, judged, prior_share, what, deadline)
            chosen = chosen_point(np.stack([likely for _, likely in way]))
            if chosen == 0:
                continue
            found = way[chosen][0]
            better = _settle(found, model) if what == "noises" else _turned_to_suit(model, found, batch)
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
    model: LatentSDE, batch: Segment, judged: Segment, prior_share: float, what: What, deadline: float
) -> list[tuple[Fitted, np.ndarray]]:
    """Points on the way from the model to where the batch is most likely, each with what the judged segments say."""
    origin, *bounds = search_range(model, what)
    start, unit = flat(origin), np.repeat(UNITS, [value.size for value in origin])
    low, high = (flat(bound) - start for bound in bounds)

    def cost(way: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _cost_and_slope(shaped(start + unit * way, origin), model, batch, jnp.asarray(prior_share))
        steepness = unit * flat(slope)
        if not (np.isfinite(value) and np.isfinite(steepness).all()):
            return _BAD, np.zeros(len(way))
        return float(value), steepness

    points: list[tuple[Fitted, np.ndarray]] = []
    rounds = 0

    def look(way: np.ndarray) -> None:
        values = shaped(start + unit * way, origin)
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


def _turned_to_suit(model: LatentSDE, values: Fitted, batch: Segment) -> LatentSDE:
    """The model with what was found, in coordinates where states have unit covariance and Q is diagonal."""
    changed = _settle(values, model)
    if not turns(model):
        return changed
    Q = np.asarray(_noise(values, model))
    cov = np.asarray(_spread(changed, batch, to_jax(Q)))
    positive_definite = np.isfinite(cov).all() and np.linalg.eigvalsh(cov)[0] > 0
    T = gauge_transform(cov, Q) if positive_definite else None
    if T is None:  # states in a plane: the turn that makes Q diagonal and leaves the first coordinate
        L = np.linalg.cholesky(Q)
        T = np.linalg.inv(L / np.diagonal(L))
    return carry(changed, to_jax(T), to_jax(Q))


_settle, _noise = compiled(Fitted.settled_in), compiled(Fitted.Q)


@compiled
def _spread(model: LatentSDE, batch: Segment, Q: Float[Array, "D D"]) -> Float[Array, "D D"]:
    return state_covariance(realise(model), batch, Q)


@compiled
def _each(model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return log_likelihood(realise(model), batch)


@compiled
def _each_at(values: Fitted, model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return _likelihood_at(values, model, batch)


def _likelihood_at(values: Fitted, model: LatentSDE, batch: Segment) -> Float[Array, " B"]:
    return log_likelihood(realise(values.put_into(model)), batch, values.Q(model), values.weights(model))


@compiled
def _cost_and_slope(values: Fitted, model: LatentSDE, batch: Segment, prior_share: Scalar) -> tuple[Scalar, Fitted]:
    def cost(values: Fitted) -> Scalar:
        likely = jnp.sum(_likelihood_at(values, model, batch))
        # With the noise that training left: with another, the prior of the drift would be another.
        far = 0.5 * jnp.sum(jnp.sum(values.weights(model).mu ** 2, axis=1) / noise_sds(model) ** 2)
        return (prior_share * far - likely) / jnp.sum(batch.link[:, model.encoder.lead :])

    return jax.value_and_grad(cost)(values)


def _count(model: LatentSDE, batch: Segment) -> float:
    """Transitions of the chains of a batch."""
    return float(np.sum(np.asarray(batch.link)[:, model.encoder.lead :]))
