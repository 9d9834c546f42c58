"""A transition whose smoothing problem has an exact answer.

Notation   x' = x + dt (weight x + bias) + N(0, dt diag(diffusion))
"""

from typing import final

import jax.numpy as jnp

from lamperti._typing import Array, Float, Scalar
from lamperti.interfaces import AbstractTransition, AffineStep, Pusher
from lamperti.math.gaussian import LOG_2PI


@final
class LinearTransition(AbstractTransition):
    """Euler-Maruyama step of a linear stochastic differential equation that is known exactly."""

    weight: Float[Array, "D D"]
    bias: Float[Array, " D"]
    diffusion: Float[Array, " D"]

    def mean(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        return x + dt * (self.weight @ x + self.bias)

    def variance(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        return dt * self.diffusion

    def linearise(self, x: Float[Array, " D"], dt: Scalar) -> AffineStep:
        return self._step(dt)

    def expected_log_density(self, x: Float[Array, " D"], x_next: Float[Array, " D"], dt: Scalar) -> Scalar:
        variance = self.variance(x, dt)
        return -0.5 * jnp.sum((x_next - self.mean(x, dt)) ** 2 / variance + jnp.log(variance) + LOG_2PI)

    def pusher(self) -> Pusher:
        def push(mean: Float[Array, " D"], cov: Float[Array, "D D"], dt: Scalar) -> AffineStep:
            return self._step(dt)

        return push

    def _step(self, dt: Scalar) -> AffineStep:
        eye = jnp.eye(self.bias.shape[0])
        return AffineStep(eye + dt * self.weight, dt * self.bias, jnp.diag(dt * self.diffusion))
