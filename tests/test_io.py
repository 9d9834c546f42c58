"""Model files: what goes in comes out, and nothing else is let in."""

import dataclasses
import hashlib
import json
import os
import pickle
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import fitted
import lamperti as lp
from lamperti._params import realise
from lamperti.data.calendar_steps import CalendarSteps
from lamperti.data.dates import DATES
from lamperti.io import _checksum, _structure
from lamperti.runs.folder import new_run
from lamperti.train.build import skeleton
from lamperti.train.fitted import with_noise

_RATE = "model.dynamics.q.rate"
STORED = Path(__file__).parent / "fixtures" / "model-v1.safetensors"


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "model.safetensors"
    lp.save(fitted.result(), path)
    return path


def _parts(path):
    with safe_open(path, framework="numpy") as opened:
        metadata = opened.metadata()
        return json.loads(metadata["lamperti"]), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def _forge(path, content, arrays):
    """A file with a valid checksum whatever it holds."""
    path.write_bytes(_packed(content, arrays))


def _packed(content, arrays):
    header = json.dumps(content)
    return to_bytes(arrays, {"lamperti": header, "sha256": _checksum(header, arrays)})


def test_a_loaded_model_forecasts_bit_for_bit_as_the_saved_one(model_file):
    loaded, result = lp.load(model_file), fitted.result()
    series = fitted.data().series[0]
    one, two = (lp.forecast(r, series, horizon=5, n_samples=4, n_particles=20) for r in (loaded, result))
    np.testing.assert_array_equal(one.samples, two.samples)
    np.testing.assert_array_equal(one.times, two.times)
    one, two = (lp.simulate(r, n_steps=5, n_paths=2) for r in (loaded, result))
    np.testing.assert_array_equal(one.samples, two.samples)


def test_everything_beside_the_arrays_survives(model_file):
    loaded, result = lp.load(model_file), fitted.result()
    assert loaded.config.model == result.config.model
    assert loaded.config.fit == result.config.fit
    assert loaded.names == result.names
    assert loaded.scaler.time_unit == result.scaler.time_unit
    assert dataclasses.asdict(loaded.history) == dataclasses.asdict(result.history)
    assert _structure(loaded.model) == _structure(result.model)
    np.testing.assert_array_equal(loaded.states, result.states)


def test_a_history_that_is_not_finite_survives(model_file, tmp_path):
    result = fitted.result()
    record = dataclasses.replace(result.history.records[0], elbo=-np.inf, validation=None)
    history = dataclasses.replace(result.history, records=[record], best_score=-np.inf)
    lp.save(dataclasses.replace(result, history=history), tmp_path / "odd")
    loaded = lp.load(tmp_path / "odd").history
    assert loaded.best_score == -np.inf and loaded.records == [record]


def test_the_folder_of_a_run_stands_for_its_model(model_file):
    assert lp.load(model_file.parent).names == fitted.result().names
    lp.save(fitted.result(), model_file.parent)
    assert os.listdir(model_file.parent) == ["model.safetensors"]


def test_the_model_of_a_run_is_not_replaced_by_another(model_file, tmp_path):
    run = tmp_path / "run"
    with new_run(run, overwrite=False) as folder:
        folder.begin(fitted.result().config, fitted.data().series, fitted.result().model, None)
        folder.finish(fitted.result())
    before = (run / "model.safetensors").read_bytes()
    for place in (run, run / "model.safetensors"):
        with pytest.raises(lp.ModelFileError, match=r"is the folder of a run .* Choose another file"):
            lp.save(lp.load(model_file), place)
    assert (run / "model.safetensors").read_bytes() == before
    lp.save(lp.load(model_file), run / "copy.safetensors")


def test_a_model_with_realised_parameters_is_stored_as_it_is(tmp_path):
    real = dataclasses.replace(fitted.result(), model=realise(fitted.result().model))
    lp.save(real, tmp_path / "real")
    assert _structure(lp.load(tmp_path / "real").model) == _structure(real.model)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encoder": "conv-gru", "potentials": "encoder"},
        {"kernel": "se+linear", "shared_kernel": False, "smoother": "particle", "diffusion_step": "natural"},
        {"kernel": "matern32*constant", "smoother": "sigma-point", "inducing": "grid", "linear_mean": False},
        {"smoother": "linearised-parallel", "relinearise": 2},
    ],
)
def test_the_skeleton_is_shaped_as_the_model_that_training_starts_from(options):
    config = fitted.MODEL.model_copy(update=options)
    assert _structure(skeleton(config, 1)) == _structure(lp.build(fitted.data().series, config))


