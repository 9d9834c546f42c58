"""What the public functions give back, in the user's units of value and time."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Float
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.scaling import Scaler
from lamperti.forecasting import diffusion_moments, drift_moments
from lamperti.model import LatentSDE
from lamperti.train.history import History


@dataclass(frozen=True, eq=False)
class Config:
    """The configuration in force, with what was chosen from the data filled in."""

    model: ModelConfig
    fit: FitConfig


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model with everything needed to use it."""

    model: LatentSDE
    history: History
    config: Config
    scaler: Scaler
    names: tuple[str, ...]
    states: Float[np.ndarray, "K D"]  # a sample of the states that the training data went through
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""
    repairs: tuple[str, ...] = ()  # what was done to the training data on request, a sentence each

    def drift(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the drift dx/dt at latent points x [..., D], per unit of the user's time."""
        points = self._points(x)
        mean, sd = (np.asarray(a) for a in drift_moments(self.model, jnp.asarray(points.reshape(-1, points.shape[-1]))))
        unit = self.scaler.time_unit
        return mean.reshape(points.shape) / unit, sd.reshape(points.shape) / unit

    def diffusion(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the diffusion g (variance of the increments per unit of the user's time) at x [..., D]."""
        points = self._points(x)
        mean, sd = (np.asarray(a) / self.scaler.time_unit for a in diffusion_moments(self.model))
        return np.broadcast_to(mean, points.shape), np.broadcast_to(sd, points.shape)

    def _points(self, x) -> np.ndarray:
        points = np.asarray(x, dtype=float)
        if points.ndim == 0 or points.shape[-1] != self.model.latent_dim:
            raise SeriesError(
                f"x must have {self.model.latent_dim} latent coordinates along its last axis; got shape {points.shape}."
            )
        return points


@dataclass(frozen=True, eq=False)
class Embedding:
    """Posterior of the state at every sample of a series."""

    mean: Float[np.ndarray, "T D"]
    cov: Float[np.ndarray, "T D D"]
    times: Float[np.ndarray, " T"]


@dataclass(frozen=True, eq=False)
class Forecast:
    """Sampled futures of a series."""

    samples: Float[np.ndarray, "S H P"]
    states: Float[np.ndarray, "S H D"]
    times: Float[np.ndarray, " H"]
    names: tuple[str, ...]
    least_ess: float  # smallest share of effective particles in the filter over the context

    @property
    def mean(self) -> Float[np.ndarray, "H P"]:
        return self.samples.mean(axis=0)

    @property
    def sd(self) -> Float[np.ndarray, "H P"]:
        return self.samples.std(axis=0, ddof=1)

    def quantile(self, q) -> np.ndarray:
        """Quantiles over the samples, [H, P] (or [len(q), H, P])."""
        return np.quantile(self.samples, q, axis=0)

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Central interval: lower and upper ends, [H, P] each."""
        if not 0.0 < level < 1.0:
            raise ConfigError(f"level must lie between 0 and 1; got {level!r}.")
        lower, upper = self.quantile([0.5 - level / 2, 0.5 + level / 2])
        return lower, upper


@dataclass(frozen=True, eq=False)
class Simulation:
    """Free-running paths of the learned equation."""

    samples: Float[np.ndarray, "n T P"]
    states: Float[np.ndarray, "n T D"]
    times: Float[np.ndarray, " T"]
    names: tuple[str, ...]
