"""A model made by hand of which every answer is known: a linear equation, written in the user's units.

Notation   dx = (A x + b) dt + N(0, diag(g) dt)      y = C x + c + N(0, diag(r))      x_1 ~ N(m0, P0)
           step: the sampling step, at which the equation is stepped      shift, scale: of the standardised values
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import lamperti as lp
from lamperti.config import Config
from lamperti.data.scaling import Scaler
from lamperti.dynamics.initial import InitialState
from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.emissions.linear_gaussian import EmissionMoments, LinearGaussian
from lamperti.encoders import HankelSkip, WindowMLP
from lamperti.kernels import SquaredExponential
from lamperti.math.normal_gamma import NormalGamma, prior
from lamperti.model import LatentSDE
from lamperti.smoothers import SigmaPoint
from lamperti.train.history import History
from small_models import random_normal_gamma

WINDOW = 3
SURE = 1e12  # shape of a Gamma that is a point
RIDGE = 1e-6  # that the model adds to the covariance of its first state
NAMES = ("a", "b")


class Known(NamedTuple):
    """Two coordinates, two channels."""

    A: np.ndarray = np.array([[-0.9, 2.0], [-1.6, -0.5]])
    b: np.ndarray = np.array([0.6, -0.4])
    g: np.ndarray = np.array([0.8, 0.3])
    C: np.ndarray = np.array([[30.0, 6.0], [-0.2, 0.5]])
    c: np.ndarray = np.array([105.0, -2.0])
    r: np.ndarray = np.array([40.0, 0.02])
    m0: np.ndarray = np.array([0.4, -0.3])
    P0: np.ndarray = np.array([[0.9, 0.3], [0.3, 0.7]])
    step: float = 0.25
    shift: np.ndarray = np.array([100.0, -1.9])
    scale: np.ndarray = np.array([25.0, 0.4])

    def in_units(self, slope: np.ndarray, offset: np.ndarray, unit: float) -> "Known":
        """The same system in values slope y + offset and times unit t."""
        return self._replace(
            A=self.A / unit, b=self.b / unit, g=self.g / unit, step=self.step * unit,
            C=self.C * slope[:, None], c=self.c * slope + offset, r=self.r * slope**2,
            shift=self.shift * slope + offset, scale=self.scale * np.abs(slope),
        )  # fmt: skip

    @property
    def scaler(self) -> Scaler:
        return Scaler(self.shift, self.scale, self.step)

    def euler(self, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F, b and Q of one step."""
        return np.eye(2) + dt * self.A, dt * self.b, dt * np.diag(self.g)

    def model(self, *, smoother=None, told_by="emission", gp: NormalGamma | None = None) -> LatentSDE:
        """As the library's parts, in its units of value and time; the drift's Gaussian process is nothing, unless its
        posterior is given."""
        sure = prior(jnp.full(2, SURE), jnp.asarray(SURE * self.g * self.step), 3)
        emission = LinearGaussian(
            jnp.asarray(self.C / self.scale[:, None]),
            jnp.asarray((self.c - self.shift) / self.scale),
            jnp.asarray(self.r / self.scale**2),
            EmissionMoments(jnp.zeros((2, 3, 3)), jnp.zeros((2, 3)), jnp.zeros(2)),
        )
        dynamics = SparseGPDynamics(
            kernels=(SquaredExponential([0.9, 1.3], 0.8),),
            amplitude=jnp.full(2, 1e-9) if gp is None else jnp.asarray([0.4, 0.7]),
            Z=jnp.asarray([[0.5, -0.4], [-0.8, 0.2], [0.1, 0.9]]),
            mean=LinearMean(jnp.asarray(self.A * self.step), jnp.asarray(self.b * self.step)),
            diffusion=jnp.asarray(self.g * self.step),
            q=sure if gp is None else gp,
            prior=sure,
            jitter=jnp.asarray(1e-9),
            axes=jnp.eye(2),
        )
        second = self.P0 + np.outer(self.m0, self.m0) - RIDGE * np.eye(2)
        first = InitialState(jnp.asarray(self.m0), jnp.asarray(second))
        return LatentSDE(encoder(), dynamics, emission, first, smoother or SigmaPoint(), told_by)

    def result(self, model: LatentSDE | None = None, **parts) -> lp.FitResult:
        """A fitted model without a fit."""
        config = lp.ModelConfig(latent_dim=2, window=WINDOW, n_components=2, n_inducing=3)
        states = np.random.default_rng(2).normal(size=(60, 2))
        model = self.model(**parts) if model is None else model
        return lp.FitResult(model, History(), Config(config, lp.FitConfig()), self.scaler, NAMES, states)

    def simulated(self, dt: np.ndarray, seed: int = 0, missing: float = 0.0) -> lp.Series:
        """Data of it, taken at steps ``dt``."""
        rng = np.random.default_rng(seed)
        x = [self.m0 + np.linalg.cholesky(self.P0) @ rng.normal(size=2)]
        for h in dt:
            F, b, Q = self.euler(h)
            x.append(F @ x[-1] + b + np.sqrt(np.diag(Q)) * rng.normal(size=2))
        y = np.array(x) @ self.C.T + self.c + np.sqrt(self.r) * rng.normal(size=(len(x), 2))
        mask = rng.random(y.shape) >= missing
        return lp.Series(y, times=np.concatenate([[0.0], np.cumsum(dt)]), mask=mask, names=NAMES)


# The encoder's numbers, in the model's units: nothing in it is a unit matrix.
_rng = np.random.default_rng(7)
OFFSET = 0.2 * _rng.normal(size=2 * WINDOW)
PROJECTION = 0.4 * _rng.normal(size=(2, 2 * WINDOW))
WEIGHT = np.array([[0.9, -0.3], [0.2, 1.1]])
GAUGE = np.array([[1.2, 0.4], [-0.3, 0.8]])
SD = np.array([0.6, 0.45])


def encoder() -> WindowMLP:
    """A linear one: its network starts at zero."""
    skip = HankelSkip(*map(jnp.asarray, (OFFSET, PROJECTION, WEIGHT, GAUGE)), window=WINDOW)
    made = WindowMLP(skip, width=4, depth=1, key=jax.random.key(0))
    return eqx.tree_at(lambda e: e.log_sd, made, jnp.log(jnp.asarray(SD)))


def encoded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What it says of the last of WINDOW standardised samples [WINDOW, 2]: mean and covariance of the state."""
    mean = GAUGE @ WEIGHT @ PROJECTION @ (y.ravel() - OFFSET)
    return mean, GAUGE @ np.diag(SD**2) @ GAUGE.T


def product(m: np.ndarray, P: np.ndarray, other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians multiplied."""
    inverse, theirs = np.linalg.inv(P), np.linalg.inv(other[1])
    cov = np.linalg.inv(inverse + theirs)
    return cov @ (inverse @ m + theirs @ other[0]), cov


def unsure_drift(seed: int = 3) -> NormalGamma:
    """Any posterior of a drift with three inducing inputs."""
    return random_normal_gamma(seed, 2, 3)
