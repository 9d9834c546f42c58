"""A Gaussian chain in backward form, and how a filter's output becomes one.

Notation   m, P: filtered mean and covariance at each step      F, b, Omega: affine steps (interfaces.AffineStep)
           x_k | x_{k+1} ~ N(G x_{k+1} + c, R R'),  R lower triangular
Equations  docs/theory.md (13)-(17)
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar
from lamperti.interfaces import AbstractChain, AffineStep, Gaussian, Marginals, PathSamples, Potentials
from lamperti.math import small
from lamperti.math.gaussian import LOG_2PI


class Filtered(eqx.Module):
    """Filtered means and covariances of all steps."""

    mean: Float[Array, "T D"]
    cov: Float[Array, "T D D"]


class GaussianChain(AbstractChain):
    """Exact sampling, density, entropy and marginals of a linear-Gaussian chain."""

    G: Float[Array, "N D D"]
    c: Float[Array, "N D"]
    chol_R: Float[Array, "N D D"]
    end: Gaussian
    log_z: Scalar
    valid: Bool[Array, " T"]
    parallel: bool = eqx.field(static=True)

    def sample(self, n: int, *, key: PRNGKeyArray) -> PathSamples:
        eps = jax.random.normal(key, (self.valid.shape[0], n, self.c.shape[-1]))
        noise = small.matvec(self.chol_R[:, None], eps[:-1]) + self.c[:, None]
        last = self.end.mean + small.matvec(self.end.chol, eps[-1])
        x = _affine_recursion(self.G[:, None], noise, last, parallel=self.parallel)
        # -log q of a reparametrised draw is the entropy plus a term free of parameters, so it costs nothing.
        energy = 0.5 * jnp.sum(jnp.where(self.valid[:, None, None], eps**2 - 1.0, 0.0), axis=(0, 2))
        return PathSamples(jnp.swapaxes(x, 0, 1), -self.entropy() - energy)

    def entropy(self) -> Scalar:
        chols = jnp.concatenate([self.chol_R, self.end.chol[None]])
        log_det = jnp.sum(jnp.log(small.diagonal(chols)), axis=-1)
        each = log_det + 0.5 * self.c.shape[-1] * (1.0 + LOG_2PI)
        return jnp.sum(jnp.where(self.valid, each, 0.0))

    def means(self) -> Float[Array, "T D"]:
        """Smoothed means alone."""
        return _affine_recursion(self.G, self.c, self.end.mean, parallel=self.parallel)

    def marginals(self) -> Marginals:
        R = small.matmul(self.chol_R, small.transpose(self.chol_R))

        def back(cov, step):
            G, R = step
            cov = small.matmul(small.matmul(G, cov), small.transpose(G)) + R
            return cov, cov

        _, covs = jax.lax.scan(back, self.end.cov, (self.G, R), reverse=True)
        return Marginals(self.means(), jnp.concatenate([covs, self.end.cov[None]]))

    def last(self) -> Gaussian:
        return self.end

    def log_normaliser(self) -> Scalar:
        return self.log_z


def update(
    mean: Float[Array, " D"],
    cov: Float[Array, "D D"],
    precision: Float[Array, "D D"],
    information: Float[Array, " D"],
) -> tuple[Float[Array, " D"], Float[Array, "D D"]]:
    """Multiply N(mean, cov) by one potential and normalise."""
    inverse, _ = small.inverse_pd(cov)
    new_cov, _ = small.inverse_pd(inverse + precision)
    return small.matvec(new_cov, small.matvec(inverse, mean) + information), new_cov


def predict(
    step: AffineStep, mean: Float[Array, "*b D"], cov: Float[Array, "*b D D"]
) -> tuple[Float[Array, "*b D"], Float[Array, "*b D D"]]:
    """Push N(mean, cov) through an affine step."""
    pushed = small.matmul(small.matmul(step.F, cov), small.transpose(step.F))
    return small.matvec(step.F, mean) + step.b, small.symmetrise(pushed + step.Omega)


def unlink(steps: AffineStep, link: Bool[Array, "*b"]) -> AffineStep:
    """Where a step joins nothing (padding), the next state is N(0, I) and independent."""
    eye = jnp.eye(steps.b.shape[-1])
    return AffineStep(
        jnp.where(link[..., None, None], steps.F, 0.0),
        jnp.where(link[..., None], steps.b, 0.0),
        jnp.where(link[..., None, None], steps.Omega, eye),
    )


def valid_steps(link: Bool[Array, " N"]) -> Bool[Array, " T"]:
    """A state counts when it is linked to a neighbour, or when it is the only one."""
    if link.shape[0] == 0:
        return jnp.ones(1, dtype=bool)
    edge = jnp.zeros(1, dtype=bool)
    return jnp.concatenate([link, edge]) | jnp.concatenate([edge, link])


def build_chain(
    filtered: Filtered,
    steps: AffineStep,
    initial: Gaussian,
    potentials: Potentials,
    link: Bool[Array, " N"],
    *,
    parallel: bool,
) -> GaussianChain:
    """Backward kernels and normaliser of all steps at once; nothing here is sequential."""
    m, P = filtered.mean[:-1], filtered.cov[:-1]
    mean, cov = predict(steps, m, P)
    inverse, _ = small.inverse_pd(cov)
    G = small.matmul(small.matmul(P, small.transpose(steps.F)), inverse)
    # Joseph form: a sum of squares stays positive where P - G P' G' would cancel.
    rest = jnp.eye(m.shape[-1]) - small.matmul(G, steps.F)
    R = small.matmul(small.matmul(rest, P), small.transpose(rest)) + small.matmul(
        small.matmul(G, steps.Omega), small.transpose(G)
    )
    before_mean = jnp.concatenate([initial.mean[None], mean])
    before_cov = jnp.concatenate([initial.cov[None], cov])
    valid = valid_steps(link)
    each = _log_integral(before_mean, before_cov, filtered, potentials)
    return GaussianChain(
        G=G,
        c=m - small.matvec(G, mean),
        chol_R=small.cholesky(small.symmetrise(R)),
        end=Gaussian(filtered.mean[-1], small.cholesky(filtered.cov[-1])),
        log_z=jnp.sum(jnp.where(valid, each, 0.0)),  # padding is independent of the rest, and no data
        valid=valid,
        parallel=parallel,
    )


def _log_integral(mean, cov, after: Filtered, potentials: Potentials) -> Float[Array, " T"]:
    """log of the integral of N(x; mean, cov) exp(-x'Lx/2 + h'x), the filtered Gaussian being known."""
    inverse, log_det = small.inverse_pd(cov)
    post_inverse, post_log_det = small.inverse_pd(after.cov)
    gain = jnp.sum(small.matvec(post_inverse, after.mean) * after.mean, axis=-1)
    loss = jnp.sum(small.matvec(inverse, mean) * mean, axis=-1)
    return 0.5 * (gain - loss + post_log_det - log_det)


def _affine_recursion(G, c, last, *, parallel: bool):
    """x_k = G_k x_{k+1} + c_k back from x_T = last; leading axis is time."""
    if not parallel:

        def back(x, step):
            x = small.matvec(step[0], x) + step[1]
            return x, x

        _, x = jax.lax.scan(back, last, (G, c), reverse=True)
    else:
        G = jnp.broadcast_to(G, (*c.shape, c.shape[-1]))

        def compose(late, early):
            return small.matmul(early[0], late[0]), small.matvec(early[0], late[1]) + early[1]

        total_G, total_c = jax.lax.associative_scan(compose, (G, c), reverse=True)
        x = small.matvec(total_G, last) + total_c
    return jnp.concatenate([x, last[None]])
