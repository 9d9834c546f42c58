"""Which records have a law that stays? Processes whose answer is known, and shapes of data that must not matter."""

import numpy as np
import pytest
from scipy.signal import lfilter

from lamperti.data import Series, systems
from lamperti.data.low_frequency import log_ratios, normal_scores, part_means, slow_amplitudes
from lamperti.data.stationarity import assess

T = 1000
SEEDS = range(20)
SYSTEMS = [name for name in systems.__all__ if name[0].islower()]


def relaxation(n, over, rng):
    a = np.exp(-over / n)
    noise = rng.standard_normal(n)
    noise[1:] *= np.sqrt(1 - a**2)
    return lfilter([1.0], [1.0, -a], noise)


def kinds(make):
    return [assess([make(np.random.default_rng(seed))]).channels[0].kind for seed in SEEDS]


def trend_and_season(rng, n=T):
    t = np.arange(n) / n
    return 300 + 30 * t + 3 * np.sin(80 * np.pi * t) + 0.5 * rng.standard_normal(n)


def test_slow_amplitudes_of_a_cosine_are_its_own():
    t = np.arange(512.0)
    a = slow_amplitudes(3 * np.sqrt(2) * np.cos(np.pi * 5 * (t + 0.5) / 512), t)
    np.testing.assert_allclose(a, 3 * (np.arange(1, 17) == 5), atol=3e-3)


def test_parts_are_of_equal_time_and_holes_are_interpolated():
    times = np.array([0.0, 0.5, 1.0, 7.0, 8.0])
    np.testing.assert_allclose(part_means(np.array([0.0, 2.0, 4.0, 10.0, 10.0]), times, 4), [2.0, 14 / 3, 22 / 3, 10.0])


def test_ratios_depend_neither_on_units_nor_on_sign():
    a = slow_amplitudes(relaxation(T, 30, np.random.default_rng(0)), np.arange(float(T)))
    np.testing.assert_allclose(log_ratios(-1e9 * a), log_ratios(a))


def test_scores_ignore_how_far_an_outlier_is():
    x = np.arange(9.0)
    np.testing.assert_array_equal(normal_scores(np.append(x, 1e12)), normal_scores(np.append(x, 9.0)))


def test_false_alarms_of_slow_relaxations_are_rarer_than_markov_promises():
    # Of 300 records ten relaxation times long, a ratio of 20 may be exceeded by 1/20 at most.
    rng = np.random.default_rng(3)
    ratios = [max(log_ratios(slow_amplitudes(relaxation(T, 10, rng), np.arange(float(T))))) for _ in range(300)]
    assert np.mean(np.array(ratios) > np.log(20)) <= 0.05


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.standard_normal(T),
        lambda rng: rng.standard_t(2, T),
        lambda rng: relaxation(T, 20, rng),
        lambda rng: np.sin(6 * np.pi * np.arange(T) / T + rng.uniform(0, 6)) + 0.2 * rng.standard_normal(T),
        lambda rng: np.sin(4 * np.pi * np.arange(T) / T + rng.uniform(0, 6)),
        lambda rng: np.sign(np.sin(5 * np.pi * np.arange(T) / T + rng.uniform(0, 6))) + 0.1 * rng.standard_normal(T),
        lambda rng: (np.arange(T) > 600) * 5.0 + rng.standard_normal(T),
        lambda rng: 20 * np.exp(-np.arange(T) / 50) + rng.standard_normal(T),
        lambda rng: np.append(rng.standard_normal(T - 1), 1e12),
    ],
    ids=[
        "white",
        "heavy tails",
        "relaxation",
        "3 cycles",
        "2 smooth cycles",
        "5 visits to two wells",
        "jump",
        "transient",
        "outlier",
    ],
)
def test_a_law_that_stays_is_called_stationary(make):
    assert kinds(make).count("stationary") >= len(SEEDS) - 1


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (trend_and_season, "trend"),
        (lambda rng: -4 * np.arange(T) / T + rng.standard_normal(T), "trend"),
        (lambda rng: np.exp(5 * np.arange(T) / T + 0.1 * rng.standard_normal(T)), "growth"),
    ],
    ids=["trend and season", "falling line", "exponential growth"],
)
def test_a_clear_trend_is_always_found_and_named(make, kind):
    assert set(kinds(make)) == {kind}


def test_integrated_noise_is_mostly_found():
    assert kinds(lambda rng: np.cumsum(np.cumsum(rng.standard_normal(T)))).count("stationary") <= 4


@pytest.mark.parametrize("name", SYSTEMS)
def test_many_short_series_of_every_system_are_stationary(name):
    made = getattr(systems, name)(60, 400, seed=1, observation_noise=0.1)
    assert assess(made.series).stationary


def test_many_walks_from_one_place_drift_apart():
    walks = np.cumsum(np.random.default_rng(0).standard_normal((60, 400)), axis=1)
    assert assess(list(walks)).channels[0].kind == "random walk"


def test_many_slow_relaxations_do_not_drift_apart():
    rng = np.random.default_rng(0)
    assert assess([relaxation(400, 0.5, rng) for _ in range(60)]).stationary


def test_a_common_trend_of_many_series_is_found_but_not_one_that_is_over():
    rng = np.random.default_rng(0)
    t = np.arange(400) / 400
    noise = rng.standard_normal((20, 400))
    assert assess(list(3 * t + noise)).channels[0].kind == "trend"
    assert assess(list(10 * np.exp(-10 * t) + noise)).stationary


def test_one_stationary_series_of_few_speaks_for_all():
    rng = np.random.default_rng(0)
    trend, noise = trend_and_season(rng), rng.standard_normal(T)
    assert not assess([trend, trend[::-1]]).stationary
    assert assess([trend, noise]).stationary


def test_one_channel_without_a_law_is_enough_and_is_named():
    rng = np.random.default_rng(0)
    found = assess([Series(np.stack([rng.standard_normal(T), trend_and_season(rng)], axis=1), names=("noise", "co2"))])
    assert [c.kind for c in found.channels] == ["stationary", "trend"]
    assert not found.stationary
    assert found.channels[1].sentence.startswith("co2 rises over the whole record (a line through time explains 89%")
    assert found.channels[1].trend_share > 0.85


def test_gaps_irregular_times_and_missing_values_do_not_hide_a_trend():
    rng = np.random.default_rng(0)
    y = trend_and_season(rng)
    y[rng.uniform(size=T) < 0.2] = np.nan
    kept = np.ones(T, bool)
    kept[300:500] = False
    times = np.arange(T) + rng.uniform(-0.4, 0.4, T)
    assert assess([Series(y[kept], times=times[kept], missing="nan")]).channels[0].kind == "trend"


def test_pieces_of_one_recording_are_judged_as_one():
    whole = Series(trend_and_season(np.random.default_rng(0), 2000))
    pieces = [whole[k : k + 95] for k in range(0, 2000, 100)]
    assert assess(pieces).channels[0].kind == "trend"
    assert assess([p.values for p in pieces]).stationary  # without times nobody can know


def test_a_short_or_constant_record_cannot_tell():
    found = assess([np.arange(29.0)])
    assert found.stationary
    assert found.channels[0].kind == "too short to tell"
    assert assess([np.arange(30.0)]).channels[0].kind == "trend"
    assert assess([np.ones(100)]).channels[0].kind == "too short to tell"
