"""Whole numbers of any kind, memory, forks, users without a home, made-up model files, terminals of ASCII only."""

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import fitted
import lamperti as lp
from lamperti import _runtime
from lamperti.cli import main
from lamperti.cli._ascii import nearest
from lamperti.data.writing import write_csv
from lamperti.io import _checksum
from lamperti.train import memory

SOURCE = Path(__file__).parents[1] / "src"
STORED = Path(__file__).parent / "fixtures" / "model-v1.safetensors"


@pytest.fixture(scope="module")
def stored():
    return lp.load(STORED)


INTEGERS = [np.int64, np.int32, np.uint8]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_of_numpy_are_whole_numbers(kind, stored):
    series = fitted.data().series[0]
    n = {name: kind(value) for name, value in {"horizon": 3, "n_samples": 4, "n_particles": 20, "seed": 1}.items()}
    same = lp.forecast(stored, series, horizon=3, n_samples=4, n_particles=20, seed=1)
    np.testing.assert_array_equal(lp.forecast(stored, series, **n).samples, same.samples)
    assert lp.simulate(stored, n_steps=kind(3), n_paths=kind(2), seed=kind(1)).samples.shape == (2, 3, 1)
    config = lp.ModelConfig(latent_dim=kind(2), n_inducing=kind(8), window=kind(6))
    assert config == lp.ModelConfig(latent_dim=2, n_inducing=8, window=6) and type(config.latent_dim) is int
    fit = lp.FitConfig(seed=kind(1), gauge_at=(kind(5),), learning_rate=np.float32(0.5), calibrate=np.True_)
    assert fit == lp.FitConfig(seed=1, gauge_at=(5,), learning_rate=0.5, calibrate=True)
    assert len(lp.systems.lorenz(kind(1), kind(5), 0.1, seed=kind(1)).series) == 1
    assert lp.read(series.values[:, 0], dt=0.1, missing=[kind(99)])[0].length == len(series)


def test_a_limit_of_bytes_may_be_an_integer_of_numpy(tmp_path):
    write_csv(tmp_path / "data.csv", {"time": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 1.0]})
    assert lp.read(tmp_path / "data.csv", max_bytes=np.int64(10**6))[0].length == 3
    with pytest.raises(lp.ConfigError, match="max_bytes must be a whole number"):
        lp.read(tmp_path / "data.csv", max_bytes=True)


@pytest.mark.parametrize("value", [True, np.True_, 3.5, np.float64(3.5), "3"])
def test_what_is_no_whole_number_is_refused(value, stored):
    series = fitted.data().series[0]
    for option in ("horizon", "n_samples", "n_particles", "seed"):
        with pytest.raises(lp.ConfigError, match=f"{option} must be a whole number"):
            lp.forecast(stored, series, **{option: value})
    with pytest.raises(lp.ConfigError, match="n_steps must be a whole number"):
        lp.simulate(stored, n_steps=value)
    with pytest.raises(lp.ConfigError, match="seed must be a whole number"):
        lp.build(series, fitted.MODEL, seed=value)
    with pytest.raises(lp.ConfigError, match="n_samples must be a whole number"):
        lp.systems.lorenz(1, value, 0.1)
    if value != "3":  # text of a number is read from TOML and the like
        with pytest.raises(lp.ConfigError, match=r"ModelConfig\.latent_dim"):
            lp.ModelConfig(latent_dim=value)
        with pytest.raises(lp.ConfigError, match=r"FitConfig\.batch_size"):
            lp.FitConfig(batch_size=value)


def _with_particles(result, n_particles):
    model = result.config.model.model_copy(update={"smoother": "particle", "n_particles": n_particles})
    return dataclasses.replace(result, config=dataclasses.replace(result.config, model=model))


def test_particles_count_in_the_memory_of_a_forecast_and_of_states(stored, monkeypatch):
    series = fitted.data().series[0]
    for name in ("filter_context", "smooth"):
        monkeypatch.setattr(f"lamperti.api.{name}", None)  # it is not reached
    with pytest.raises(lp.ConfigError, match=r"the filter would take about .* GB of memory.*smaller n_particles"):
        lp.forecast(stored, series, horizon=1, n_samples=1, n_particles=10**10)
    with pytest.raises(lp.ConfigError, match=r"the states of the series would take .*n_particles"):
        lp.embed(_with_particles(stored, 10**6), series)


@pytest.mark.parametrize(
    ("model", "fit", "said"),
    [
        ({"smoother": "particle", "n_particles": 10**6}, {}, "n_particles"),
        (
            {"n_inducing": 1024, "latent_dim": 12, "window": 12},
            {},
            r"the likelihood fit after training .*calibrate=False",
        ),
    ],
)
def test_memory_of_the_smoother_and_of_the_likelihood_is_asked_for_before_training(model, fit, said, monkeypatch):
    monkeypatch.setattr("lamperti.fitting.train", None)  # it is not reached
    monkeypatch.setattr("lamperti.fitting.build_model", lambda *args, **options: lp.load(STORED).model)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 * 10**9)
    with pytest.raises(lp.ConfigError, match=said):
        lp.fit(fitted.data().series, lp.ModelConfig(**{"latent_dim": 2, "window": 6, **model}), lp.FitConfig(**fit))


def test_the_likelihood_of_usual_models_fits_into_a_small_machine():
    usual = memory.likelihood_bytes(n_samples=24_000, dim=4, n_inducing=64, n_kernels=1)
    assert usual < 2 * 2**30