def test_a_model_that_its_configuration_does_not_describe_is_not_saved(tmp_path):
    result = fitted.result()
    odd = eqx.tree_at(lambda m: m.dynamics.Z, result.model, jax.numpy.zeros((5, 2)))
    with pytest.raises(lp.ModelFileError, match="put together by hand"):
        lp.save(dataclasses.replace(result, model=odd), tmp_path / "odd")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_a_model_file_error(tmp_path):
    with pytest.raises(lp.ModelFileError, match="cannot be written"):
        lp.save(fitted.result(), tmp_path / "missing" / "model")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(lp.ModelFileError, match="there is no file"):
        lp.load(tmp_path / "nothing")
    with pytest.raises(lp.ModelFileError, match=r"has no model\.safetensors"):
        lp.load(tmp_path)


class _Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_renamed_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(lp.ModelFileError, match="not a lamperti model"):
        lp.load(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("content", [b"", b"\x00" * 8, np.random.default_rng(0).bytes(4096), b"time,y\n0,1\n"])
def test_bytes_that_are_no_model_are_refused(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(lp.ModelFileError, match="not a lamperti model"):
        lp.load(path)


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_a_truncated_file_is_refused(model_file, share):
    content = model_file.read_bytes()
    model_file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(lp.ModelFileError, match="part of one"):
        lp.load(model_file)


def test_a_flipped_bit_anywhere_is_refused(model_file):
    content = model_file.read_bytes()
    before = hashlib.sha256(content).hexdigest()
    for place in np.linspace(0, len(content) - 1, 40).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 4
        model_file.write_bytes(damaged)
        with pytest.raises(lp.ModelFileError):
            lp.load(model_file)
    model_file.write_bytes(content)
    assert hashlib.sha256(model_file.read_bytes()).hexdigest() == before
    lp.load(model_file)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_in_spite_of_a_good_checksum(model_file, value):
    content, arrays = _parts(model_file)
    arrays["model.dynamics.Z"][0, 0] = value
    _forge(model_file, content, arrays)
    with pytest.raises(lp.ModelFileError, match=r"dynamics\.Z.*not finite"):
        lp.load(model_file)


def test_the_first_format_is_read_for_ever():
    """Written by lamperti 0.1.0 with format 1, before there were units, repairs and events."""
    loaded = lp.load(STORED)
    assert loaded.names == ("y",) and loaded.units == ("",) and loaded.repairs == () and loaded.history.events == []
    assert [r.iteration for r in loaded.history.records] == [1, 2, 3]
    # What the file says, not what random numbers make of it: their order may change between versions.
    drift, sd = loaded.drift(np.array([[0.0, 0.0], [1.0, -0.5]]))
    expected = [[-0.1757638259221268, 0.23093542042183615], [0.5695899418526769, 3.5708974802267366]]
    np.testing.assert_allclose(drift, expected, rtol=1e-6)
    expected_sd = [[0.08426505354617948, 0.3693498803382325], [0.12819995073940038, 0.5619249605533997]]
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-6)
    series = fitted.data().series[0]
    assert np.isfinite(lp.forecast(loaded, series, horizon=5, n_samples=4, n_particles=20).samples).all()


def test_what_the_guard_did_is_not_lost_with_the_first_format(tmp_path):
    content, arrays = _parts(STORED)
    content["history"]["records"] |= {"refused": [0, 2, 5], "halvings": [1, 1, 1]}
    _forge(tmp_path / "old", content | {"history": content["history"] | {"rollbacks": 1}}, arrays)
    loaded = lp.load(tmp_path / "old").history
    assert loaded.counts() == {"refused step": 5, "shortened step": 1, "rollback": 1, "raised jitter": 1}
    assert [(e.iteration, e.count) for e in loaded.events if e.kind == "refused step"] == [(2, 2), (3, 3)]


def _as_of_format_3(content, arrays):
    """Without what later formats brought: a clock, what was trained on, the region of the data, the dimension."""
    later = ("clock", "trained_on", "bounded", "state_noise", "dimensions")
    kept = {name: value for name, value in content.items() if name not in later}
    return kept | {"schema": 3}, {name: a for name, a in arrays.items() if ".region." not in name}


def test_what_was_trained_on_survives_and_the_third_format_did_not_know_it(model_file):
    loaded, result = lp.load(model_file), fitted.result()
    assert loaded.trained_on == result.trained_on and len(loaded.trained_on.series) == 4
    content, arrays = _as_of_format_3(*_parts(model_file))
    _forge(model_file, content, arrays)
    assert lp.load(model_file).trained_on is None and lp.load(model_file).model.dynamics.region is None


def test_noise_that_depends_on_the_state_survives_and_the_fourth_format_did_not_know_it(tmp_path):
    result = fitted.result()
    a = np.random.default_rng(2).normal(size=result.model.dynamics.q.shift.shape)
    noisy = dataclasses.replace(result, model=with_noise(result.model, jax.numpy.asarray(a)))
    lp.save(noisy, tmp_path / "noisy")
    loaded = lp.load(tmp_path / "noisy")
    np.testing.assert_array_equal(loaded.diffusion(result.states)[0], noisy.diffusion(result.states)[0])
    assert np.ptp(loaded.diffusion(result.states)[0], axis=0).min() > 0
    lp.save(result, tmp_path / "model")
    content, arrays = _parts(tmp_path / "model")
    _forge(tmp_path / "model", {k: v for k, v in content.items() if k != "state_noise"} | {"schema": 4}, arrays)
    assert lp.load(tmp_path / "model").model.dynamics.noise is None


@pytest.mark.parametrize(
    "change",
    [{"marks": "not base64"}, {"held_out": [[0, 1000]]}, {"one_of": 0}, {"series": []}, {"last_training_time": "late"}],
)
def test_a_record_of_training_data_that_makes_no_sense_is_refused(model_file, change):
    content, arrays = _parts(model_file)
    record = content["trained_on"]
    (record["series"][0] if "held_out" in change else record).update(change)
    _forge(model_file, content | {"trained_on": record}, arrays)
    with pytest.raises(lp.ModelFileError, match="header is damaged"):
        lp.load(model_file)


def test_units_and_repairs_survive(tmp_path):
    labels = {"units": ("mV",), "time_unit": "s", "repairs": ("rows were put in order of time",)}
    lp.save(dataclasses.replace(fitted.result(), **labels), tmp_path / "model")
    loaded = lp.load(tmp_path / "model")
    assert {name: getattr(loaded, name) for name in labels} == labels


def test_a_newer_format_names_the_version_that_wrote_it(model_file):
    content, arrays = _parts(model_file)
    _forge(model_file, content | {"schema": 99, "version": "9.9"}, arrays)
    with pytest.raises(lp.ModelFileError, match=r"lamperti 9\.9 .*newer"):
        lp.load(model_file)


def test_arrays_that_the_configuration_does_not_ask_for_are_refused(model_file):
    content, arrays = _parts(model_file)
    for changed, match in (
        (arrays | {"extra": np.zeros(3)}, "'extra' is unknown"),
        ({name: a for name, a in arrays.items() if name != "states"}, "'states' is missing"),
        (arrays | {"states": arrays["states"].astype(np.float32)}, "'states' is F32"),
        (arrays | {_RATE: arrays[_RATE].astype(np.float32)}, f"'{_RATE}' is F32"),  # case 47: β in single precision
        (arrays | {"states": arrays["states"][:0]}, "'states' is F64"),
        (arrays | {"model.dynamics.Z": np.zeros((9, 2))}, "should be float64"),
    ):
        _forge(model_file, content, changed)
        with pytest.raises(lp.ModelFileError, match=match):
            lp.load(model_file)


CALENDAR = {"rule": "day", "months": 1, "phase": 0, "day": 31, "offset": 0.0}
CLOCK = {"calendar": CALENDAR, "duration_unit": "months", "end": 1.7e9}
BAD_CLOCKS = [
    3,
    {},
    CLOCK | {"end": "soon"},
    CLOCK | {"end": True},
    CLOCK | {"end": 10**400},
    CLOCK | {"duration_unit": "h"},
    CLOCK | {"duration_unit": ["months"]},
    CLOCK | {"calendar": None},
    CLOCK | {"calendar": 3},
    *(
        CLOCK | {"calendar": CALENDAR | change}
        for change in (
            {"rule": "full moon"},
            {"months": 0},
            {"months": -1},
            {"months": 10**9},
            {"months": 1.5},
            {"phase": 1},
            {"day": 0},
            {"day": 32},
            {"offset": float("inf")},
            {"offset": 1e6},
            {"offset": None},
            {"other": 1},
        )
    ),
]


def test_calendar_unit_and_last_date_come_back(tmp_path):
    scaler = dataclasses.replace(
        fitted.result().scaler, calendar=CalendarSteps("day", 1, 0, 31, 0.0), duration_unit="months", end=1.7e9
    )
    result = dataclasses.replace(fitted.result(), scaler=scaler, time_unit=DATES)
    lp.save(result, tmp_path / "model")
    back = lp.load(tmp_path / "model")
    assert (back.scaler.calendar, back.step, back.step_unit, back.scaler.end) == (scaler.calendar, 1.0, "months", 1.7e9)
    np.testing.assert_array_equal(back.drift(back.states)[0], result.drift(result.states)[0])


def test_a_file_from_before_calendars_is_told_in_the_unit_that_suits_its_step(tmp_path):
    content, arrays = _parts(_saved(tmp_path, dataclasses.replace(fitted.result(), time_unit=DATES)))
    content, arrays = _as_of_format_3(content, arrays)
    _forge(tmp_path / "model", content | {"time_unit": 600.0}, arrays)
    old = lp.load(tmp_path / "model")
    assert (old.step, old.step_unit, old.scaler.calendar) == (10.0, "min", None)


@pytest.mark.parametrize("clock", BAD_CLOCKS)
def test_a_clock_that_makes_no_sense_is_refused(tmp_path, clock):
    path = _saved(tmp_path, dataclasses.replace(fitted.result(), time_unit=DATES))
    content, arrays = _parts(path)
    _forge(path, content | {"clock": CLOCK}, arrays)
    lp.load(path)
    _forge(path, content | {"clock": clock}, arrays)
    with pytest.raises(lp.ModelFileError, match="header is damaged"):
        lp.load(path)


def _saved(folder, result):
    lp.save(result, folder / "model")
    return folder / "model"


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"latent_dim": "many"}},
        {"model": {}},
        {"model": []},
        {"names": 3},
        {"history": {"records": {"iteration": [1]}}},
        {"history": None},
        {"time_unit": "soon"},
        {"time_unit": -1.0},
        {"fit": {"unknown": 1}},
        {"units": ["mV", "V"]},
        {"units": [3]},
        {"repairs": None},
        {"schema": 0},
        {"schema": True},
        {"time_unit": 10**400},
        {"time_unit": True},
        {"names": "y"},
        {"names": [10]},
        {"names": [""]},
        {"names": [" "]},
        {"time_unit_name": 3},
        {"realised": "no"},
        {"model": {**fitted.MODEL.model_dump(mode="json"), "kernel": "+".join(["se"] * 5000)}},
        {"schema": 1, "history": None},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, change):
    content, arrays = _parts(STORED)
    later = {"schema": 2, "units": [""], "time_unit_name": "", "repairs": []}
    later["history"] = content["history"] | {"events": {"iteration": [], "kind": [], "count": []}}
    _forge(tmp_path / "model", content | later, arrays)
    lp.load(tmp_path / "model")
    _forge(tmp_path / "model", content | later | change, arrays)
    with pytest.raises(lp.ModelFileError) as refused:
        lp.load(tmp_path / "model")
    assert len(str(refused.value)) < 500


