"""Predators and prey in small numbers: noise that depends on the state."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, root_of_rates, simulate


def lotka_volterra(
    n_series: int = 1,
    n_samples: int = 600,
    dt: float = 0.001,
    *,
    alpha: float = 30.0,
    beta: float = 0.2,
    gamma: float = 18.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """The diffusion approximation of Lotka and Volterra's predators and prey; the prey x1 is observed.

    dx = (alpha x1 - beta x1 x2, beta x1 x2 - gamma x2) dt + C(x)^(1/2) dW, where C has the sums of the rates
    on its diagonal and -beta x1 x2 off it. There is no stationary law: a species that reaches 0 stays there, as
    the noise vanishes with it; hardly any path within 0.6, most of them within 5. Score finite horizons only.
    Paths start anywhere within a third of the equilibrium (gamma/beta, alpha/beta).
    """

    def drift(x: np.ndarray) -> np.ndarray:
        born, eaten, died = alpha * x[:, 0], beta * x[:, 0] * x[:, 1], gamma * x[:, 1]
        return np.stack([born - eaten, eaten - died], axis=1)

    def diffusion(x: np.ndarray) -> np.ndarray:
        born, eaten, died = alpha * x[:, 0], beta * x[:, 0] * x[:, 1], gamma * x[:, 1]
        return root_of_rates(born + eaten, -eaten, eaten + died, born * eaten + born * died + eaten * died)

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        return np.array([gamma, alpha]) / beta * rng.uniform(2.0 / 3.0, 4.0 / 3.0, size=(n, 2))

    system = System(
        name="lotka_volterra",
        dimension=2,
        drift=drift,
        diffusion=diffusion,
        initial=initial,
        parameters={"alpha": alpha, "beta": beta, "gamma": gamma},
        max_step=1e-4,
        project=lambda x: np.maximum(x, 0.0),
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
