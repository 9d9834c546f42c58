import numpy as np
import pytest
from scipy.signal import lfilter

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation import invariants
from lamperti.evaluation.time_reversal import asymmetry, asymmetry_distance

LAGS = np.arange(1, 9)


def decays(innovation, n_paths=50, seed=0):
    """x' = 0.8 x + e: jumps up at once, comes down slowly, unless e is Gaussian."""
    draw = getattr(np.random.default_rng(seed), innovation)
    return lfilter([1.0], [1.0, -0.8], draw(size=(n_paths, 1200)), axis=1)[:, 200:]


def standardised(paths):
    return (paths - paths.mean()) / paths.std()


def test_a_path_played_backwards_has_the_opposite_moments():
    x = decays("exponential")
    np.testing.assert_allclose(asymmetry(x[:, ::-1], LAGS), -asymmetry(x, LAGS), rtol=1e-9)


def test_moments_of_a_filtered_noise_are_its_third_cumulants():
    x = standardised(decays("exponential", n_paths=400))
    rho = 0.8
    skewness = 2 * (1 - rho**2) ** 1.5 / (1 - rho**3)  # third cumulant 2 of the exponential law, over sd^3
    exact = skewness * (rho**LAGS - rho ** (2 * LAGS))
    parts = np.stack([asymmetry(part, LAGS)[:, 0] for part in np.split(x, 20)])
    error = parts.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(parts.mean(axis=0) - exact) < 5 * error)


def test_a_symmetric_law_shows_its_direction_in_the_cubic_moment_only():
    x = standardised(decays("laplace", n_paths=400))
    parts = np.stack([asymmetry(part, LAGS) for part in np.split(x, 20)])
    z = parts.mean(axis=0) / (parts.std(axis=0, ddof=1) / np.sqrt(20))
    assert np.all(np.abs(z[:, 0]) < 5)
    assert np.all(np.abs(z[:, 1]) > 5)


@pytest.mark.parametrize("innovation", ["exponential", "laplace"])
def test_reversal_is_caught_where_the_other_distances_are_blind(innovation):
    a, b = decays(innovation, seed=1), [decays(innovation, seed=s) for s in (2, 3, 4)]
    backwards = decays(innovation, seed=5)[:, ::-1]
    assert invariants.ratio_to_floor(asymmetry_distance, backwards, a, b) > 3
    assert invariants.ratio_to_floor(invariants.autocorrelation_distance, backwards, a, b) < 3
    assert invariants.ratio_to_floor(invariants.value_distance, backwards, a, b) < 3


def test_reversal_of_van_der_pol_is_caught_and_another_sample_is_at_the_floor():
    sets = [systems.van_der_pol(16, 500, seed=s, substeps=20).clean[..., 0] for s in range(5)]
    assert invariants.ratio_to_floor(asymmetry_distance, sets[1][:, ::-1], sets[0], sets[2:]) > 5
    assert invariants.ratio_to_floor(asymmetry_distance, sets[1], sets[0], sets[2:]) < 3


def test_a_lag_beyond_the_path_is_refused():
    with pytest.raises(LampertiError, match="between 1 and T-1 = 9"):
        asymmetry(np.zeros((2, 10)), np.array([1, 10]))