def test_a_history_whose_entries_are_not_numbers_is_refused(model_file):
    content, arrays = _parts(model_file)
    for name, value in (("elbo", "high"), ("iteration", 1.5), ("refused", None)):
        history = json.loads(json.dumps(content["history"]))
        history["records"][name][0] = value
        _forge(model_file, content | {"history": history}, arrays)
        with pytest.raises(lp.ModelFileError, match="header is damaged"):
            lp.load(model_file)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("scaler.scale", 0.0, "positive"),
        ("scaler.scale", -1.0, "positive"),
        ("model.dynamics.q.rate", -1.0, "positive"),
        ("model.dynamics.q.shape", -1.0, "positive"),
        ("model.dynamics.prior.rate", 0.0, "positive"),
        ("model.dynamics.jitter", -1e-6, "positive"),
        ("model.emission.noise", -1.0, "positive"),
        ("model.dynamics.diffusion.raw", 1e3, "finite"),
        ("model.dynamics.amplitude.raw", -1e3, "positive"),
        ("model.dynamics.q.prec", 0.0, "positive definite"),
    ],
)
def test_values_that_no_training_gives_are_refused_in_spite_of_a_good_checksum(tmp_path, name, value, said):
    content, arrays = _parts(STORED)
    _forge(tmp_path / "model", content, arrays | {name: np.full_like(arrays[name], value)})
    with pytest.raises(lp.ModelFileError, match=rf"'{name}' holds values that are not {said}\."):
        lp.load(tmp_path / "model")


