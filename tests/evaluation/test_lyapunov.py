import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation.lyapunov import exponent_of_system, largest_exponent


def test_exponent_of_a_linear_system_is_the_real_part_of_its_leading_eigenvalue():
    made = systems.ornstein_uhlenbeck(20, 2, seed=0)
    found = exponent_of_system(made.system, made.states[:, 0], 20.0, step=0.01)
    euler = np.log(np.abs(1 + 0.01 * (-0.3 + 3j))) / 0.01  # the exponent of the Euler map itself
    assert euler == pytest.approx(-0.3, abs=0.05)
    assert found.mean == pytest.approx(euler, abs=1e-3)


@pytest.mark.parametrize("step", [0.01, 0.5, 2.0])
def test_exponent_of_a_decay_learned_from_samples_is_its_rate_whatever_the_step(step):
    learned = (np.exp(-0.7 * step) - 1) / step  # the drift whose Euler step is the exact decay over a sample
    found = largest_exponent(lambda x: learned * x, lambda x: np.ones_like(x), np.array([[0.1], [2.0]]), step, 50)
    assert found.mean == pytest.approx(-0.7, rel=1e-5)


def test_exponent_of_a_slow_and_a_fast_direction_is_the_slow_one():
    found = largest_exponent(lambda x: x * [-0.5, -5.0], lambda x: np.ones_like(x), np.eye(2), 0.01, 2000, burn_in=500)
    assert found.mean == pytest.approx(np.log(1 - 0.005) / 0.01, abs=2e-3)


def test_multiplicative_noise_lowers_the_exponent_by_half_its_variance():
    # dx = a x dt + s x dW has exponent a - s^2/2
    a, s = 0.2, 1.0
    found = largest_exponent(lambda x: a * x, lambda x: s * x, np.linspace(1.0, 2.0, 400)[:, None], 0.005, 400, seed=1)
    assert abs(found.mean - (a - s**2 / 2)) < 5 * found.se
    assert found.se < 0.06


def test_lorenz_is_chaotic_with_its_known_exponent():
    made = systems.lorenz(60, 2, dt=0.01, noise=0.0, seed=2, substeps=2)
    found = exponent_of_system(made.system, made.states[:, 0], 25.0, step=4e-3)
    # an Euler step of 4e-3 shifts the exponent by some hundredths; 0.906 is that of the flow
    assert abs(found.mean - 0.906) < 5 * found.se + 0.05
    assert found.se < 0.05


def test_a_path_that_blows_up_is_infinitely_unstable():
    found = largest_exponent(lambda x: x**3, lambda x: 0 * x, np.array([[0.0], [50.0]]), 0.1, 50)
    assert found.mean == np.inf and np.isfinite(found.paths[0])


def test_what_cannot_be_measured_is_refused():
    system = systems.ornstein_uhlenbeck().system
    with pytest.raises(LampertiError, match="names no Euler step"):
        exponent_of_system(system, np.eye(2), 1.0)
    with pytest.raises(LampertiError, match="K >= 2"):
        largest_exponent(system.drift, system.diffusion, np.zeros((1, 2)), 0.1, 10)
