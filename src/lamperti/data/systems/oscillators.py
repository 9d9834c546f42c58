"""Nonlinear oscillators kicked in one coordinate and observed in the other, or in the kicked one."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate


def double_well(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.2,
    *,
    gamma: float = 0.5,
    noise: float = 0.5,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """A particle with inertia in the potential x⁴/4 - x²/2; its place is observed.

    dx = v dt, dv = (x - x³ - gamma v) dt + noise dW. The stationary density is proportional to
    exp(-(v²/2 + x⁴/4 - x²/2)/temperature) with temperature noise²/(2 gamma); paths start in it.
    """
    temperature = noise**2 / (2.0 * gamma)

    def drift(x: np.ndarray) -> np.ndarray:
        place, speed = x.T
        return np.stack([speed, place - place**3 - gamma * speed], axis=1)

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        grid = np.linspace(-4.0, 4.0, 4001) * max(1.0, temperature**0.25)
        cumulative = np.cumsum(np.exp(-(grid**4 / 4.0 - grid**2 / 2.0 + 0.25) / temperature))
        place = np.interp(rng.uniform(size=n), cumulative / cumulative[-1], grid)
        return np.stack([place, rng.normal(0.0, np.sqrt(temperature), n)], axis=1)

    system = System(
        name="double_well",
        dimension=2,
        drift=drift,
        diffusion=constant_gains(0.0, noise),
        initial=initial,
        parameters={"gamma": gamma, "noise": noise},
        max_step=0.01,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def van_der_pol(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.2,
    *,
    mu: float = 2.0,
    noise: float = 0.5,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Van der Pol's relaxation oscillator with a noisy force; its place, a smooth path, is observed.

    dx = v dt, dv = (mu (1 - x²) v - x) dt + noise dW. The default cycle takes about 7.6.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        place, speed = x.T
        return np.stack([speed, mu * (1.0 - place**2) * speed - place], axis=1)

    system = System(
        name="van_der_pol",
        dimension=2,
        drift=drift,
        diffusion=constant_gains(0.0, noise),
        initial=lambda n, rng: rng.normal(0.0, 1.5, size=(n, 2)),
        parameters={"mu": mu, "noise": noise},
        max_step=0.005,
        # Starts settle on the cycle within a turn or two; the rest is for noise to spread their phases.
        burn_in=60.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def fitzhugh_nagumo(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 1.0,
    *,
    current: float = 0.4,
    a: float = 0.7,
    b: float = 0.8,
    epsilon: float = 0.08,
    noise: float = 0.1,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """FitzHugh and Nagumo's neuron under a constant current; its potential v is observed.

    dv = (v - v³/3 - w + current) dt + noise dW, dw = epsilon (v + a - b w) dt. The default current is just
    beyond the onset of spiking (about 0.33): a spike every 40 or so, made irregular by the noise on v.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        v, w = x.T
        return np.stack([v - v**3 / 3.0 - w + current, epsilon * (v + a - b * w)], axis=1)

    system = System(
        name="fitzhugh_nagumo",
        dimension=2,
        drift=drift,
        diffusion=constant_gains(noise, 0.0),
        initial=lambda n, rng: rng.uniform([-2.0, -0.5], [2.0, 1.5], size=(n, 2)),
        parameters={"current": current, "a": a, "b": b, "epsilon": epsilon, "noise": noise},
        max_step=0.05,
        burn_in=300.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
