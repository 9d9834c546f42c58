"""The stochastic differential equation: a sparse-GP drift and a Gamma precision for each latent coordinate.

Notation   Z: inducing inputs [M, D]      K = L L' = k(Z, Z)      s: amplitude of each coordinate [D]
           v: whitened weights, f(Z) = s L v      A(x) = s k(x, Z) L^-T      P(x) = s^2 (k(x, x) - k(x, Z) K^-1 k(Z, x))
           axes: the kernels see axes x, the identity until coordinates are turned [D, D]
           q(v, lam) = NormalGamma(mu, Sigma, shape, rate)      g = rate / shape: the diffusion
Equations  docs/theory.md (1)-(6)
"""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._params import Positive
from lamperti._typing import Array, Float, PRNGKeyArray, Scalar
from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.noise_field import log_ratio
from lamperti.dynamics.region import PULL, Region, pulled
from lamperti.dynamics.transition import GPTransition
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import Mapped
from lamperti.math import small
from lamperti.math.factor import Factor, factorise
from lamperti.math.normal_gamma import NormalGamma, Statistics, Weights, kl, natural_step, weights

DiffusionStep = Literal["scale-free", "natural"]


class DriftDraws(eqx.Module):
    """S drift functions with their diffusions, drawn once and then held: f(x) = mean(x) + k(x, Z) w."""

    kernels: tuple[AbstractKernel, ...]
    Z: Float[Array, "M D"]
    w: Float[Array, "S D M"]
    mean: LinearMean
    diffusion: Float[Array, "S D"]
    region: Region | None = None
    field: Float[Array, "D M"] | None = None

    def __call__(self, x: Float[Array, "S D"]) -> Float[Array, "S D"]:
        """The s-th function at the s-th point; outside the region of the data, that of its border with a pull back."""
        border, beyond = pulled(self.region, x)
        inside = self._inside(border)
        return inside if self.region is None else inside - PULL * beyond

    def noise(self, x: Float[Array, "S D"]) -> Float[Array, "S D"]:
        """Variance of a step of one from each point."""
        if self.field is None:
            return self.diffusion
        border, _ = pulled(self.region, x)
        return self.diffusion * jnp.exp(log_ratio([k.gram(border, self.Z) for k in self.kernels], self.field))

    def _inside(self, x: Float[Array, "S D"]) -> Float[Array, "S D"]:
        grams = [kernel.gram(x, self.Z) for kernel in self.kernels]
        if len(grams) == 1:
            return self.mean(x) + jnp.einsum("sdm,sm->sd", self.w, grams[0])
        return self.mean(x) + jnp.einsum("sdm,dsm->sd", self.w, jnp.stack(grams))


