"""The Normal-Gamma posterior of whitened drift weights and precision, and its natural step.

Notation   v: weights [M], lam: precision, for each of D coordinates
           v | lam ~ N(mu, Sigma / lam),  lam ~ Gamma(shape, rate)
           prec = Sigma^-1 [D, M, M],  shift = Sigma^-1 mu [D, M]
Equations  docs/theory.md (7)-(12). Natural parameters, up to constants:
           (shape, -rate - mu' Sigma^-1 mu / 2, shift, -prec / 2); a step in them is linear.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln

from lamperti._typing import Array, Float, Int, Scalar
from lamperti.math.factor import factorise

_MAX_HALVINGS = 12


class NormalGamma(eqx.Module):
    """D independent Normal-Gamma distributions over (v_i, lam_i)."""

    shape: Float[Array, " D"]
    rate: Float[Array, " D"]
    shift: Float[Array, "D M"]
    prec: Float[Array, "D M M"]

    @property
    def mean_precision(self) -> Float[Array, " D"]:
        """E[lam]."""
        return self.shape / self.rate

    @property
    def mean_log_precision(self) -> Float[Array, " D"]:
        """E[log lam]."""
        return digamma(self.shape) - jnp.log(self.rate)


class Weights(NamedTuple):
    """mu, Sigma = root root', and log |Sigma^-1| of each coordinate."""

    mu: Float[Array, "D M"]
    root: Float[Array, "D M M"]
    log_det_prec: Float[Array, " D"]

    @property
    def Sigma(self) -> Float[Array, "D M M"]:
        return self.root @ jnp.swapaxes(self.root, -1, -2)


class Statistics(eqx.Module):
    """Expected sufficient statistics of increments, in whitened coordinates."""

    count: Scalar  # number of transitions
    squares: Float[Array, " D"]  # sum dx^2 / dt
    shift: Float[Array, "D M"]  # sum A' dx
    gram: Float[Array, "D M M"]  # sum dt A'A


def prior(shape: Float[Array, " D"], rate: Float[Array, " D"], n_weights: int) -> NormalGamma:
    """v | lam ~ N(0, I / lam): constant while kernel hyperparameters move, because v is whitened."""
    d = shape.shape[0]
    return NormalGamma(
        shape,
        rate,
        jnp.zeros((d, n_weights)),
        jnp.broadcast_to(jnp.eye(n_weights), (d, n_weights, n_weights)),
    )


def weights(q: NormalGamma) -> Weights:
    """Moments of v. Coordinates are factorised one by one: see math/factor.py."""
    factors = [factorise(p) for p in q.prec]
    root = jnp.stack([f.chol_inv.T for f in factors])
    mu = jnp.stack([r @ (r.T @ s) for r, s in zip(root, q.shift, strict=True)])
    return Weights(mu, root, jnp.stack([f.log_det for f in factors]))


def kl(q: NormalGamma, w: Weights, p: NormalGamma) -> Scalar:
    """KL(q || p) for a prior p with unit whitened covariance and zero mean; ``w`` are q's weights."""
    m = q.shift.shape[1]
    trace = jnp.sum(w.root**2, axis=(1, 2))
    normal = 0.5 * (trace + q.mean_precision * jnp.sum(w.mu**2, axis=1) - m + w.log_det_prec)
    gamma = (
        (q.shape - p.shape) * digamma(q.shape)
        - gammaln(q.shape)
        + gammaln(p.shape)
        + p.shape * (jnp.log(q.rate) - jnp.log(p.rate))
        + q.shape * (p.rate - q.rate) / q.rate
    )
    return jnp.sum(normal + gamma)


def posterior(p: NormalGamma, t: Statistics) -> NormalGamma:
    """The exact conjugate posterior of fixed paths: a natural step of size one."""
    return natural_step(p, p, t, jnp.asarray(1.0))[0]


def natural_step(q: NormalGamma, p: NormalGamma, t: Statistics, rho: Scalar) -> tuple[NormalGamma, Int[Array, ""]]:
    """eta <- (1 - rho) eta + rho (eta_prior + T). Returns the number of halvings of rho that kept q in the cone;
    after twelve the step is not taken."""

    def candidate(r: Scalar) -> NormalGamma:
        shape = (1 - r) * q.shape + r * (p.shape + 0.5 * t.count)
        shift = (1 - r) * q.shift + r * (p.shift + t.shift)
        prec = (1 - r) * q.prec + r * (p.prec + t.gram)
        second = (1 - r) * (q.rate + 0.5 * _energy(q)) + r * (p.rate + 0.5 * t.squares)
        new = NormalGamma(shape, second, shift, prec)
        return eqx.tree_at(lambda n: n.rate, new, second - 0.5 * _energy(new))

    def outside(state: tuple[Int[Array, ""], NormalGamma]) -> Array:
        halvings, new = state
        inside = jnp.all(new.rate > 0) & jnp.all(new.shape > 0) & jnp.all(jnp.isfinite(new.shift))
        return ~inside & (halvings < _MAX_HALVINGS)

    def halve(state: tuple[Int[Array, ""], NormalGamma]) -> tuple[Int[Array, ""], NormalGamma]:
        halvings = state[0] + 1
        return halvings, candidate(rho * 0.5**halvings)

    halvings, new = jax.lax.while_loop(outside, halve, (jnp.asarray(0), candidate(rho)))
    # Chosen rather than blended with weight zero: statistics that are not finite would get through a product.
    new = jax.tree.map(lambda moved, old: jnp.where(halvings < _MAX_HALVINGS, moved, old), new, q)
    return new, halvings


def _energy(q: NormalGamma) -> Float[Array, " D"]:
    """mu' Sigma^-1 mu."""
    return jnp.sum(weights(q).mu * q.shift, axis=1)
