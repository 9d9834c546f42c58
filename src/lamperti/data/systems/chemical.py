"""A chemical clock in a small volume: noise that depends on the state, and a long-run law."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, root_of_rates, simulate


def brusselator(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.2,
    *,
    a: float = 1.0,
    b: float = 3.0,
    volume: float = 1000.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """The chemical Langevin equation of Prigogine and Lefever's brusselator; the concentration x1 is observed.

    Four reactions, each with a noise of the root of its rate over ``volume``: supply (rate a), turning of x1 into x2
    (b x1), turning back (x1² x2) and decay of x1 (x1). The state of rest is (a, b/a); for b > 1 + a² it is unstable and
    the concentrations cycle. They are reflected at 0, which the default cycle does not come near.
    """

    def rates(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return b * x[:, 0], x[:, 0] ** 2 * x[:, 1]

    def drift(x: np.ndarray) -> np.ndarray:
        there, back = rates(x)
        return np.stack([a - x[:, 0] - there + back, there - back], axis=1)

    def diffusion(x: np.ndarray) -> np.ndarray:
        there, back = rates(x)
        turned, passed = there + back, a + x[:, 0]
        return root_of_rates(passed + turned, -turned, turned, passed * turned) / np.sqrt(volume)

    system = System(
        name="brusselator",
        dimension=2,
        drift=drift,
        diffusion=diffusion,
        initial=lambda n, rng: np.array([a, b / a]) * rng.uniform(0.5, 1.5, size=(n, 2)),
        parameters={"a": a, "b": b, "volume": volume},
        max_step=0.005,
        burn_in=60.0,
        project=np.abs,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
