"""Lorenz and Rössler with additive noise: chaos seen through one coordinate."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate


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

    def drift(x: np.ndarray) -> np.ndarray:
        x1, x2, x3 = x.T
        return np.stack([sigma * (x2 - x1), x1 * (rho - x3) - x2, x1 * x2 - beta * x3], axis=1)

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        # As wide as the attractor, so that the burn-in need not carry paths from one lobe to the other.
        return rng.normal([0.0, 0.0, 24.0], [8.0, 9.0, 8.0], size=(n, 3))

    system = System(
        name="lorenz",
        dimension=3,
        drift=drift,
        diffusion=constant_gains(noise, noise, noise),
        initial=initial,
        parameters={"sigma": sigma, "rho": rho, "beta": beta, "noise": noise},
        max_step=1e-3,
        burn_in=10.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


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
