"""Which start is taken: the fewest coordinates that predict data which they were not fitted to."""

import numpy as np
import pytest

from lamperti.data import systems
from lamperti.data.coordinates import Candidate, _Rows, candidates
from lamperti.data.predictive import horizons, predictive_directions, principal_directions
from lamperti.data.starts import choose_start


def standard(simulated):
    values = [s.values for s in simulated.series]
    pooled = np.concatenate(values)
    return [(v - pooled.mean(axis=0)) / pooled.std(axis=0) for v in values]


def linear_record(n, seed, matrix, noise):
    rng = np.random.default_rng(seed)
    x, y = np.zeros(len(matrix)), np.empty(n)
    for k in range(n):
        x = matrix @ x + noise * rng.standard_normal(len(matrix))
        y[k] = x[0]
    return (y / y.std())[:, None]


DAMPED = np.array([[0.95, 0.25], [-0.25, 0.95]])


def test_two_predictive_directions_of_a_linear_system_predict_as_well_as_the_whole_window():
    """The best predictor of a linear system of two coordinates has rank two: nothing of a window is lost."""
    y = linear_record(20_000, 0, DAMPED, np.array([0.0, 0.1]))
    rows = _Rows.of([y], 30, horizons(30))
    _, B = predictive_directions(rows.past, rows.future, 2)
    x = rows.past @ B.T

    def left(a):
        return np.mean((rows.future - a @ np.linalg.lstsq(a, rows.future, rcond=None)[0]) ** 2, axis=0)

    np.testing.assert_allclose(left(x), left(rows.past), rtol=0.03, atol=1e-4)
    np.testing.assert_allclose(np.cov(x.T), np.eye(2), atol=0.05)


def test_a_slow_wander_hides_a_fast_wave_from_principal_components_and_not_from_predictive_ones():
    rng = np.random.default_rng(1)
    k = np.arange(6000.0)
    wander = np.cumsum(rng.standard_normal(6000)) * 0.05
    wave = 0.3 * np.sin(k / 2.5 + 0.05 * np.cumsum(rng.standard_normal(6000)))
    y = (wander - wander.mean() + wave)[:, None]
    found = {c.coordinates: c.error for c in candidates([y / y.std()], [40], [3]) if not c.linear}
    assert found["predictive"] < 0.8 * found["components"]


@pytest.mark.parametrize(
    ("simulate", "dt", "expected"),
    [
        (systems.rossler, 0.2, {0.0: (3, 4), 0.1: (3, 4)}),
        (systems.excited_oscillator, 1.0, {0.0: (2,), 0.1: (2,)}),
        (systems.ornstein_uhlenbeck, 0.1, {0.0: (2,), 0.1: (2,)}),
        (systems.van_der_pol, 0.2, {0.0: (3,), 0.1: (2,)}),  # without noise a third tells a tenth more of one horizon
        (systems.lorenz, 0.02, {0.0: (3, 4), 0.1: (3, 4)}),
    ],
)
@pytest.mark.parametrize("observation_noise", [0.0, 0.1])
def test_the_dimension_of_known_systems_is_found_through_noise(simulate, dt, expected, observation_noise):
    made = simulate(40, 400, dt=dt, observation_noise=observation_noise, seed=1001)
    assert choose_start(standard(made)).dimension in expected[observation_noise]


def test_one_coordinate_and_a_linear_drift_are_enough_for_a_process_of_first_order():
    y = linear_record(4000, 0, np.array([[0.8]]), np.array([1.0]))
    chosen = choose_start([y])
    assert chosen.dimension == 1 and chosen.linear
    assert "A linear drift predicts as well as any." in chosen.reason()


def test_a_drift_that_is_not_linear_is_found():
    assert not choose_start(standard(systems.van_der_pol(20, 400, dt=0.2, seed=0))).linear
    assert not choose_start(standard(systems.lorenz(20, 400, dt=0.02, seed=0))).linear


def test_every_channel_counts_for_the_dimension():
    """Two circles that know nothing of each other, in two channels."""
    rng = np.random.default_rng(0)
    k = np.arange(300.0)
    phases = rng.uniform(0, 2 * np.pi, (20, 2))
    series = [np.stack([np.sin(k / 5 + a), np.sin(k / 7.3 + b)], axis=1) for a, b in phases]
    assert choose_start([s[:, :1] for s in series]).dimension == 2
    assert choose_start(series).dimension == 4


def test_what_is_predicted_shares_no_sample_with_what_is_learned_from():
    rows = _Rows.of([np.arange(400.0)[:, None], np.arange(400.0, 600.0)[:, None]], 7, horizons(7))
    assert rows.folds()
    for asked, apart in rows.folds():
        for i in asked:
            gaps = np.abs(rows.begins[apart] - rows.begins[i])
            assert gaps.min() >= rows.span or rows.begins[i] + rows.span <= rows.begins[apart][gaps.argmin()]


def test_noise_alone_takes_one_coordinate_and_too_little_data_is_not_compared():
    rng = np.random.default_rng(0)
    assert choose_start([rng.standard_normal((2000, 1))]).dimension == 1
    short = choose_start([rng.standard_normal((25, 1))])
    assert short.curve == () and "too short to compare with others" in short.reason()


def test_what_is_asked_for_is_kept():
    y = standard(systems.rossler(10, 300, dt=0.2, seed=0))
    chosen = choose_start(y, dimension=5, window=9, coordinates="components")
    assert (chosen.dimension, chosen.window, chosen.coordinates) == (5, 9, "components")
    assert choose_start(y, dimension=12).window >= 12


def test_a_candidate_is_clearly_behind_only_by_more_than_its_error_and_four_percent():
    rng = np.random.default_rng(0)
    common = rng.uniform(0.5, 1.5, (12, 4))
    best = Candidate(3, 10, "predictive", True, common)
    assert not Candidate(2, 10, "predictive", True, 1.04 * common).clearly_behind(best)  # 2 % of the root
    assert Candidate(2, 10, "predictive", True, 1.2 * common).clearly_behind(best)
    noisy = Candidate(2, 10, "predictive", True, common * np.tile([[1.9], [0.35]], (6, 1)))
    gap, se = noisy.behind(best)
    assert 0.04 < gap < se and not noisy.clearly_behind(best)


def test_a_candidate_that_one_horizon_tells_apart_is_clearly_behind():
    """By a tenth of the root there and two standard errors, however little that is on average."""
    rng = np.random.default_rng(0)
    common = rng.uniform(0.5, 1.5, (12, 4))
    best = Candidate(3, 10, "predictive", True, common)
    at_one = np.array([1.15**2, 1.0, 1.0, 1.0])
    worse = Candidate(2, 10, "predictive", True, at_one * common)
    assert worse.behind(best)[0] < 0.04 and worse.clearly_behind(best)
    assert not Candidate(2, 10, "predictive", True, (1.08 / 1.15) ** 2 * at_one * common).clearly_behind(best)
    unsure = Candidate(2, 10, "predictive", True, common * np.tile([[2.4, 1, 1, 1], [0.3, 1, 1, 1]], (6, 1)))
    assert unsure.error > 1.02 * best.error and not unsure.clearly_behind(best)


def test_principal_directions_are_whitened():
    past = np.random.default_rng(0).standard_normal((5000, 4)) @ np.diag([3.0, 1.0, 0.5, 0.1])
    mean, B = principal_directions(past, 3)
    np.testing.assert_allclose(np.cov(((past - mean) @ B.T).T), np.eye(3), atol=0.01)
