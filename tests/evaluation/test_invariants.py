import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.evaluation import invariants

T = np.arange(1000)


def damped_oscillator(n_paths, frequency=0.3, n_times=500, seed=0):
    """First coordinate of a stationary rotating AR(1): a noisy oscillation with a known law."""
    rng = np.random.default_rng(seed)
    rho = 0.97
    z = (rng.normal(size=n_paths) + 1j * rng.normal(size=n_paths)) / np.sqrt(1 - rho**2)
    path = np.empty((n_paths, n_times))
    for k in range(n_times):
        z = rho * np.exp(1j * frequency) * z + rng.normal(size=n_paths) + 1j * rng.normal(size=n_paths)
        path[:, k] = z.real
    return path


@pytest.fixture(scope="module")
def real():
    a = damped_oscillator(30, seed=0)
    return a, [damped_oscillator(30, seed=s) for s in range(1, 6)]


def test_half_cycle_of_a_sine_is_half_its_period():
    sine = np.sin(2 * np.pi * (T + 0.3) / 50)[None]
    lengths = invariants.half_cycles(sine)
    np.testing.assert_array_equal(lengths, 25)
    assert len(lengths) == 2 * len(T) / 50 - 2
    assert invariants.lobe_switches(sine) == len(lengths) + 1


def test_residence_is_summed_up_by_mean_and_upper_tail():
    pattern = np.concatenate([np.full(n, 1.0 if i % 2 else -1.0) for i, n in enumerate([7, *range(1, 12), 7])])
    found = invariants.residence(pattern[None])
    assert (found.mean, found.quantile_90, found.count) == (6.0, 10.0, 11)
    nothing = invariants.residence(np.ones((2, 50)))
    assert np.isnan(nothing.mean) and nothing.count == 0


def test_stretches_cut_by_the_ends_of_a_path_are_not_counted():
    path = np.array([[1.0, 1, -1, -1, -1, 1, 1, 1, 1]])
    np.testing.assert_array_equal(invariants.half_cycles(path), [3])
    np.testing.assert_array_equal(invariants.half_cycles(path, centre=5.0), [])


def test_threshold_silences_the_chatter_of_noise_about_the_centre():
    noisy = np.sin(2 * np.pi * (T + 0.3) / 100) + 0.1 * np.random.default_rng(0).normal(size=T.shape)
    assert invariants.half_cycles(noisy[None]).min() < 5
    assert invariants.half_cycles(noisy[None], threshold=0.4).min() > 40


def test_peaks_of_a_sine_are_at_its_amplitude():
    heights = invariants.peak_heights(3 * np.cos(2 * np.pi * T / 50)[None])
    np.testing.assert_allclose(heights, 3.0)
    assert len(heights) == len(T) / 50 - 1  # the first sample is no local maximum


def test_autocorrelation_of_white_noise_is_one_then_zero_and_of_an_oscillator_is_its_law():
    white = np.random.default_rng(1).normal(size=(50, 1000))
    acf = invariants.autocorrelation(white, 20)
    assert acf[0] == 1 and np.abs(acf[1:]).max() < 5 / np.sqrt(white.size)
    lags = np.arange(21)
    acf = invariants.autocorrelation(damped_oscillator(2000), 20)
    np.testing.assert_allclose(acf, 0.97**lags * np.cos(0.3 * lags), atol=0.02)


def test_spectrum_peaks_at_the_frequency_of_the_oscillation():
    spectrum = invariants.power_spectrum(damped_oscillator(200), sigma=2.0)
    assert spectrum.sum() == pytest.approx(1)
    assert np.argmax(spectrum) == pytest.approx(500 * 0.3 / (2 * np.pi), abs=2)


@pytest.mark.parametrize("name", invariants.DISTANCES)
def test_distance_to_itself_is_zero(name, real):
    assert invariants.DISTANCES[name](real[0], real[0].copy()) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("name", invariants.DISTANCES)
def test_another_sample_of_the_same_law_is_at_the_floor(name, real):
    ratios = [
        invariants.ratio_to_floor(invariants.DISTANCES[name], damped_oscillator(30, seed=s), *real)
        for s in range(10, 19)
    ]
    assert 0.4 < np.median(ratios) < 2.5


# A linear Gaussian process is reversible at every speed, so that its time asymmetry stays zero; and this one fills
# its state space at every speed, a little less round.
SLOW_TO_SEE = {"values", "peak heights", "time asymmetry", "state space"}


@pytest.mark.parametrize("name", sorted(set(invariants.DISTANCES) - SLOW_TO_SEE))
def test_a_faster_clock_is_caught(name, real):
    faster = damped_oscillator(30, frequency=0.36, seed=20)
    assert invariants.ratio_to_floor(invariants.DISTANCES[name], faster, *real) > 3


@pytest.mark.parametrize("name", sorted(set(invariants.DISTANCES) - {"spectrum", "autocorrelation", "roughness"}))
def test_a_shift_is_caught(name, real):
    shifted = damped_oscillator(30, seed=21) + 4 * real[0].std()
    assert invariants.ratio_to_floor(invariants.DISTANCES[name], shifted, *real) > 3


def test_roughness_sees_a_little_noise_that_the_values_do_not(real):
    rough = damped_oscillator(30, seed=22) + 0.1 * real[0].std() * np.random.default_rng(3).normal(size=(30, 500))
    assert invariants.ratio_to_floor(invariants.roughness_distance, rough, *real) > 3
    assert invariants.ratio_to_floor(invariants.value_distance, rough, *real) < 3


@pytest.mark.parametrize("name", invariants.DISTANCES)
def test_a_path_that_blew_up_makes_the_distance_infinite(name, real):
    broken = real[1][0].copy()
    broken[3, 100:] = np.nan
    assert invariants.DISTANCES[name](broken, real[0]) == np.inf


def test_a_model_that_stands_still_is_infinitely_far_in_events(real):
    still = np.full(real[0].shape, real[0].mean())
    assert invariants.half_cycle_distance(still, real[0]) == np.inf
    assert invariants.peak_distance(still, real[0]) == np.inf
    assert invariants.roughness_distance(still, real[0]) == np.inf


def test_escapes_are_counted_by_path():
    reference = np.array([[-1.0, 1.0]])
    paths = np.array([[0.0, 2.9], [0.0, 3.1], [-3.1, 0.0], [0.0, np.nan], [np.inf, 0.0]])
    assert invariants.escape_share(paths, reference) == pytest.approx(0.8)


def test_a_floor_from_less_data_is_refused(real):
    with pytest.raises(LampertiError, match=r"model paths are \(30, 500\), real B \(20, 500\)"):
        invariants.ratio_to_floor(invariants.value_distance, real[0], real[0], real[1][0][:20])
    with pytest.raises(LampertiError, match="same T"):
        invariants.value_distance(real[0][:, :100], real[0])
