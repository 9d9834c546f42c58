"""Linear systems, simulated exactly: the damped noisy rotation and the slowly growing oscillation."""

import numpy as np

from lamperti.data.systems._simulate import Simulated, System, constant_gains, simulate


def ornstein_uhlenbeck(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.1,
    *,
    decay: float = 0.3,
    frequency: float = 3.0,
    noise: float = 0.6**0.5,
    observation_noise: float = 0.0,
    seed: int = 0,
) -> Simulated:
    """A rotation in the plane, damped and kicked; x1 is observed.

    dx = A x dt + noise dW, where A has the eigenvalues -decay ± i frequency (in radians a time unit). The
    stationary law is N(0, noise²/(2 decay) I): unit variance with the default noise. Paths start in it;
    ``system.transition_matrix`` and ``system.process_covariance`` give the exact step, for a Kalman filter.
    """
    matrix = np.array([[-decay, -frequency], [frequency, -decay]])
    system = System(
        name="ornstein_uhlenbeck",
        dimension=2,
        drift=lambda x: x @ matrix.T,
        diffusion=constant_gains(noise, noise),
        initial=lambda n, rng: rng.normal(0.0, noise / np.sqrt(2.0 * decay), size=(n, 2)),
        parameters={"decay": decay, "frequency": frequency, "noise": noise},
        max_step=np.inf,
        matrix=matrix,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed)


def excited_oscillator(
    n_series: int = 1,
    n_samples: int = 500,
    dt: float = 1.0,
    *,
    growth: float = 0.002,
    period: float = 100.0,
    observation_noise: float = 0.0,
    seed: int = 0,
) -> Simulated:
    """An oscillation that grows slowly, without process noise: only the phase is random.

    y_t = sqrt(2) exp(growth t) cos(2 pi t / period + phase) at t = dt, 2 dt, ...; the state is this and the
    same with the sine, which is linear: x' = exp(growth dt) R(2 pi dt / period) x.
    """
    omega = 2.0 * np.pi / period
    matrix = np.array([[growth, -omega], [omega, growth]])

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        angle = omega * dt + rng.uniform(0.0, 2.0 * np.pi, n)
        return np.sqrt(2.0) * np.exp(growth * dt) * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    system = System(
        name="excited_oscillator",
        dimension=2,
        drift=lambda x: x @ matrix.T,
        diffusion=constant_gains(0.0, 0.0),
        initial=initial,
        parameters={"growth": growth, "period": period},
        max_step=np.inf,
        matrix=matrix,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, start_time=dt)
