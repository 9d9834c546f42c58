import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation import embedding


@pytest.fixture(scope="module")
def states():
    """Slow random rotations: smooth in time, two coordinates."""
    made = systems.ornstein_uhlenbeck(6, 200, dt=0.1, seed=0)
    return list(made.states)


def test_an_affine_map_of_the_state_is_recovered_exactly(states):
    matrix = np.array([[2.0, 1.0], [-1.0, 0.5]])
    latent = [x @ matrix.T + 3.0 for x in states]
    np.testing.assert_allclose(embedding.affine_r2(latent, states), 1.0)


def test_noise_costs_the_share_of_variance_that_it_hides(states):
    rng = np.random.default_rng(1)
    sd = np.concatenate(states).std(axis=0)
    noisy = [x + 0.5 * sd * rng.normal(size=x.shape) for x in states]
    np.testing.assert_allclose(embedding.affine_r2(noisy, states), 0.8, atol=0.06)


def test_kernel_regression_straightens_a_curved_latent_space_that_no_affine_map_can(states):
    curved = [np.column_stack([x[:, 0], x[:, 1] + 2 * x[:, 0] ** 2]) for x in states]
    affine, kernel = embedding.affine_r2(curved, states), embedding.kernel_r2(curved, states)
    assert affine[1] < 0.5
    assert np.all(kernel > 0.98)


def test_rare_extremes_that_an_affine_map_carries_do_not_defeat_kernel_regression(states):
    # One held-out excursion ten times the rest, as in Lotka-Volterra: a kernel alone falls back to the mean there.
    bursts = [x.copy() for x in states]
    bursts[2][80:120] *= 10
    assert np.all(embedding.kernel_r2(bursts, bursts) > 0.99)


def test_the_smooth_map_carries_states_that_it_has_not_seen(states):
    curved = [100.0 * np.column_stack([x[:, 0], x[:, 1] + 2 * x[:, 0] ** 2]) for x in states]
    carry = embedding.smooth_map(np.concatenate(curved[1:]), np.concatenate(states[1:]))
    error = carry(curved[0]) - states[0]
    assert np.all((error**2).mean(axis=0) < 0.02 * states[0].var(axis=0))


def test_samples_near_in_time_do_not_tell_of_each_other_across_blocks():
    # A clock tells every sample apart, and a smooth map of it fits a random walk within the training blocks.
    rng = np.random.default_rng(2)
    walk = [np.cumsum(rng.normal(size=(300, 1)), axis=0) for _ in range(4)]
    clock = [np.arange(i * 300.0, (i + 1) * 300)[:, None] for i in range(4)]
    assert embedding.kernel_r2(clock, walk)[0] < 0.9
    assert embedding.affine_r2(clock, [w[:, [0, 0]] for w in walk]).shape == (2,)


def test_unrelated_latents_hold_nothing(states):
    rng = np.random.default_rng(3)
    unrelated = [rng.normal(size=x.shape) for x in states]
    assert np.all(np.abs(embedding.affine_r2(unrelated, states)) < 0.05)
    assert np.all(embedding.kernel_r2(unrelated, states) < 0.05)


def test_neighbourhoods_are_kept_by_a_rotation_and_lost_by_a_shuffle(states):
    x = np.concatenate(states)
    angle = 0.7
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    same = embedding.neighbourhoods(_white(x) @ rotation.T, _white(x), max_samples=400)
    assert same.trustworthiness > 0.999 and same.continuity > 0.999
    shuffled = embedding.neighbourhoods(np.random.default_rng(4).permutation(x), x, max_samples=400)
    assert abs(shuffled.trustworthiness - 0.5) < 0.05 and abs(shuffled.continuity - 0.5) < 0.05


def test_folding_costs_trust_and_tearing_costs_continuity():
    plane = np.random.default_rng(5).uniform(-1, 1, size=(400, 2))
    folded = np.column_stack([np.abs(plane[:, 0]), plane[:, 1]])
    fold, tear = embedding.neighbourhoods(folded, plane), embedding.neighbourhoods(plane, folded)
    assert fold.trustworthiness < 0.9 < fold.continuity
    assert tear.continuity < 0.9 < tear.trustworthiness


def test_trustworthiness_is_the_sum_over_intruders():
    z, x = np.array([[0.0], [1], [2.1], [3.3], [4.6]]), np.array([[0.0], [4.6], [1], [2.1], [3.3]])
    n, k, lost = 5, 1, 0
    for i in range(n):
        order_z, order_x = (sorted(range(n), key=lambda j, p=p: abs(p[j, 0] - p[i, 0])) for p in (z, x))
        lost += sum(order_x.index(j) - k for j in order_z[1 : k + 1] if order_x.index(j) > k)
    expected = 1 - 2 / (n * k * (2 * n - 3 * k - 1)) * lost
    assert embedding.neighbourhoods(z, x, k=1).trustworthiness == pytest.approx(expected)


def test_samples_that_do_not_match_are_refused(states):
    with pytest.raises(LampertiError, match="same samples"):
        embedding.affine_r2([x[:-1] for x in states], states)
    with pytest.raises(LampertiError, match="too few"):
        embedding.affine_r2([states[0][:4]], [states[0][:4]])
    with pytest.raises(LampertiError, match="half of the 200 samples"):
        embedding.neighbourhoods(states[0], states[0], k=100)


def _white(x):
    return np.linalg.solve(np.linalg.cholesky(np.cov(x.T)), (x - x.mean(axis=0)).T).T
