"""One step of the learned process, given the posterior of its drift and precision.

Notation   k(x): k(x, Z) [M]      w: s L^-T mu [D, M], so that the mean drift is k(x) w + mean(x)
           quad: s^2 (K^-1 - L^-T Sigma L^-1) [D, M, M], so that P + A Sigma A' = s^2 k(x, x) - k(x)' quad k(x)
Equations  docs/theory.md (4)-(6)
"""

import jax
import jax.numpy as jnp

from lamperti._errors import CapabilityError
from lamperti._typing import Array, Float, Scalar
from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.noise_field import log_ratio
from lamperti.dynamics.region import PULL, Region, pulled, shrunk
from lamperti.interfaces import AbstractKernel, AbstractTransition, AffineStep, Pusher
from lamperti.kernels.expectations import prepare, require_expectations
from lamperti.math import small
from lamperti.math.gaussian import LOG_2PI
from lamperti.math.normal_gamma import Statistics


class GPTransition(AbstractTransition):
    """Euler-Maruyama step under q(v, lam). With a single kernel all coordinates share one Gram matrix."""

    kernels: tuple[AbstractKernel, ...]
    Z: Float[Array, "M D"]
    mean_function: LinearMean
    w: Float[Array, "D M"]
    quad: Float[Array, "D M M"]
    amplitude: Float[Array, " D"]
    whitener: Float[Array, "G M M"]
    precision: Float[Array, " D"]
    log_precision: Float[Array, " D"]
    region: Region | None = None
    """Set when training is done; the closed form of `pusher` does not see it."""
    field: Float[Array, "D M"] | None = None
    """Of the noise where it depends on the state; set when training is done."""

    def drift(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Mean drift."""
        border, beyond = pulled(self.region, x)
        inside = self._drifts(border[None])[0][0]
        return inside if self.region is None else inside - PULL * beyond

    def drift_variance(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """Variance of the drift, in units of the diffusion: P + A Sigma A'."""
        grams = [k.gram(x[None], self.Z)[0] for k in self.kernels]
        prior = jnp.stack([k.diagonal(x[None])[0] for k in self.kernels])
        k = jnp.broadcast_to(jnp.stack(grams), self.w.shape)
        return self.amplitude**2 * prior - jnp.einsum("di,dij,dj->d", k, self.quad, k)

    def mean(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        if self.region is None:
            return x + dt * self.drift(x)
        border, beyond = pulled(self.region, x)
        return border + dt * self._drifts(border[None])[0][0] + shrunk(beyond, dt)

    def variance(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        return dt / self.precision * jnp.exp(self.log_noise(x))

    def log_noise(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        """log of the noise at x over the constant one; beyond the region of the data, as on its border."""
        if self.field is None:
            return jnp.zeros_like(x)
        border, _ = pulled(self.region, x)
        return log_ratio([k.gram(border[None], self.Z) for k in self.kernels], self.field)[0]

    @property
    def constant_noise(self) -> bool:
        return self.field is None

    def linearise(self, x: Float[Array, " D"], dt: Scalar) -> AffineStep:
        def mean_twice(point: Float[Array, " D"]):
            m = self.mean(point, dt)
            return m, m

        F, m = jax.jacfwd(mean_twice, has_aux=True)(x)
        return AffineStep(F, m - small.matvec(F, x), jnp.diag(self.variance(x, dt)))

    def expected_log_density(self, x: Float[Array, " D"], x_next: Float[Array, " D"], dt: Scalar) -> Scalar:
        residual = x_next - self.mean(x, dt)
        away = self.precision * residual**2 / dt + dt * self.drift_variance(x)
        s = self.log_noise(x)
        return 0.5 * jnp.sum(self.log_precision - LOG_2PI - jnp.log(dt) - s - jnp.exp(-s) * away)

    def pusher(self) -> Pusher:
        self._check_closed_form()
        prepared = prepare(self.kernels[0], self.Z)

        def push(mean: Float[Array, " D"], cov: Float[Array, "D D"], dt: Scalar) -> AffineStep:
            moments = prepared.moments(mean, cov)
            drift = self.w @ moments.first
            jacobian = self.w @ moments.gradient
            spread = self.w @ moments.second @ self.w.T - drift[:, None] * drift[None, :]
            # Cov(f) splits into what the regression on x explains and the rest; only the rest is noise of the step.
            rest = spread - small.matmul(small.matmul(jacobian, cov), small.transpose(jacobian))
            F = jnp.eye(mean.shape[0]) + dt * (jacobian + self.mean_function.weight)
            m = mean + dt * (drift + self.mean_function(mean))
            Omega = dt**2 * small.symmetrise(rest) + jnp.diag(dt / self.precision)
            return AffineStep(F, m - small.matvec(F, mean), Omega)

        return push

    def _check_closed_form(self) -> None:
        if self.field is not None:
            raise CapabilityError(
                "MomentMatching needs constant noise. Use SigmaPoint(), or FitConfig(forecasts=False)."
            )
        for kernel in self.kernels:
            require_expectations(kernel)
        if len(self.kernels) > 1:
            raise CapabilityError(
                "MomentMatching needs one kernel shared by all coordinates. "
                "Use shared_kernel=True, or Linearised() or SigmaPoint()."
            )

    def path_terms(
        self,
        x: Float[Array, "N D"],
        dx: Float[Array, "N D"],
        dt: Float[Array, " N"],
        weight: Float[Array, " N"],
    ) -> tuple[Scalar, Statistics]:
        """Weighted sum of ``expected_log_density`` over many steps at once, and the natural step's statistics.

        The Gram matrix of all points is formed once for the drift, for P + A Sigma A' (a trace against
        sum dt k k') and for the statistics. Of constant noise: what depends on the state is fitted after training."""
        f, grams = self._drifts(x)
        residual = dx - dt[:, None] * f
        wdt = weight * dt
        outer = jnp.stack([g.T @ (wdt[:, None] * g) for g in grams])  # sum dt k k'
        diag = jnp.stack([jnp.sum(wdt * k.diagonal(x)) for k in self.kernels])
        spread = self.amplitude**2 * diag - jnp.sum(self.quad * outer, axis=(1, 2))
        squared = (weight / dt) @ residual**2
        total = jnp.sum(weight)
        constant = total * (self.log_precision - LOG_2PI) - jnp.sum(weight * jnp.log(dt))
        log_density = 0.5 * jnp.sum(constant - self.precision * squared - spread)
        return log_density, self._statistics(x, dx, dt, weight, grams, outer)

    def _statistics(self, x, dx, dt, weight, grams, outer) -> Statistics:
        centred = dx - dt[:, None] * self.mean_function(x)
        stacked = [g.T @ (weight[:, None] * centred) for g in grams]  # each [M, D]
        if len(grams) == 1:
            shift = (self.whitener[0] @ stacked[0]).T
        else:
            shift = jnp.stack([w @ s[:, i] for i, (w, s) in enumerate(zip(self.whitener, stacked, strict=True))])
        gram = jnp.stack([w @ o @ w.T for w, o in zip(self.whitener, outer, strict=True)])
        return Statistics(
            count=jnp.sum(weight),
            squares=(weight / dt) @ centred**2,
            shift=self.amplitude[:, None] * shift,
            gram=self.amplitude[:, None, None] ** 2 * gram,
        )

    def _drifts(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "N D"], list[Float[Array, "N M"]]]:
        grams = [k.gram(x, self.Z) for k in self.kernels]
        if len(grams) == 1:
            f = grams[0] @ self.w.T
        else:
            f = jnp.stack([g @ w for g, w in zip(grams, self.w, strict=True)], axis=-1)
        return self.mean_function(x) + f, grams
