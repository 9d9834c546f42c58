"""Cells seen through their membrane potential, and driven by a current that wanders: it is the only noise, so that the
potential is smooth. One fires single spikes, the other bursts.

Units: millivolt, millisecond, and for each square centimetre of membrane microampere, millisiemens and microfarad.
"""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate


def morris_lecar(
    n_series: int = 1,
    n_samples: int = 20_000,
    dt: float = 1.0,
    *,
    current: float = 80.0,
    noise: float = 12.0,
    noise_time: float = 10.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Morris and Lecar's excitable fibre, made to spike now and then by a noisy current; its potential v is observed.

    20 dv = (current + i - 4.4 m(v) (v - 120) - 8 w (v + 84) - 2 (v + 60)) dt, dw = 0.04 (s(v) - w) cosh((v - 2)/60) dt,
    m(v) = (1 + tanh((v + 1.2)/18))/2, s(v) = (1 + tanh((v - 2)/30))/2. The current i is an Ornstein-Uhlenbeck process
    of sd ``noise`` that forgets in ``noise_time``. Without it the fibre rests for currents below 88 (at v = -60.9 for
    none) and fires regularly from 98 on, so the default fires only when the noise tells it to.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        v, w, i = x.T
        m, s = 0.5 * (1.0 + np.tanh((v + 1.2) / 18.0)), 0.5 * (1.0 + np.tanh((v - 2.0) / 30.0))
        flow = current + i - 4.4 * m * (v - 120.0) - 8.0 * w * (v + 84.0) - 2.0 * (v + 60.0)
        return np.stack([flow / 20.0, 0.04 * (s - w) * np.cosh((v - 2.0) / 60.0), -i / noise_time], axis=1)

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.normal([-35.0, 0.1, 0.0], [5.0, 0.02, noise + 1e-6], size=(n, 3))

    system = System(
        name="morris_lecar",
        dimension=3,
        drift=drift,
        diffusion=constant_gains(0.0, 0.0, noise * np.sqrt(2.0 / noise_time)),
        initial=initial,
        parameters={"current": current, "noise": noise, "noise_time": noise_time},
        max_step=0.05,
        midpoint=True,
        # a few spikes
        burn_in=500.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def beta_cell(
    n_series: int = 1,
    n_samples: int = 20_000,
    dt: float = 10.0,
    *,
    slow_time: float = 10_000.0,
    noise: float = 0.2,
    noise_time: float = 100.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """A pancreatic cell in the manner of Sherman, Rinzel and Keizer, firing in bursts; its potential v is observed.

    20 dv = (i - 3.6 m(v) (v - 25) - (10 n + 4 s) (v + 75)) dt, 20 dn = (a(v) - n) dt, slow_time ds = (b(v) - s) dt,
    where m, a and b(v) = 1/(1 + exp((middle - v)/width)) have the middles -20, -17, -35 and the widths 12, 5.6, 10. The
    slow s opens while the cell fires and ends the burst; it closes while the cell is silent: with the defaults about 2
    seconds each. The current i is an Ornstein-Uhlenbeck process of sd ``noise`` that forgets in ``noise_time``.
    """

    def opened(v: np.ndarray, middle: float, width: float) -> np.ndarray:
        return 1.0 / (1.0 + np.exp((middle - v) / width))

    def drift(x: np.ndarray) -> np.ndarray:
        v, n, s, i = x.T
        flow = i - 3.6 * opened(v, -20.0, 12.0) * (v - 25.0) - (10.0 * n + 4.0 * s) * (v + 75.0)
        gates = (opened(v, -17.0, 5.6) - n) / 20.0, (opened(v, -35.0, 10.0) - s) / slow_time
        return np.stack([flow / 20.0, *gates, -i / noise_time], axis=1)

    system = System(
        name="beta_cell",
        dimension=4,
        drift=drift,
        diffusion=constant_gains(0.0, 0.0, 0.0, noise * np.sqrt(2.0 / noise_time)),
        initial=lambda n, rng: rng.uniform([-60.0, 0.0, 0.1, -noise], [-20.0, 0.05, 0.3, noise], size=(n, 4)),
        parameters={"slow_time": slow_time, "noise": noise, "noise_time": noise_time},
        max_step=0.5,
        midpoint=True,
        # two bursts or so, for noise to spread their phases
        burn_in=3.0 * slow_time,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
