"""A turn of the latent coordinates that makes the diffusion diagonal.

Notation   x' = T x with T Cov(x) T' = I and T Q T' diagonal, Q: residual covariance of the increments per unit time

The model is invariant under linear maps of x except that its diffusion is diagonal, which is the truth in some
coordinates only. In training (`gauge_move`), paths sampled in the old coordinates are mapped, and the drift's posterior
in the new ones, with kernels along the new axes, is their exact conjugate posterior, so nothing starts afresh. A model
that is done (`carry`) keeps its drift as it is.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize

from lamperti._compile import compiled, to_jax
from lamperti._params import positive, realise
from lamperti._typing import Array, Float, PRNGKeyArray, Scalar
from lamperti.dynamics.initial import InitialState
from lamperti.math.normal_gamma import posterior, weights
from lamperti.model import LatentSDE, Segment
from lamperti.objective import elbo, transition_terms

_PATHS = 2
_WORST_CONDITION = 1e8


@compiled
def _paths(model: LatentSDE, batch: Segment, key: PRNGKeyArray):
    realised = realise(model)
    lead = model.encoder.lead
    w = weights(realised.dynamics.q)
    n = jnp.sum(batch.link[:, lead:]).astype(float)
    _, sampled = elbo(realised, batch, weights=w, n_samples=_PATHS, n_transitions=n, key=key)
    drift = jax.vmap(realised.dynamics.condition(w).drift)
    x = sampled.x
    f = drift(x.reshape(-1, x.shape[-1])).reshape(x.shape)
    dt = batch.dt[:, lead:]
    residual = jnp.diff(x, axis=2) - dt[:, None, :, None] * f[:, :, :-1]
    weight = (batch.link[:, lead:] / dt)[:, None, :, None]
    Q = jnp.einsum("bsti,bstj->ij", weight * residual, residual) / (_PATHS * n)
    return x, Q


def gauge_transform(cov: Float[np.ndarray, "D D"], Q: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"] | None:
    """T with T cov T' = I and T Q T' diagonal: the generalised eigenvectors of (Q, cov). None where there is no such
    T: states in a plane, or states that are not finite."""
    if not (np.isfinite(cov).all() and np.isfinite(Q).all()) or np.linalg.cond(cov) > _WORST_CONDITION:
        return None
    _, vectors = scipy.linalg.eigh(Q, cov)
    T = vectors.T
    # Of all signs and orders, the one nearest to the old axes, so that coordinates keep their meaning.
    rows, columns = scipy.optimize.linear_sum_assignment(-np.abs(T))
    T = T[rows[np.argsort(columns)]]
    return T * np.where(np.diag(T) < 0, -1.0, 1.0)[:, None]


def gauge_move(model: LatentSDE, batches: Sequence[Segment], *, n_transitions: int, key: PRNGKeyArray) -> LatentSDE:
    """The same model in coordinates where the residual covariance of the increments is diagonal, if there are any."""
    draws = [_paths(model, b, k) for b, k in zip(batches, jax.random.split(key, len(batches)), strict=True)]
    x = np.concatenate([np.asarray(d[0]).reshape(-1, model.latent_dim) for d in draws])
    cov = np.atleast_2d(np.cov(x, rowvar=False))
    Q = np.mean([np.asarray(d[1]) for d in draws], axis=0)
    T = gauge_transform(cov, Q)
    if T is None:
        return model
    return _turned(model, [d[0] for d in draws], list(batches), to_jax(T), jnp.asarray(float(n_transitions)))


def change_coordinates(model: LatentSDE, T: Float[Array, "D D"]) -> LatentSDE:
    """Encoder, emission, initial state, inducing inputs, mean drift and prior in coordinates x' = T x."""
    d = model.dynamics
    initial = InitialState(T @ model.initial.mean, T @ model.initial.second @ T.T)
    return eqx.tree_at(
        lambda m: (m.encoder, m.emission, m.initial, m.dynamics.Z, m.dynamics.mean, m.dynamics.prior),
        model,
        (model.encoder.turned(T), model.emission.turned(T), initial, d.Z @ T.T, d.mean.turned(T), d.turned_prior(T)),
    )


@compiled
def carry(model: LatentSDE, T: Float[Array, "D D"], Q: Float[Array, "D D"]) -> LatentSDE:
    """The same model in coordinates x' = T x, its drift carried along exactly. ``Q``: covariance of the noise in the
    old coordinates; T Q T' is diagonal."""
    d = realise(model.dynamics).turned(T, Q)
    return eqx.tree_at(
        lambda m: (m.dynamics.amplitude, m.dynamics.diffusion, m.dynamics.q, m.dynamics.axes),
        change_coordinates(model, T),
        (positive(d.amplitude), positive(d.diffusion), d.q, d.axes),
    )


@compiled
def _turned(
    model: LatentSDE,
    paths: list[Float[Array, "B S T D"]],
    batches: list[Segment],
    T: Float[Array, "D D"],
    n_transitions: Scalar,
) -> LatentSDE:
    """The model in coordinates x' = T x, with the exact posterior of drift and precision given the mapped paths."""
    model = change_coordinates(model, T)
    lead = model.encoder.lead
    x = jnp.concatenate([p @ T.T for p in paths])
    dt = jnp.concatenate([b.dt[:, lead:] for b in batches])
    link = jnp.concatenate([b.link[:, lead:] for b in batches])
    dynamics = realise(model.dynamics)
    _, statistics = transition_terms(dynamics.condition(), x, dt, link)
    scaled = jax.tree.map(lambda a: n_transitions / statistics.count * a, statistics)
    q = posterior(dynamics.prior, scaled)
    return eqx.tree_at(lambda m: (m.dynamics.q, m.dynamics.diffusion), model, (q, positive(q.rate / q.shape)))
