"""Nonlinear oscillators kicked in one coordinate and observed in the other, or in the kicked one; one is driven."""

from dataclasses import replace

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
    system = _wells("double_well", gamma, noise)
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def saturated_double_well(
    n_series: int = 1,
    n_samples: int = 20_000,
    dt: float = 0.1,
    *,
    gamma: float = 0.5,
    noise: float = 0.32,
    gain: float = 1.5,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """The particle of ``double_well``, colder and seen through a sensor that saturates: tanh(gain x) is observed.

    With the default noise (a temperature of 0.1) it stays in a well for about 70 time units. The sensor presses the
    outer side of both wells flat against its limits of -1 and 1, so that turns far out and near in look alike.
    """
    system = _wells("saturated_double_well", gamma, noise)
    system = replace(
        system, parameters={**system.parameters, "gain": gain}, observe=lambda x: np.tanh(gain * x[..., :1])
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def _wells(name: str, gamma: float, noise: float) -> System:
    temperature = noise**2 / (2.0 * gamma)

    def drift(x: np.ndarray) -> np.ndarray:
        place, speed = x.T
        return np.stack([speed, place - place**3 - gamma * speed], axis=1)

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        grid = np.linspace(-4.0, 4.0, 4001) * max(1.0, temperature**0.25)
        cumulative = np.cumsum(np.exp(-(grid**4 / 4.0 - grid**2 / 2.0 + 0.25) / temperature))
        place = np.interp(rng.uniform(size=n), cumulative / cumulative[-1], grid)
        return np.stack([place, rng.normal(0.0, np.sqrt(temperature), n)], axis=1)

    return System(
        name=name,
        dimension=2,
        drift=drift,
        diffusion=constant_gains(0.0, noise),
        initial=initial,
        parameters={"gamma": gamma, "noise": noise},
        max_step=0.01,
    )


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


def duffing(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.25,
    *,
    damping: float = 0.3,
    force: float = 0.5,
    frequency: float = 1.2,
    noise: float = 0.1,
    phase_noise: float = 0.05,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Duffing's beam, shaken by a force whose phase wanders; its place, a smooth path, is observed.

    dx = v dt, dv = (x - x³ - damping v + force p) dt + noise dW, where (p, q) runs round the unit circle with
    ``frequency`` (in radians a time unit) and a phase that diffuses by phase_noise² a time unit. With the default force
    paths change wells chaotically; without force the law of (x, v) is that of ``double_well``.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        place, speed, p, q = x.T
        push = place - place**3 - damping * speed + force * p
        return np.stack([speed, push, -frequency * q, frequency * p], axis=1)

    def to_circle(x: np.ndarray) -> np.ndarray:
        x[:, 2:] /= np.hypot(x[:, 2], x[:, 3])[:, None]
        return x

    def initial(n: int, rng: np.random.Generator) -> np.ndarray:
        angle = rng.uniform(0.0, 2.0 * np.pi, n)
        return np.column_stack([rng.normal(0.0, [1.0, 0.5], size=(n, 2)), np.cos(angle), np.sin(angle)])

    system = System(
        name="duffing",
        dimension=4,
        drift=drift,
        diffusion=constant_gains(0.0, noise, phase_noise, phase_noise),
        initial=initial,
        parameters={
            "damping": damping,
            "force": force,
            "frequency": frequency,
            "noise": noise,
            "phase_noise": phase_noise,
        },
        max_step=0.01,
        burn_in=100.0,
        project=to_circle,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)


def hindmarsh_rose(
    n_series: int = 1,
    n_samples: int = 1000,
    dt: float = 0.5,
    *,
    current: float = 2.5,
    rate: float = 0.01,
    noise: float = 0.1,
    observation_noise: float = 0.0,
    seed: int = 0,
    substeps: int | None = None,
) -> Simulated:
    """Hindmarsh and Rose's neuron, which fires in bursts; its potential x1 is observed.

    dx1 = (x2 + 3 x1² - x1³ - x3 + current) dt + noise dW, dx2 = (1 - 5 x1² - x2) dt, dx3 = rate (4 (x1 + 1.6) - x3) dt.
    The slow x3 rises while the neuron fires and ends the burst; it falls while the neuron is silent.
    """

    def drift(x: np.ndarray) -> np.ndarray:
        x1, x2, x3 = x.T
        square = x1 * x1
        return np.stack(
            [x2 + (3.0 - x1) * square - x3 + current, 1.0 - 5.0 * square - x2, rate * (4.0 * (x1 + 1.6) - x3)], axis=1
        )

    system = System(
        name="hindmarsh_rose",
        dimension=3,
        drift=drift,
        diffusion=constant_gains(noise, 0.0, 0.0),
        initial=lambda n, rng: rng.uniform([-1.5, -8.0, 1.5], [1.5, 0.0, 3.0], size=(n, 3)),
        parameters={"current": current, "rate": rate, "noise": noise},
        max_step=0.01,
        # three bursts or so, for noise to spread their phases
        burn_in=4.0 / rate,
    )
    return simulate(system, n_series, n_samples, dt, observation_noise=observation_noise, seed=seed, substeps=substeps)
