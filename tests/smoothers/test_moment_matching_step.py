"""The closed-form push of a Gaussian through a GP step, against quadrature and simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamperti._errors import CapabilityError
from lamperti.kernels import Linear, Matern32, SquaredExponential
from lamperti.smoothers import MomentMatching
from lamperti.testing import check_transition
from lamperti.testing._smoothers import linear_problem
from oracles.quadrature import gauss_hermite
from small_models import SEPARATE, small_dynamics

MEAN = np.array([0.4, -0.7])
COV = np.array([[0.30, 0.12], [0.12, 0.25]])
DT = jnp.asarray(0.3)
KERNELS = {
    "se": SquaredExponential([0.9, 1.3], 0.8),
    "se + linear": SquaredExponential([0.9, 1.3], 0.8) + Linear([0.5, 0.2]),
}


def transition_with(kernel):
    return small_dynamics((kernel,), 5, jitter=1e-6).condition()


def step_moments(transition, x):
    y = jax.vmap(transition.mean, in_axes=(0, None))(jnp.asarray(x), DT)
    noise = np.broadcast_to(transition.variance(y[0], DT), y.shape)
    return np.asarray(y), noise


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_push_equals_gauss_hermite_quadrature(kernel):
    transition = transition_with(kernel)
    step = transition.pusher()(jnp.asarray(MEAN), jnp.asarray(COV), DT)
    x, w = gauss_hermite(MEAN, COV, 40)
    y, noise = step_moments(transition, x)
    m = w @ y
    np.testing.assert_allclose(step.F @ MEAN + step.b, m, rtol=1e-6)
    np.testing.assert_allclose(step.F @ COV, (w[:, None] * (y - m)).T @ (x - MEAN), rtol=1e-6, atol=1e-9)
    cov = (w[:, None] * (y - m)).T @ (y - m) + np.diag(w @ noise)
    np.testing.assert_allclose(step.F @ COV @ step.F.T + step.Omega, cov, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_push_equals_simulation(kernel):
    transition = transition_with(kernel)
    step = transition.pusher()(jnp.asarray(MEAN), jnp.asarray(COV), DT)
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(MEAN, COV, size=40_000)
    y, noise = step_moments(transition, x)
    y = y + np.sqrt(noise) * rng.normal(size=y.shape)
    m = np.asarray(step.F @ MEAN + step.b)
    found = {
        "mean": (y, m),
        "cross": ((y - m)[:, :, None] * (x - MEAN)[:, None, :], np.asarray(step.F @ COV)),
        "cov": ((y - m)[:, :, None] * (y - m)[:, None, :], np.asarray(step.F @ COV @ step.F.T + step.Omega)),
    }
    for name, (draws, value) in found.items():
        se = draws.std(axis=0) / np.sqrt(len(draws))
        assert np.all(np.abs(draws.mean(axis=0) - value) < 5 * se), name


@pytest.mark.parametrize("kernel", [*KERNELS.values(), Matern32([0.8, 1.1])], ids=[*KERNELS, "matern32"])
def test_gp_transition_keeps_the_contract(kernel):
    check_transition(transition_with(kernel), 2)


def test_gp_transition_with_a_kernel_for_each_coordinate_keeps_the_contract():
    check_transition(small_dynamics(SEPARATE).condition(), 2)


def smooth_with(transition):
    problem = linear_problem()._replace(transition=transition)
    return MomentMatching()(*problem, points=problem.potentials.information, key=jax.random.key(0))


def test_a_kernel_without_expectations_is_refused_with_a_way_out():
    with pytest.raises(CapabilityError) as refusal:
        smooth_with(transition_with(Matern32([0.8, 1.1])))
    assert str(refusal.value) == (
        "MomentMatching needs closed-form kernel expectations, which Matern32 does not have. "
        "Use Linearised() or SigmaPoint()."
    )


def test_separate_kernels_are_refused_with_a_way_out():
    with pytest.raises(CapabilityError, match="shared_kernel=True"):
        smooth_with(small_dynamics(SEPARATE).condition())