def _in_a_fork(result, sent):
    told = []
    for call in (lambda: lp.simulate(result, n_steps=2), lambda: lp.build(np.arange(99.0)), lambda: lp.load(STORED)):
        try:
            call()
            told.append("nothing")
        except lp.ForkError as error:
            told.append(str(error))
    sent.send([*told, lp.read(np.arange(9.0), dt=1.0)[0].length])


@pytest.mark.filterwarnings("ignore:.*fork.*")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
def test_a_fork_of_a_process_that_used_jax_is_told_to_spawn(stored):
    lp.simulate(stored, n_steps=2, n_paths=1)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_a_fork, args=(stored, there))
    child.start()
    try:
        assert here.poll(60), "the fork hangs"
        *told, length = here.recv()
    finally:
        child.kill()
        child.join()
    assert all('get_context("spawn")' in text for text in told) and len(told) == 3
    assert length == 9  # what needs no jax works


def test_a_user_without_a_home_gets_no_cache_and_no_error(monkeypatch):
    updates = []
    config = SimpleNamespace(jax_compilation_cache_dir=None, update=lambda *item: updates.append(item))
    for name in ("HOME", "XDG_CACHE_HOME", "LAMPERTI_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_runtime.Path, "home", unknown)
    _runtime._use_compilation_cache(SimpleNamespace(config=config))
    assert not updates


def _forged(path, change, arrays):
    with safe_open(STORED, framework="numpy") as opened:
        content = json.loads(opened.metadata()["lamperti"])
        held = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    header = json.dumps(content | change)
    held |= {name: np.full_like(held[name], value) for name, value in arrays.items()}
    path.write_bytes(to_bytes(held, {"lamperti": header, "sha256": _checksum(header, held)}))


@pytest.mark.parametrize(
    ("change", "arrays", "said"),
    [
        ({"names": [f"n{i}" for i in range(10**5)]}, {}, "100000 names for 1 channels"),
        ({"time_unit": 1e-300}, {}, "time unit is 1e-300"),
        ({"time_unit": 1e300}, {}, r"time unit is 1e\+300"),
        ({}, {"states": 1e300}, "'states' holds values that are not numbers of a model"),
        ({}, {"model.emission.C": 1e300}, r"'model\.emission\.C' holds values that are not numbers of a model"),
        ({}, {"model.dynamics.Z": -1e300}, r"'model\.dynamics\.Z' holds"),
    ],
    ids=["names", "short step", "long step", "states", "loadings", "inputs"],
)
def test_a_model_file_with_absurd_content_is_refused_at_once(change, arrays, said, tmp_path, capsys):
    _forged(tmp_path / "model", change, arrays)
    began = time.monotonic()
    with pytest.raises(lp.ModelFileError, match=said):
        lp.load(tmp_path / "model")
    assert time.monotonic() - began < 1.0 or "names" not in change
    assert main(["info", str(tmp_path / "model")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 1000


def test_many_channels_of_one_name_are_found_quickly():
    names = [f"n{i}" for i in range(20_000)]
    began = time.monotonic()
    with pytest.raises(lp.SeriesError, match="'n7' comes twice"):
        lp.Series(np.zeros((3, 20_001)), names=[*names, "n7"])
    assert time.monotonic() - began < 2.0


def test_steps_of_time_beyond_all_units_are_refused():
    with pytest.raises(lp.SeriesError, match="median step of the times is 1e-200"):
        lp.build(lp.Series(np.random.default_rng(0).normal(size=99), times=1e-200 * np.arange(99)))


def test_ascii_comes_nearest_to_what_was_drawn():
    assert "".join(map(nearest, "×±–…é\u2800\u2801\u2840\u28ff")) == "x+/--...\\xe9 '.:"


PLAIN = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.mark.parametrize("environment", PLAIN, ids=["PYTHONIOENCODING", "LC_ALL"])
def test_terminals_that_know_only_ascii_get_ascii(environment, tmp_path):
    series = fitted.data().series[0]
    write_csv(tmp_path / "data.csv", {"time": series.times, "débit µ": series.values[:, 0]})
    script = tmp_path / "commands.py"
    run = [str(STORED)]
    write_csv(tmp_path / "known.csv", {"time": series.times, "y": series.values[:, 0]})
    commands = [
        ["check", "data.csv"],
        ["--help"],
        ["fit", "--help"],
        ["info", *run],
        ["simulate", *run, "--out", "é.csv", "--steps", "3", "--paths", "1"],
        ["fit", "ü.csv", "--out", "é"],
        ["demo", "lorénz"],
        ["config", "init", "é.toml"],
    ]
    script.write_text(
        f"import os\nfrom lamperti.cli import main\nfor words in {commands!a}:\n"
        "    print(words[0], main([os.fsdecode(word.encode()) for word in words]), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "90"} | environment,
    )
    out, err = done.stdout.decode("ascii"), done.stderr.decode("ascii")
    assert done.returncode == 0, err
    assert "Error" not in err and "unexpected" not in err + out
    assert "d\\xe9bit" in out and "+/-" in out
    codes = [line.rsplit(" ", 1)[1] for line in out.splitlines() if line.split(" ")[0] in {c[0] for c in commands}]
    assert set(codes[-8:]) <= {"0", "1", "2"}


@pytest.mark.parametrize("columns", ["0", "2"])
def test_help_ends_on_a_terminal_that_says_it_has_no_columns(columns):
    command = [sys.executable, "-m", "lamperti", "fit", "--help"]
    told = subprocess.run(
        command, env=os.environ | {"COLUMNS": columns}, capture_output=True, text=True, timeout=120, check=False
    )
    assert told.returncode == 0 and "--latent-dim" in told.stdout
