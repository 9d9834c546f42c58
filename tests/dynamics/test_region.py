"""A drift that pulls back outside the region of the data, and leaves everything inside it as it was."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tests.small_models import small_dynamics

from lamperti.dynamics.region import PULL, Region
from lamperti.forecasting import roll_out
from lamperti.kernels import by_name
from lamperti.testing import check_transition
from lamperti.train.bounded import region

BALL = Region(jnp.array([1.0, 0.0]), jnp.eye(2) / 2.0, jnp.array([[1.0, 0.0]]), jnp.array([1.0]), jnp.array([10.0]))


def with_region(dynamics, found):
    return eqx.tree_at(lambda d: d.region, dynamics, found, is_leaf=lambda leaf: leaf is None)


def test_inside_nothing_changes_and_outside_the_border_on_the_same_ray_is_found():
    inside = jnp.array([[1.0, 1.9], [2.5, 0.5], [0.1, 0.0]])
    np.testing.assert_array_equal(BALL.nearest(inside), inside)
    np.testing.assert_allclose(BALL.nearest(jnp.array([1.0, 6.0])), [1.0, 2.0])  # the ellipsoid
    np.testing.assert_allclose(BALL.nearest(jnp.array([-3.0, 0.0])), [0.0, 0.0])  # the lower end of the channel
    np.testing.assert_allclose(BALL.gauge(jnp.array([3.0, 0.0])), 1.0)


def test_drift_and_step_are_those_of_the_plain_model_inside():
    plain = small_dynamics()
    x = jnp.array([1.2, 0.3])
    a, b = plain.condition(), with_region(plain, BALL).condition()
    np.testing.assert_array_equal(a.drift(x), b.drift(x))
    np.testing.assert_allclose(a.mean(x, jnp.asarray(0.7)), b.mean(x, jnp.asarray(0.7)), rtol=1e-14)


def test_outside_the_state_moves_as_at_the_border_and_what_is_beyond_decays_in_any_step():
    plain = small_dynamics()
    bounded, at = with_region(plain, BALL).condition(), plain.condition()
    x, border = jnp.array([1.0, 6.0]), jnp.array([1.0, 2.0])
    np.testing.assert_allclose(bounded.drift(x), at.drift(border) - PULL * (x - border))
    for dt in (0.1, 1.0, 50.0):
        expected = border + dt * at.drift(border) + (1 - PULL) ** dt * (x - border)
        np.testing.assert_allclose(bounded.mean(x, jnp.asarray(dt)), expected, rtol=1e-12)


def test_a_bounded_transition_keeps_the_contract():
    """With a kernel that has no closed form, which would not see the region."""
    check_transition(with_region(small_dynamics((by_name("matern52", 2, 1.0),)), BALL).condition(), 2)


def test_gradients_are_finite_at_the_centre():
    grad = jax.grad(lambda x: jnp.sum(BALL.nearest(x)))(BALL.centre)
    np.testing.assert_allclose(grad, 1.0)


def test_paths_of_a_drift_that_runs_away_stay_near_the_data_for_a_hundred_thousand_steps():
    """A linear drift that doubles the distance from the origin in every step."""
    plain = small_dynamics()
    away = eqx.tree_at(lambda d: (d.mean.weight, d.mean.bias), plain, (jnp.eye(2), jnp.zeros(2)))
    start = jnp.array([[1.0, 0.5], [1.5, -0.5]])
    free = roll_out(away.central(2), start, n_steps=2000, key=jax.random.key(0))
    assert not np.isfinite(np.asarray(free)).all()
    draws = with_region(away, BALL).central(2)
    paths = np.asarray(roll_out(draws, start, n_steps=100_000, key=jax.random.key(0)))
    assert np.abs(paths).max() < 20


def test_the_region_holds_all_states_and_the_range_of_every_channel_with_some_room():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3))
    C, c = rng.standard_normal((2, 3)), np.array([1.0, -2.0])
    y = x @ C.T + c
    y[::7] = np.nan
    found = region(x, y, C, c)
    assert found is not None
    rho = np.sqrt(np.asarray(found.gauge(jnp.asarray(x))))
    np.testing.assert_allclose(rho.max(), 0.8, atol=0.15)
    assert rho.max() < 1
    middle, reach = C @ np.asarray(found.centre) + c, np.nanmax(y, axis=0) - np.nanmin(y, axis=0)
    np.testing.assert_allclose(middle + np.asarray(found.high), np.nanmax(y, axis=0) + reach / 4)
    np.testing.assert_allclose(middle - np.asarray(found.low), np.nanmin(y, axis=0) - reach / 4)


def test_states_that_are_not_finite_or_do_not_move_have_no_region():
    C, c = np.ones((1, 2)), np.zeros(1)
    assert region(np.full((50, 2), np.nan), np.zeros((50, 1)), C, c) is None
    assert region(np.zeros((50, 2)), np.zeros((50, 1)), C, c) is None
