"""Lorenz, from its attractor or from far away, and Rössler with additive noise: chaos seen through one coordinate."""

from collections.abc import Callable

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate

_FAR = (60.0, 3.3, 30.4)  # from the state of rest backward in time, along its one stable direction


def lorenz(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.01,
    *,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8.0 / 3.0,
    noise: float = 1.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Lorenz's convection with noise of unit gain on every coordinate; x1 is observed.

    dx1 = sigma (x2 - x1) dt, dx2 = (x1 (rho - x3) - x2) dt, dx3 = (x1 x2 - beta x3) dt, each + noise dW. One
    turn about a lobe takes about 0.75, so steps of 0.01 to 0.02 show it well.
    """

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        # As wide as the attractor, so that the burn-in need not carry paths from one lobe to the other.
        return rng.normal([0.0, 0.0, 24.0], [8.0, 9.0, 8.0], size=(n, 3))

    system = System(
        name="lorenz",
        dimension=3,
        drift=_convection(sigma, rho, beta),
        diffusion=constant_gains(noise, noise, noise),
        initial=initial,
        parameters={"sigma": sigma, "rho": rho, "beta": beta, "noise": noise},
        max_step=1e-3,
        burn_in=10.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def lorenz_transient(
    n_series: int = 1,
    n_samples: int = 20_000,
    dt: float = 0.02,
    *,
    noise: float = 0.05,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Lorenz's convection from far away: it falls in, circles one lobe for long, then is chaotic; x1 is observed.

    The equations are those of ``lorenz`` with sigma = 10, rho = 28, beta = 8/3 and noise on x2 and x3 only, so that x1
    is smooth. Recordings begin about (60, 3.3, 30.4), three times further out than the attractor, close to the path
    that ends in the unstable state of rest (8.5, 8.5, 27). There turns of 0.62 grow by 6 % each; after a time of 30 to
    60 the attractor is reached.
    """
    system = System(
        name="lorenz_transient",
        dimension=3,
        drift=_convection(10.0, 28.0, 8.0 / 3.0),
        diffusion=constant_gains(0.0, noise, noise),
        initial=lambda n, rng: rng.normal(_FAR, 0.1, size=(n, 3)),
        parameters={"sigma": 10.0, "rho": 28.0, "beta": 8.0 / 3.0, "noise": noise},
        max_step=1e-3,
        midpoint=True,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def _convection(sigma: float, rho: float, beta: float) -> Callable[[np.ndarray], np.ndarray]:
    def drift(x: np.ndarray) -> np.ndarray:
        x1, x2, x3 = x.T
        return np.stack([sigma * (x2 - x1), x1 * (rho - x3) - x2, x1 * x2 - beta * x3], axis=1)

    return drift


def rossler(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.1,
    *,
    alpha: float = 0.2,
    beta: float = 0.2,
    gamma: float = 5.7,
    noise: float = 0.1,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Rössler's spiral with noise on every coordinate and x3 reflected at 0; x1 is observed.

    dx1 = -(x2 + x3) dt, dx2 = (x1 + alpha x2) dt, dx3 = (beta + x3 (x1 - gamma)) dt, each + noise dW. Without
    the reflection, noise drives x3 below 0 and some paths escape to infinity: there would be no stationary
    law. One turn takes about 6.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        x1, x2, x3 = x.T
        return np.stack([-(x2 + x3), x1 + alpha * x2, beta + x3 * (x1 - gamma)], axis=1)

    def reflect(x: np.ndarray) -> np.ndarray:
        x[:, 2] = np.abs(x[:, 2])
        return x

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        radius, angle = rng.uniform(4.0, 8.0, n), rng.uniform(0.0, 2.0 * np.pi, n)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(n, 0.05)], axis=1)

    system = System(
        name="rossler",
        dimension=3,
        drift=drift,
        diffusion=constant_gains(noise, noise, noise),
        initial=initial,
        parameters={"alpha": alpha, "beta": beta, "gamma": gamma, "noise": noise},
        max_step=5e-3,
        burn_in=60.0,
        project=reflect,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
