"""An electrocardiogram with a heart rate that wanders."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate

# Waves P, Q, R, S, T of McSharry et al., Table 1: angle, height, width
_WAVES = np.array(
    [
        [-np.pi / 3.0, 1.2, 0.25],
        [-np.pi / 12.0, -5.0, 0.1],
        [0.0, 30.0, 0.1],
        [np.pi / 12.0, -7.5, 0.1],
        [np.pi / 2.0, 0.75, 0.4],
    ]
)


def electrocardiogram(
    n_series: int = 1,
    n_samples: int = 20_000,
    dt: float = 0.008,
    *,
    rate: float = 1.1,
    rate_sd: float = 0.06,
    rate_time: float = 6.0,
    noise: float = 0.05,
    wander: float = 0.1,
    gain: float = 25.0,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """McSharry et al.'s electrocardiogram (IEEE Trans. Biomed. Eng. 50, 2003) at 125 Hz; the potential z, in mV.

    The point (p, q) runs round the unit circle: dp = ((1 - r) p - w q) dt + noise dW, dq = ((1 - r) q + w p) dt + noise
    dW, r its radius and w = 2 pi rate (1 + u), so that there are ``rate`` beats a second on average. Where its angle
    passes those of the waves P, Q, R, S, T it draws them: dz = (b - z - gain sum a_i d_i exp(-d_i²/(2 b_i²))) dt, d_i
    the angle from wave i, a_i and b_i as printed. The heart rate (by u, of sd ``rate_sd``) and the base line b (of sd
    ``wander``, in mV) are Ornstein-Uhlenbeck processes that forget in ``rate_time`` seconds. Noise does not act on z:
    its path is smooth.
    """
    angles, heights, widths = _WAVES.T

    def drift(x: np.ndarray) -> np.ndarray:
        z, p, q, u, base = x.T
        pull, turn = 1.0 - np.hypot(p, q), 2.0 * np.pi * rate * (1.0 + u)
        away = np.arctan2(q, p)[:, None] - angles
        away -= 2.0 * np.pi * np.round(away / (2.0 * np.pi))  # to the nearest turn
        waves = (away * np.exp(-0.5 * (away / widths) ** 2)) @ heights
        return np.stack(
            [base - z - gain * waves, pull * p - turn * q, pull * q + turn * p, -u / rate_time, -base / rate_time],
            axis=1,
        )

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        slow = rng.standard_normal((n, 2)) * [rate_sd, wander]
        return np.column_stack([np.zeros(n), np.cos(angle), np.sin(angle), slow])

    kick = np.sqrt(2.0 / rate_time)
    system = System(
        name="electrocardiogram",
        dimension=5,
        drift=drift,
        diffusion=constant_gains(0.0, noise, noise, rate_sd * kick, wander * kick),
        initial=initial,
        parameters={
            "rate": rate,
            "rate_sd": rate_sd,
            "rate_time": rate_time,
            "noise": noise,
            "wander": wander,
            "gain": gain,
        },
        max_step=5e-4,
        midpoint=True,
        # z forgets its start within a second
        burn_in=8.0,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