class SparseGPDynamics(eqx.Module):
    """Drift and diffusion with their posterior.

    One kernel is shared by all coordinates, or each has its own. ``diffusion`` is the centre of the Gamma posterior
    when ``diffusion_step`` is "scale-free": it is then moved by gradient, the rate following as shape x diffusion.
    With "natural" (the paper) the rate is the conjugate one and ``diffusion`` is not used.
    """

    kernels: tuple[AbstractKernel, ...]
    amplitude: Positive[Float[Array, " D"]]
    Z: Float[Array, "M D"]
    mean: LinearMean
    diffusion: Positive[Float[Array, " D"]]
    q: NormalGamma
    prior: NormalGamma
    jitter: Scalar
    axes: Float[Array, "D D"]
    diffusion_step: DiffusionStep = eqx.field(static=True, default="scale-free")
    region: Region | None = None
    """Where the data went; outside of it the drift pulls back. None while training, and for data with a trend."""
    noise: Float[Array, "D M"] | None = None
    """Whitened weights of the noise's dependence on the state. None while training, and where the noise is constant."""

    @property
    def dim(self) -> int:
        return self.Z.shape[1]

    def posterior(self) -> NormalGamma:
        """q with the rate that is in force."""
        if self.diffusion_step == "natural":
            return self.q
        return eqx.tree_at(lambda q: q.rate, self.q, self.q.shape * self.diffusion)

    @property
    def mapped_kernels(self) -> tuple[AbstractKernel, ...]:
        """The kernels as functions of the state."""
        return tuple(Mapped(kernel, self.axes) for kernel in self.kernels)

    def turned(self, T: Float[Array, "D D"], Q: Float[Array, "D D"]) -> "SparseGPDynamics":
        """The same equation in coordinates x' = T x, for realised dynamics with one kernel. ``Q`` is the covariance of
        the noise in the old ones (its diagonal need not be that of ``diffusion``); T Q T' must be diagonal.

        Mean drift and prior are carried along exactly. So is the posterior's covariance where all coordinates have the
        same Sigma, which is then that of Q x Sigma; elsewhere what becomes correlated is taken as independent."""
        back = jnp.linalg.inv(T)
        w = weights(self.posterior())
        diffusion = jnp.diagonal(T @ Q @ T.T)
        # s root v for independent v is T L (s root v) with Q = L L', one term of it for each column of L
        shares = T[:, None, :] * small.cholesky(Q).T[None]  # [D', column, D]
        amplitude = jnp.sqrt(jnp.sum((shares @ self.amplitude) ** 2, axis=1) / diffusion)
        half = jnp.einsum("dke,e,eij->dkij", shares, self.amplitude, w.root)
        scale = diffusion * amplitude**2
        Sigma = jnp.einsum("dkij,dklj->dil", half, half) / scale[:, None, None]
        prec = jnp.stack([factorise(one).inverse for one in Sigma])
        mu = (T @ (self.amplitude[:, None] * w.mu)) / amplitude[:, None]
        q = NormalGamma(self.q.shape, self.q.shape * diffusion, jnp.einsum("dij,dj->di", prec, mu), prec)
        return dataclasses.replace(
            self,
            amplitude=amplitude,
            Z=self.Z @ T.T,
            mean=self.mean.turned(T),
            diffusion=diffusion,
            q=q,
            prior=self.turned_prior(T),
            axes=self.axes @ back,
        )

    def turned_prior(self, T: Float[Array, "D D"]) -> NormalGamma:
        """The prior in coordinates x' = T x: its rate is half an observation's noise, which is turned as noise is."""
        p = self.prior
        return eqx.tree_at(lambda p: p.rate, p, p.shape * (T**2 @ (p.rate / p.shape)))

    def factors(self) -> tuple[Factor, ...]:
        """Factorise k(Z, Z) of every kernel; the only place where that is done."""
        eye = jnp.eye(self.Z.shape[0])
        return tuple(factorise(k.gram(self.Z, self.Z) + self.jitter * eye) for k in self.mapped_kernels)

    def condition(self, w: Weights | None = None) -> GPTransition:
        """Everything that does not depend on x, computed once. ``w`` may be passed when it is known already."""
        q = self.posterior()
        w = weights(q) if w is None else w
        factors = self.factors()
        to_inputs = self._per_coordinate([f.chol_inv.T for f in factors])  # L^-T
        half = self.amplitude[:, None, None] * jnp.einsum("dij,djk->dik", to_inputs, w.root)
        inverse = self._per_coordinate([f.inverse for f in factors])
        return GPTransition(
            kernels=self.mapped_kernels,
            Z=self.Z,
            mean_function=self.mean,
            w=self.amplitude[:, None] * jnp.einsum("dij,dj->di", to_inputs, w.mu),
            quad=self.amplitude[:, None, None] ** 2 * inverse - jnp.einsum("dij,dkj->dik", half, half),
            amplitude=self.amplitude,
            whitener=jnp.stack([f.chol_inv for f in factors]),
            precision=q.mean_precision,
            log_precision=q.mean_log_precision,
            region=self.region,
            field=self._field(to_inputs),
        )

    def kl(self, w: Weights | None = None) -> Scalar:
        """KL(q(v, lam) || p)."""
        q = self.posterior()
        return kl(q, weights(q) if w is None else w, self.prior)

    def natural_step(self, t: Statistics, rho: Scalar) -> tuple["SparseGPDynamics", Array]:
        """Move q towards the conjugate posterior of ``t``; returns also how often the step was halved."""
        q, halvings = natural_step(self.posterior(), self.prior, t, rho)
        return eqx.tree_at(lambda d: d.q, self, q), halvings

    def draw(self, n: int, *, key: PRNGKeyArray) -> DriftDraws:
        """n functions from the posterior.

        The part of the prior that the inducing inputs do not see (P) is left at zero, its mean."""
        key_lam, key_v = jax.random.split(key)
        q = self.posterior()
        w = weights(q)
        lam = jax.random.gamma(key_lam, q.shape, (n, self.dim)) / q.rate
        noise = jax.random.normal(key_v, (n, *w.mu.shape))
        v = w.mu + jnp.einsum("dij,sdj->sdi", w.root, noise) / jnp.sqrt(lam)[..., None]
        return self._functions(v, 1.0 / lam)

    def central(self, n: int) -> DriftDraws:
        """The mean drift and the central diffusion, n times."""
        q = self.posterior()
        mu = jnp.broadcast_to(weights(q).mu, (n, *q.shift.shape))
        return self._functions(mu, jnp.broadcast_to(1.0 / q.mean_precision, (n, self.dim)))

    def _functions(self, v: Float[Array, "S D M"], diffusion: Float[Array, "S D"]) -> DriftDraws:
        to_inputs = self._per_coordinate([f.chol_inv.T for f in self.factors()])
        w = self.amplitude[:, None] * jnp.einsum("dij,sdj->sdi", to_inputs, v)
        return DriftDraws(self.mapped_kernels, self.Z, w, self.mean, diffusion, self.region, self._field(to_inputs))

    def _field(self, to_inputs: Float[Array, "D M M"]) -> Float[Array, "D M"] | None:
        return None if self.noise is None else jnp.einsum("dij,dj->di", to_inputs, self.noise)

    def _per_coordinate(self, items: list[Array]) -> Float[Array, "D M M"]:
        stacked = jnp.stack(items)
        return jnp.broadcast_to(stacked, (self.dim, *stacked.shape[1:]))
