"""Channels whose logarithm is modelled: found, scaled, forecast, written to files, refused where there is none."""

import numpy as np
import pytest
from scipy.signal import lfilter

import lamperti as lp
from lamperti import SeriesError
from lamperti.data.logarithms import in_proportion
from lamperti.data.packed_scaler import unpack_scaler
from lamperti.data.scaling import Scaler


def wandering(n=900, seed=0, phi=0.9):
    return lfilter([1.0], [1.0, -phi], np.random.default_rng(seed).normal(size=n + 50))[50:]


@pytest.fixture(scope="module")
def river():
    return lp.Series(np.exp(3.0 + 0.25 * wandering()), names=("flow",))


@pytest.fixture(scope="module")
def fitted(river):
    return lp.fit([river[:700]], progress=False)


def test_a_channel_in_proportion_to_its_level_is_found_and_others_are_not():
    x = wandering()
    assert in_proportion([np.exp(0.25 * x)]) and in_proportion([np.exp(0.25 * x[:400]), np.exp(0.25 * x[400:])])
    assert not in_proportion([x + 20.0])  # positive, noise of one size
    assert not in_proportion([x])  # negative values
    assert not in_proportion([np.exp(0.01 * x)])  # hardly different
    assert not in_proportion([np.exp(1.0 * x)])  # paths would go far beyond the data
    assert not in_proportion([np.exp(0.25 * x[:30])])  # too few to tell
    holed = np.where(np.arange(900) % 7, np.exp(0.25 * x), np.nan)
    assert in_proportion([np.where(np.arange(900) < 450, np.exp(0.25 * x), holed)])


def test_values_come_back_from_their_logarithms_and_the_sd_stays_known(river):
    two = lp.Series(np.column_stack([river.values, wandering(seed=1)]), names=("flow", "x"))
    scaler = Scaler.from_series([two], ("flow",))
    z = scaler.values(two.values)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1.0)
    np.testing.assert_allclose(z[:, 0], (np.log(two.values[:, 0]) - np.log(two.values[:, 0]).mean()) / scaler.scale[0])
    np.testing.assert_allclose(scaler.unscale_values(z), two.values)
    np.testing.assert_allclose(scaler.spread, two.values.std(axis=0))
    assert scaler.logged == ("flow", "")


def test_forecasts_of_a_river_are_positive_and_right(river, fitted):
    assert fitted.config.model.log == ("flow",) and fitted.scaler.logged == ("flow",)
    inside = []
    for at in range(700, 880, 6):
        samples = lp.forecast(fitted, river[:at], horizon=10, n_samples=400).samples[..., 0]
        assert (samples > 0).all()
        low, high = np.quantile(samples, [0.05, 0.95], axis=0)
        inside.append((river.values[at : at + 10, 0] >= low) & (river.values[at : at + 10, 0] <= high))
        # the exact law: log y is normal about phi^h times its deviation
        x = (np.log(river.values[at - 1, 0]) - 3.0) / 0.25
        np.testing.assert_allclose(np.median(samples[:, 0]), np.exp(3.0 + 0.25 * 0.9 * x), rtol=0.2)
    assert 0.82 < np.mean(inside) < 0.97


def test_free_runs_stay_within_three_times_the_range(fitted, river):
    values = river.values[:700, 0]
    paths = lp.simulate(fitted, n_steps=20_000, n_paths=4).samples
    assert (np.abs(paths - (values.min() + values.max()) / 2) <= 1.5 * np.ptp(values)).all()


def test_check_tells_the_same_choice(river, fitted):
    told = lp.check(river[:700]).suggestion
    assert (told.dimension, told.window) == (fitted.config.model.latent_dim, fitted.config.model.window)


def test_a_model_of_logarithms_is_written_and_read(fitted, river, tmp_path):
    lp.save(fitted, tmp_path / "river.safetensors")
    again = lp.load(tmp_path / "river.safetensors")
    assert again.scaler.logged == ("flow",)
    np.testing.assert_array_equal(again.scaler.spread, fitted.scaler.spread)
    here, there = (lp.forecast(one, river[:700], horizon=5, seed=1).samples for one in (fitted, again))
    np.testing.assert_array_equal(here, there)


def test_zero_has_no_logarithm_and_that_is_said_by_name(fitted, river):
    dry = river._replace(values=np.where(np.arange(900)[:, None] == 690, 0.0, river.values))
    with pytest.raises(SeriesError, match=r"'flow' holds 0, but its logarithm is modelled"):
        lp.forecast(fitted, dry[:700], horizon=3)
    with pytest.raises(SeriesError, match=r"'flow' holds 0.*log=\(\)"):
        lp.fit([dry], lp.ModelConfig(log=("flow",)), progress=False)
    with pytest.raises(SeriesError, match="log= names 'flaw', which is no channel"):
        lp.fit([river], lp.ModelConfig(log=("flaw",)), progress=False)


def test_values_themselves_are_modelled_where_that_is_asked_for(river):
    result = lp.fit([river[:300]], lp.ModelConfig(log=()), progress=False)
    assert result.config.model.log == () and not any(result.scaler.logged)


def test_growth_keeps_its_values_for_its_logarithm_grows_without_end():
    growing = np.exp(0.01 * np.arange(300) + 0.05 * np.random.default_rng(0).normal(size=300))
    with pytest.warns(lp.LampertiWarning, match="rises"):
        result = lp.fit([lp.Series(growing)], progress=False)
    assert result.config.model.log == ()


@pytest.mark.parametrize(
    "logged, sds",
    [
        (["flow", "x"], [1.0, 1.0]),
        (["", ""], [1.0, 1.0]),
        (["flow"], [1.0]),
        (["flow", ""], [1.0, -1.0]),
        (["flow", ""], []),
    ],
)
def test_logarithms_that_do_not_belong_to_the_channels_of_a_file_are_refused(logged, sds):
    clock = {"calendar": None, "duration_unit": "", "end": None, "logged": logged, "sds": sds}
    with pytest.raises(ValueError):
        unpack_scaler(clock, 1.0, "", ("flow", "y"))
    assert "logged" not in unpack_scaler(clock | {"logged": [], "sds": None}, 1.0, "", ("flow", "y"))
