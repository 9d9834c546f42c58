import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation.invariants import ratio_to_floor
from lamperti.evaluation.state_space import delay_vectors, outside_share, state_space_distance


def circle(n_paths, radius=1.0, seed=0):
    """A sine of period 40 with random phase, a little blurred: a ring in delay space."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * np.pi, size=(n_paths, 1))
    path = radius * np.cos(phase + 2 * np.pi * np.arange(400) / 40)
    return path + 0.05 * rng.normal(size=path.shape)


def test_delay_vectors_hold_the_past_first():
    z = delay_vectors(np.arange(6.0)[None], lag=2, dimension=3)
    np.testing.assert_array_equal(z, [[0, 2, 4], [1, 3, 5]])


def test_divergence_of_two_histograms_is_the_sum_over_their_cells():
    real, model = np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 1.0, 1.0]])
    found = state_space_distance(model, real, lag=1, dimension=1, bins=2, alpha=1e-9)
    assert found == pytest.approx(0.75 * np.log(3) - 0.25 * np.log(3))


def test_empty_cells_count_as_if_they_were_listed():
    rng = np.random.default_rng(0)
    real, model = rng.normal(size=(1, 30)), rng.normal(size=(1, 30))
    bins, alpha = 5, 0.3
    edges = np.linspace(real.min(), real.max(), bins + 1)
    outside = ((model < real.min()) | (model > real.max())).sum()
    n = [np.append(np.histogram(v, edges)[0], o) for v, o in ((real, 0), (model, outside))]
    p, q = ((c + alpha) / (c.sum() + alpha * (bins + 1)) for c in n)
    found = state_space_distance(model, real, lag=1, dimension=1, bins=bins, alpha=alpha)
    assert found == pytest.approx(np.sum(p * np.log(p / q)))


def test_another_radius_is_caught_and_the_same_ring_is_not():
    a, b = circle(20, seed=0), [circle(20, seed=s) for s in (1, 2, 3)]
    same = np.median([ratio_to_floor(state_space_distance, circle(20, seed=s), a, b) for s in range(4, 9)])
    assert 0.5 < same < 2
    assert ratio_to_floor(state_space_distance, circle(20, radius=0.7, seed=9), a, b) > 3


def test_values_alone_do_not_make_the_state_space():
    a, b = circle(20, seed=0), circle(20, seed=1)
    shuffled = np.random.default_rng(2).permuted(circle(20, seed=3), axis=1)
    assert ratio_to_floor(state_space_distance, shuffled, a, b) > 3


def test_points_outside_the_box_are_counted_and_not_lost():
    a = circle(20, seed=0)
    escaped = circle(20, seed=1)
    escaped[:10] += 100.0
    assert outside_share(escaped, a) == pytest.approx(0.5, abs=0.01)
    assert outside_share(np.full((1, 4), np.nan), a) == 1
    assert state_space_distance(escaped, a) > state_space_distance(circle(20, seed=1), a) + 0.5 * np.log(2)


def test_two_exact_lorenz_sets_differ_by_the_published_floor():
    sets = [systems.lorenz(20, 500, dt=0.01, seed=s, substeps=2).clean[..., 0] for s in range(3)]
    floors = [state_space_distance(b, sets[0], lag=10) for b in sets[1:]]
    assert 0.2 < np.median(floors) < 2.5


def test_a_lag_too_long_for_the_paths_is_refused():
    a = circle(2)
    with pytest.raises(LampertiError, match="at least 401 samples, got 400"):
        state_space_distance(a, a, lag=200)
