"""Systems with a known law, and recordings simulated from them.

Notation   dx = drift(x) dt + diffusion(x) dW;   x: states of K paths [K, D]
           diffusion: noise gains [K, D] (one for each coordinate) or [K, D, D] (a matrix)
           dt: time between samples   h = dt / substeps: the fine Euler-Maruyama step

A linear system with constant gains is stepped exactly: x' = F x + N(0, Q), F = expm(A dt), Q by Van Loan's
block exponential. All others take Euler-Maruyama steps no longer than dt/20 and than their own ``max_step``; those
that ask for it take the drift at the midpoint, x' = x + h drift(x + h/2 drift(x)) + noise, which keeps turns of little
noise from growing by themselves (Euler's grow at a rate of h frequency²/2).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import expm

from lamperti._errors import CapabilityError, ConfigError
from lamperti._numbers import as_seed, as_whole
from lamperti._typing import Float
from lamperti.data.series import Series

_MIN_SUBSTEPS = 20

States = Float[np.ndarray, "K D"]
Stepper = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def first_coordinate(x: Float[np.ndarray, "*K D"]) -> Float[np.ndarray, "*K 1"]:
    return x[..., :1]


@dataclass(frozen=True, eq=False)
class FineSteps:
    """``n`` times x' = settle(mean(x) + root gain(x) z), z standard normal: the law of one sample interval."""

    n: int
    root: float
    """Square root of the length of a fine step, where the gains are a rate."""
    mean: Callable[[np.ndarray], np.ndarray]
    gain: Callable[[np.ndarray], np.ndarray]
    project: Callable[[np.ndarray], np.ndarray] | None = None

    def kick(self, gain: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """What the noise adds [K, D]."""
        return self.root * (gain * noise if gain.ndim == noise.ndim else np.einsum("kij,kj->ki", gain, noise))

    def felt(self, gain: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """How much each noise moves the state along a direction [K, D]: the transpose of ``kick``."""
        turned = gain * direction if gain.ndim == direction.ndim else np.einsum("kij,ki->kj", gain, direction)
        return self.root * turned

    def settle(self, x: np.ndarray) -> np.ndarray:
        """Reflection or absorption at a boundary, if there is one; may write to x."""
        return x if self.project is None else self.project(x)


@dataclass(frozen=True, eq=False)
class System:
    """A stochastic differential equation and how it is observed: all that an oracle needs to forecast."""

    name: str
    dimension: int
    drift: Callable[[np.ndarray], np.ndarray]
    diffusion: Callable[[np.ndarray], np.ndarray]
    initial: Callable[[int, np.random.Generator], np.ndarray]
    """Draws starts [n, D]."""
    parameters: Mapping[str, float]
    max_step: float
    """The longest Euler-Maruyama step at which the simulation is to be trusted."""
    burn_in: float = 0.0
    """Time until paths are close to their stationary law; 0 where they start in it or have none."""
    project: Callable[[np.ndarray], np.ndarray] | None = None
    """Applied after each fine step: reflection or absorption at a boundary."""
    observe: Callable[[np.ndarray], np.ndarray] = first_coordinate
    midpoint: bool = False
    """Whether a fine step takes the drift half a step ahead."""
    matrix: Float[np.ndarray, "D D"] | None = field(default=None, repr=False)
    """A, where the drift is A x and the gains are constant; steps are then exact."""

    def step(self, x: States, dt: float, rng: np.random.Generator, substeps: int | None = None) -> States:
        """States a time ``dt`` later, each with its own noise."""
        return self.stepper(dt, substeps)(x, rng)

    def stepper(self, dt: float, substeps: int | None = None) -> Stepper:
        """The map (x, rng) -> states a time ``dt`` later, prepared once for many calls."""
        fine = self.fine_steps(dt, substeps)

        def advance(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            for _ in range(fine.n):
                x = fine.settle(fine.mean(x) + fine.kick(fine.gain(x), rng.standard_normal(x.shape)))
            return x

        return advance

    def fine_steps(self, dt: float, substeps: int | None = None) -> "FineSteps":
        """The Gaussian steps that make up a time ``dt``: one exact step of a linear system, else Euler-Maruyama."""
        if not dt > 0:
            raise ConfigError(f"dt must be positive; got {dt}.")
        if self.matrix is not None:
            F, Q = self.transition_matrix(dt), self.process_covariance(dt)
            eigenvalues, vectors = np.linalg.eigh(Q)  # not Cholesky: Q is zero without noise
            root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
            return FineSteps(1, 1.0, lambda x: x @ F.T, lambda x: np.broadcast_to(root, (len(x), *root.shape)))
        n = max(_MIN_SUBSTEPS, math.ceil(dt / self.max_step - 1e-9)) if substeps is None else substeps
        if n < 1:
            raise ConfigError(f"substeps must be at least 1; got {n}.")
        h, drift = dt / n, self.drift

        def mean(x: np.ndarray) -> np.ndarray:
            return x + h * drift(x + 0.5 * h * drift(x) if self.midpoint else x)

        return FineSteps(n, math.sqrt(h), mean, self.diffusion, self.project)

    def transition_matrix(self, dt: float) -> Float[np.ndarray, "D D"]:
        """F of x' = F x + N(0, Q) for a linear system."""
        return expm(self._matrix() * dt)

    def process_covariance(self, dt: float) -> Float[np.ndarray, "D D"]:
        """Q of x' = F x + N(0, Q) for a linear system."""
        A, d = self._matrix(), self.dimension
        gain = self.diffusion(np.zeros((1, d)))[0]
        gain = np.diag(gain) if gain.ndim == 1 else gain
        blocks = expm(np.block([[-A, gain @ gain.T], [np.zeros((d, d)), A.T]]) * dt)
        Q = blocks[d:, d:].T @ blocks[:d, d:]
        return 0.5 * (Q + Q.T)

    def _matrix(self) -> Float[np.ndarray, "D D"]:
        if self.matrix is None:
            raise CapabilityError(f"{self.name} is not linear, so its transition has no matrix. Use step() instead.")
        return self.matrix


@dataclass(frozen=True, eq=False)
class Simulated:
    """Recordings of a system with their truth."""

    series: list[Series]
    """What was observed, noise included."""
    states: Float[np.ndarray, "R T D"]
    clean: Float[np.ndarray, "R T P"]
    """The observable without observation noise."""
    noise_sd: Float[np.ndarray, " P"]
    """Standard deviation of the observation noise."""
    system: System


def simulate(
    system: System,
    n_series: int,
    n_samples: int,
    dt: float,
    *,
    observation_noise: float,
    seed: int,
    substeps: int | None = None,
    start_time: float = 0.0,
) -> Simulated:
    """Independent recordings; ``observation_noise`` is a fraction of the sd of the observable over all.

    The states do not depend on the observation noise: both have a random stream of their own.
    """
    n_series, n_samples = as_whole("n_series", n_series), as_whole("n_samples", n_samples)
    if n_series < 1 or n_samples < 2 or observation_noise < 0:
        raise ConfigError(
            "a simulation needs n_series >= 1, n_samples >= 2 and observation_noise >= 0; got "
            f"{n_series}, {n_samples} and {observation_noise}."
        )
    path_rng, noise_rng = np.random.default_rng(as_seed(seed)).spawn(2)
    x = system.initial(n_series, path_rng)
    advance = system.stepper(dt, substeps)
    for _ in range(math.ceil(system.burn_in / dt)):
        x = advance(x, path_rng)
    states = np.empty((n_series, n_samples, system.dimension))
    states[:, 0] = x
    for k in range(1, n_samples):
        states[:, k] = advance(states[:, k - 1], path_rng)
    clean = system.observe(states)
    noise_sd = observation_noise * clean.std(axis=(0, 1))
    observed = clean + noise_sd * noise_rng.standard_normal(clean.shape)
    times = start_time + np.arange(n_samples) * dt
    return Simulated([Series(y, times=times) for y in observed], states, clean, noise_sd, system)


def constant_gains(*gains: float) -> Callable[[np.ndarray], np.ndarray]:
    """Diagonal diffusion that does not depend on the state."""
    row = np.array(gains)
    return lambda x: np.broadcast_to(row, x.shape)


def root_of_rates(
    first: Float[np.ndarray, " K"],
    shared: Float[np.ndarray, " K"],
    second: Float[np.ndarray, " K"],
    determinant: Float[np.ndarray, " K"],
) -> Float[np.ndarray, "K 2 2"]:
    """Square root of covariances [[first, shared], [shared, second]], whose determinant is given without cancellation.

    It is (C + s I)/t with s² = det C and t² = trace C + 2 s.
    """
    s = np.sqrt(determinant)
    t = np.sqrt(first + second + 2.0 * s)
    root = np.empty((len(first), 2, 2))
    root[:, 0, 0], root[:, 1, 1] = first + s, second + s
    root[:, 0, 1] = root[:, 1, 0] = shared
    return root / np.where(t > 0.0, t, 1.0)[:, None, None]  # without rates C = 0, and so is its root
