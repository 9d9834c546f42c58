"""The abstract classes and the records they exchange; nothing concrete lives here.

Notation   x: latent state [D]      y: observation [P]      dt: step to the next sample
           potential: exp(-x'Lx/2 + h'x), precision L [D, D] and information h [D]
           link[k]: True where sample k+1 follows sample k in the same series (False in padding)
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, PRNGKeyArray, Scalar


class Gaussian(eqx.Module):
    """N(mean, chol chol')."""

    mean: Float[Array, " D"]
    chol: Float[Array, "D D"]

    @property
    def cov(self) -> Float[Array, "D D"]:
        return self.chol @ self.chol.T


class Marginals(eqx.Module):
    """Gaussian marginals of a chain, one a time step."""

    mean: Float[Array, "T D"]
    cov: Float[Array, "T D D"]


class Potentials(eqx.Module):
    """One Gaussian factor a time step in canonical form; they multiply by adding."""

    precision: Float[Array, "T D D"]
    information: Float[Array, "T D"]

    def __mul__(self, other: "Potentials") -> "Potentials":
        return Potentials(self.precision + other.precision, self.information + other.information)

    def masked(self, keep: Bool[Array, " T"]) -> "Potentials":
        """Say nothing at the steps where ``keep`` is False."""
        return Potentials(
            jnp.where(keep[:, None, None], self.precision, 0.0),
            jnp.where(keep[:, None], self.information, 0.0),
        )

    def log_value(self, x: Float[Array, "T D"]) -> Scalar:
        """Sum of the logarithms of the factors along a path."""
        quad = jnp.einsum("ti,tij,tj->", x, self.precision, x)
        return -0.5 * quad + jnp.sum(self.information * x)


class AffineStep(eqx.Module):
    """x' = F x + b + N(0, Omega): a transition, linearised in one way or another."""

    F: Float[Array, "D D"]
    b: Float[Array, " D"]
    Omega: Float[Array, "D D"]


Pusher = Callable[[Float[Array, " D"], Float[Array, "D D"], Scalar], AffineStep]


class PathSamples(eqx.Module):
    """Paths drawn from a chain and the log-density of each under that chain."""

    x: Float[Array, "S T D"]
    log_q: Float[Array, " S"]


class Encoding(eqx.Module):
    """What the encoder says of every state: mean, diagonal precision, and where it has enough data to speak."""

    mean: Float[Array, "T D"]
    potentials: Potentials
    known: Bool[Array, " T"]


class AbstractKernel(eqx.Module):
    """A covariance function, written for one pair of points."""

    @abstractmethod
    def __call__(self, x: Float[Array, " D"], z: Float[Array, " D"]) -> Scalar: ...

    @abstractmethod
    def gram(self, x: Float[Array, "N D"], z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        """All pairs; must agree with ``__call__``."""

    @abstractmethod
    def diagonal(self, x: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) at every point."""


class AbstractTransition(eqx.Module):
    """One step of the latent process with what is known of its drift and diffusion. The narrow waist of the
    library: smoothers see dynamics only through this."""

    @abstractmethod
    def mean(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        """E[x'] from x, with the mean drift."""

    @abstractmethod
    def variance(self, x: Float[Array, " D"], dt: Scalar) -> Float[Array, " D"]:
        """Variance of x' from x, coordinate by coordinate (the harmonic mean over the precision's posterior)."""

    @property
    def constant_noise(self) -> bool:
        """Whether ``variance`` is the same from every x."""
        return True

    @abstractmethod
    def linearise(self, x: Float[Array, " D"], dt: Scalar) -> AffineStep:
        """First-order expansion of the step at x."""

    @abstractmethod
    def expected_log_density(self, x: Float[Array, " D"], x_next: Float[Array, " D"], dt: Scalar) -> Scalar:
        """E[log p(x' | x)] over the posterior of drift and precision."""

    @abstractmethod
    def pusher(self) -> Pusher:
        """A function that gives, for x ~ N(mean, cov), the affine step with the exact mean, covariance and
        cross-covariance of (x, x'). Called once a pass, so that it can prepare what does not depend on the Gaussian.

        Raises CapabilityError where no closed form exists."""


class AbstractChain(eqx.Module):
    """A distribution over paths that can be drawn from exactly."""

    @abstractmethod
    def sample(self, n: int, *, key: PRNGKeyArray) -> PathSamples: ...

    @abstractmethod
    def entropy(self) -> Scalar: ...

    @abstractmethod
    def marginals(self) -> Marginals: ...

    @abstractmethod
    def last(self) -> Gaussian:
        """The filtered state at the last step."""

    @abstractmethod
    def log_normaliser(self) -> Scalar:
        """log of the integral of initial x transitions x potentials (the log-likelihood, for likelihood potentials)."""


class AbstractSmoother(eqx.Module):
    """Turns a transition, an initial Gaussian and potentials into a chain."""

    @abstractmethod
    def __call__(
        self,
        transition: AbstractTransition,
        initial: Gaussian,
        potentials: Potentials,
        dt: Float[Array, " T-1"],
        *,
        points: Float[Array, "T D"],
        link: Bool[Array, " T-1"] | None = None,
        key: PRNGKeyArray,
    ) -> AbstractChain:
        """``points`` is a first guess of the path (the encoder means); ``key`` is only used by sampling smoothers."""


class AbstractEncoder(eqx.Module):
    """Maps one standardised series to Gaussian potentials on its states.

    The first ``lead`` samples are context only: T + lead samples give T states."""

    lead: eqx.AbstractVar[int]

    @abstractmethod
    def turned(self, T: Float[Array, "D D"]) -> "AbstractEncoder":
        """The same encoder in latent coordinates x' = T x."""

    @abstractmethod
    def __call__(self, y: Float[Array, "L P"], mask: Bool[Array, "L P"], dt: Float[Array, " L-1"]) -> Encoding: ...


class AbstractEmission(eqx.Module):
    """p(y | x)."""

    @abstractmethod
    def potentials(self, y: Float[Array, "T P"], mask: Bool[Array, "T P"]) -> Potentials:
        """The likelihood as potentials on x, exactly (or its Gaussian approximation)."""

    @abstractmethod
    def log_density(self, y: Float[Array, "T P"], mask: Bool[Array, "T P"], x: Float[Array, "T D"]) -> Scalar: ...

    @abstractmethod
    def updated(
        self, y: Float[Array, "B T P"], mask: Bool[Array, "B T P"], x: Float[Array, "B S T D"], rate: Scalar
    ) -> "AbstractEmission":
        """Refit to S sampled paths a series, as a running average of this rate."""

    @abstractmethod
    def turned(self, T: Float[Array, "D D"]) -> "AbstractEmission":
        """The same emission in latent coordinates x' = T x."""

    @abstractmethod
    def mean(self, x: Float[Array, "*K D"]) -> Float[Array, "*K P"]: ...

    @abstractmethod
    def sample(self, x: Float[Array, "*K D"], *, key: PRNGKeyArray) -> Float[Array, "*K P"]: ...