def test_the_rounding_that_training_leaves_in_a_precision_is_no_damage(tmp_path):
    content, arrays = _parts(STORED)
    name = "model.dynamics.q.prec"
    prec = np.zeros_like(arrays[name]) + 10.0 * np.eye(arrays[name].shape[1])
    prec[0, 0, 1] = 1e-6  # and [0, 1, 0] is 0
    _forge(tmp_path / "model", content, arrays | {name: prec})
    np.testing.assert_array_equal(lp.load(tmp_path / "model").model.dynamics.q.prec, prec)


def test_a_realised_parameter_that_is_not_positive_is_refused(tmp_path):
    lp.save(dataclasses.replace(fitted.result(), model=realise(fitted.result().model)), tmp_path / "real")
    content, arrays = _parts(tmp_path / "real")
    name = "model.dynamics.kernels.0.lengthscale"
    _forge(tmp_path / "real", content, arrays | {name: -arrays[name]})
    with pytest.raises(lp.ModelFileError, match="lengthscale' holds values that are not positive"):
        lp.load(tmp_path / "real")


def _places(content, before=()):
    """The path of every entry of a header."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content[:2]):
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*before, key))


_CONTENT, _ARRAYS = _parts(STORED)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(10**300, 10**400) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _mutated(draw):
    """The stored file as bytes, with one thing changed and a checksum that fits; or with bytes exchanged."""
    content, arrays = json.loads(json.dumps(_CONTENT)), dict(_ARRAYS)
    kind = draw(st.sampled_from(["value", "value", "key", "array", "shape", "bytes"]))
    if kind in ("value", "key"):
        # The entries of the header itself as often as the many below them.
        *path, last = draw(st.sampled_from([(key,) for key in content]) | st.sampled_from(list(_places(content))))
        within = content
        for key in path:
            within = within[key]
        if kind == "value":
            within[last] = draw(_JSON)
        else:
            gone = within.pop(last)
            if isinstance(within, dict) and draw(st.booleans()):
                within[draw(st.text(max_size=6))] = gone
    elif kind in ("array", "shape"):
        name = draw(st.sampled_from(sorted(arrays)))
        if kind == "array":
            changed = arrays[name].copy()
            changed.reshape(-1)[draw(st.integers(0, changed.size - 1))] = draw(st.floats())
            arrays[name] = changed
        else:
            shape = draw(st.lists(st.integers(0, 3), max_size=3))
            arrays[name] = np.zeros(shape, draw(st.sampled_from(["f4", "f8", "i8", "bool"])))
    raw = bytearray(_packed(content, arrays))
    if kind == "bytes":
        for place in draw(st.lists(st.integers(0, len(raw) - 1) | st.integers(0, 4096), min_size=1, max_size=4)):
            raw[place] = draw(st.integers(0, 255))
        raw = raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw
    return bytes(raw)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(content=_mutated())
@example(content=_packed(_CONTENT | {"time_unit": 10**400}, _ARRAYS))
def test_a_model_file_with_anything_changed_loads_or_is_refused_by_name(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    try:
        assert lp.load(tmp_path / "model").names
    except lp.ModelFileError as error:
        assert str(tmp_path / "model") in str(error)


def test_a_safetensors_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(to_bytes({"w": np.zeros(3)}))
    with pytest.raises(lp.ModelFileError, match="not a lamperti model"):
        lp.load(path)
