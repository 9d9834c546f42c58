"""Bad input, through the library and the command line: a named error, one sentence, nothing half-written."""

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti.cli import main

RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=40)


def _with(value, at=7):
    values = GOOD.copy()
    values[at] = value
    return values


SHORT = lp.ModelConfig(window=30, latent_dim=2)
FORECAST = lp.Forecast(np.zeros((2, 3, 1)), np.zeros((2, 3, 2)), np.arange(3.0), ("y",), 1.0)

LIBRARY = {
    "NaN undeclared": (lambda: lp.Series(_with(np.nan)), r"NaN .* row 7, column 'y'.*missing=\"nan\""),
    "infinite": (lambda: lp.Series(_with(np.inf)), r"row 7, column 'y' holds inf"),
    "one sample": (lambda: lp.Series([1.0]), "at least 2 samples; got 1"),
    "three axes": (lambda: lp.Series(np.zeros((2, 3, 4))), r"\[T\] or \[T, P\]; got shape \(2, 3, 4\)"),
    "mask of another shape": (lambda: lp.Series(GOOD, mask=np.ones(3, bool)), r"mask has shape \(3,\)"),
    "times of another length": (lambda: lp.Series(GOOD, times=[0, 1]), "times has shape"),
    "times that repeat": (lambda: lp.Series(GOOD, times=np.r_[0:39, 38]), "row 39 has 38 after 38"),
    "times that decrease": (lambda: lp.Series(GOOD, times=np.arange(40)[::-1]), "must increase; row 1"),
    "text": (lambda: lp.Series(["a", "b"]), "values"),
    "masked array": (lambda: lp.Series(np.ma.masked_less(GOOD, 0.0)), 'masked array with .* missing="nan"'),
    "fit: NaN": (lambda: lp.fit(_with(np.nan)), "NaN"),
    "fit: infinite": (lambda: lp.fit(_with(-np.inf)), "finite"),
    "fit: constant": (lambda: lp.fit(np.ones(40)), r"'y' is constant \(1 in all 40"),
    "fit: one sample": (lambda: lp.fit(np.array([1.0])), "at least 2 samples"),
    "fit: few samples": (lambda: lp.fit(GOOD[:5]), "4 transitions"),
    "fit: nothing": (lambda: lp.fit([]), "no series"),
    "fit: another object": (lambda: lp.fit({"a": GOOD}), "got a dict. Pass an array"),
    "fit: one recording as a column": (lambda: lp.fit(GOOD[:, None]), r"\(40, 1\) is .* lamperti.Series\(array\)"),
    "fit: four axes": (lambda: lp.fit(np.zeros((2, 2, 2, 2))), r"got shape \(2, 2, 2, 2\)"),
    "fit: shorter than the window": (lambda: lp.fit(GOOD[:20], SHORT), "window of 30 samples"),
    "fit: as long as the window": (lambda: lp.fit(GOOD[:30], SHORT), "at least 31 samples"),
    "split at text": (lambda: lp.Series(GOOD).split("a"), "whole number of samples.* got 'a'"),
    "split between samples": (lambda: lp.Series(GOOD).split(2.5), "whole number of samples"),
    "split at nothing": (lambda: lp.Series(GOOD).split(None), "whole number of samples"),
    "a number as names": (lambda: lp.Series(GOOD, names=3), "names must be text.* got 3"),
    "a number as units": (lambda: lp.Series(GOOD, units=3), "units must be text.* got 3"),
    "no channel selected": (lambda: lp.Series(GOOD).select([]), "no channel was named; the series has y"),
    "fit: mismatched channels": (
        lambda: lp.fit([lp.Series(GOOD), lp.Series(RNG.normal(size=(40, 2)))]),
        r"same channels .* series 1 has \(y0, y1\)",
    ),
}
WITH_A_MODEL = {
    "mismatched channels": (lambda r: lp.forecast(r, RNG.normal(size=(1, 40, 2))), "1 channels .* this series has 2"),
    "NaN": (lambda r: lp.forecast(r, _with(np.nan)), "NaN"),
    "infinite": (lambda r: lp.forecast(r, _with(np.inf)), "finite"),
    "one sample": (lambda r: lp.forecast(r, [1.0]), "at least 2 samples"),
    "several series": (lambda r: lp.forecast(r, [GOOD, GOOD]), "one series is needed here; got 2"),
    "embed of other channels": (lambda r: lp.embed(r, RNG.normal(size=(1, 40, 3))), "this series has 3"),
    "drift at points of another dimension": (lambda r: r.drift(np.zeros(5)), "2 latent coordinates"),
    "start of another dimension": (lambda r: lp.simulate(r, start=np.zeros(5)), r"start must be .* \(5,\)"),
    "start that is text": (lambda r: lp.simulate(r, start="a"), r"start must be .* got a str\. .* lamperti.embed"),
    "start that is a series": (lambda r: lp.simulate(r, start=lp.Series(GOOD)), "got a Series"),
    "start of too many axes": (lambda r: lp.simulate(r, start=np.zeros((1, 1, 2))), "start must be"),
    "drift at text": (lambda r: r.drift("a"), "x must be latent points.* got a str"),
    "diffusion at nothing": (lambda r: r.diffusion("a"), "x must be latent points"),
    "start that is not finite": (lambda r: lp.simulate(r, start=[np.nan, 0.0]), "finite states"),
}
OPTIONS = {
    "unknown option": (lambda: lp.ModelConfig(latent_dims=3), "no option 'latent_dims'. Did you mean 'latent_dim'"),
    "out of range": (lambda: lp.FitConfig(max_iterations=0), "max_iterations.*got 0"),
    "of the wrong type": (lambda: lp.ModelConfig(latent_dim="three"), "latent_dim.*'three'"),
    "unknown smoother": (lambda: lp.ModelConfig(smoother="kalman"), "smoother"),
    "configurations exchanged": (lambda: lp.fit(GOOD, lp.FitConfig()), "model must be a lamperti.ModelConfig"),
    "a dictionary as configuration": (lambda: lp.fit(GOOD, fit={"seed": 1}), "fit must be a lamperti.FitConfig.* dict"),
    "unknown kernel": (
        lambda: lp.fit(GOOD, lp.ModelConfig(kernel="sq", window=5, latent_dim=2, lag=1)),
        "unknown kernel 'sq'",
    ),
    "no horizon": (lambda: lp.forecast(fitted.result(), GOOD, horizon=0), "horizon must be .* got 0"),
    "seed that is not whole": (lambda: lp.simulate(fitted.result(), seed=0.5), "seed must be a whole number"),
    "a word as a truth value": (
        lambda: lp.forecast(fitted.result(), GOOD, drift_uncertainty="no"),
        "drift_uncertainty must be True or False; got 'no'",
    ),
    "a list as a truth value": (
        lambda: lp.forecast(fitted.result(), GOOD, observation_noise=[True]),
        "observation_noise must be True or False",
    ),
    "a number as a truth value": (
        lambda: lp.simulate(fitted.result(), observation_noise=0.5),
        "observation_noise must be True or False; got 0.5",
    ),
    "nothing as a truth value": (
        lambda: lp.simulate(fitted.result(), drift_uncertainty=None),
        "drift_uncertainty must be True or False; got None",
    ),
    "seed that is too large": (lambda: lp.FitConfig(seed=2**64), "FitConfig.seed"),
    "no model to forecast with": (lambda: lp.forecast(None, GOOD), r"NoneType.* lamperti.load\(path\)"),
    "a path to forecast with": (lambda: lp.forecast("m.safetensors", GOOD), r"got a str.* lamperti.load\(path\)"),
    "no model to simulate": (lambda: lp.simulate(None), r"lamperti.load\(path\)"),
    "no model to embed by": (lambda: lp.embed("m", GOOD), r"lamperti.load\(path\)"),
    "horizon that is a truth value": (lambda: lp.forecast(fitted.result(), GOOD, horizon=True), "horizon must be"),
    "a forecast larger than memory": (
        lambda: lp.forecast(fitted.result(), GOOD, horizon=2_000_000_000),
        "the forecast would take .* smaller horizon or n_samples",
    ),
    "a simulation larger than memory": (
        lambda: lp.simulate(fitted.result(), n_steps=10**12),
        "the simulation would take .* smaller n_steps or n_paths",
    ),
    "an option without its name": (lambda: lp.ModelConfig(3), r"go by name; got 3 .* ModelConfig\(latent_dim=3\)"),
    "a level that is text": (lambda: FORECAST.interval("a"), "level must be a number .* got 'a'"),
    "no level": (lambda: FORECAST.interval(None), "level must be a number"),
    "a number as run": (lambda: lp.fit(GOOD, fitted.MODEL, run=3), "a path must be text .* got 3"),
    "no run to resume": (lambda: lp.resume(None), "a path must be text"),
    "no samples": (lambda: lp.forecast(fitted.result(), GOOD, n_samples=-1), "n_samples must be"),
}


FILES_OF_MODELS = {
    "nothing to load": (lambda: lp.load(None), "a path must be text .* got None"),
    "nowhere to save": (lambda: lp.save(fitted.result(), None), "a path must be text .* got None"),
    "arguments exchanged": (
        lambda: lp.save("x", fitted.result()),
        r"got a str first. Write lamperti.save\(result, path",
    ),
}


@pytest.mark.parametrize("case", FILES_OF_MODELS)
def test_what_cannot_be_a_model_file_is_a_model_file_error(case):
    call, match = FILES_OF_MODELS[case]
    with pytest.raises(lp.ModelFileError, match=match):
        call()


@pytest.mark.parametrize("case", LIBRARY)
def test_data_that_cannot_be_used_is_a_series_error(case):
    call, match = LIBRARY[case]
    with pytest.raises(lp.SeriesError, match=match):
        call()


@pytest.mark.parametrize("case", WITH_A_MODEL)
def test_data_that_does_not_fit_the_model_is_a_series_error(case):
    call, match = WITH_A_MODEL[case]
    with pytest.raises(lp.SeriesError, match=match):
        call(fitted.result())


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_cannot_be_used_are_a_config_error(case):
    call, match = OPTIONS[case]
    with pytest.raises(lp.ConfigError, match=match):
        call()


def test_a_start_far_from_the_states_of_the_data_is_told():
    with pytest.warns(lp.LampertiWarning, match="start lies .* sds from the states of the training data"):
        lp.simulate(fitted.result(), start=[1e6, 1e6], n_steps=3)


def test_parts_that_do_not_go_together_are_refused_before_the_data_is_embedded(monkeypatch):
    monkeypatch.setattr("lamperti.train.start.linear_picture", lambda *a, **k: pytest.fail("too late"))
    with pytest.raises(lp.CapabilityError, match="which Matern32 does not have"):
        lp.fit(GOOD, lp.ModelConfig(kernel="matern32", smoother="moment-matching"))


def _table(*rows):
    return "\n".join(rows) + "\n"


def _csv(values, times=None):
    times = np.arange(len(values)) if times is None else times
    return _table("time,y", *(f"{t},{v}" for t, v in zip(times, values, strict=True)))


FILES = {
    "NaN undeclared": (_csv(_with(np.nan)), [], "NaN"),
    "infinite": (_csv(_with(np.inf)), [], "row 7, column 'y' holds inf"),
    "constant": (_csv(np.ones(40)), [], "'y' is constant"),
    "one sample": (_csv([1.0]), [], "at least 2 samples"),
    "shorter than the window": (_csv(GOOD[:20]), ["--window", "30", "--latent-dim", "2"], "window of 30 samples"),
    "ragged row": (_table("time,y", "0,1", "1,2,3"), [], "comma-separated"),
    "times that decrease": (_csv(GOOD, np.arange(40)[::-1]), [], "times must increase"),
    "text in a cell": (_table("time,y", "0,1", "1,abc", "2,3"), [], "row 1 holds 'abc'"),
    "unknown column": (_csv(GOOD), ["--columns", "z"], "no column 'z'"),
    "empty": ("", [], "empty"),
    "unknown option": (_csv(GOOD), ["--latent-dims", "3"], "--latent-dims"),
    "option out of range": (_csv(GOOD), ["--max-iterations", "0"], "max_iterations"),
    "option of the wrong type": (_csv(GOOD), ["--seed", "one"], "--seed"),
    "unknown kernel": (_csv(GOOD), ["--kernel", "sq", "--window", "5", "--latent-dim", "2"], "unknown kernel 'sq'"),
    "unknown smoother": (_csv(GOOD), ["--smoother", "kalman"], "smoother"),
    "missing configuration": (_csv(GOOD), ["--config", "none.toml"], "none.toml"),
}


# What is wrong with the options or the command itself; the rest is wrong with data or files.
WRONG_OPTIONS = {
    "unknown option",
    "option out of range",
    "option of the wrong type",
    "unknown kernel",
    "unknown smoother",
    "missing configuration",
}


def _refused(capsys, argv, match, code):
    """The command exits with this code and one line on stderr."""
    assert main([str(a) for a in argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("lamperti: ") and match in line and "Traceback" not in line


@pytest.mark.parametrize("case", FILES)
def test_fit_refuses_in_one_sentence_and_writes_nothing(case, tmp_path, capsys):
    content, options, match = FILES[case]
    data = tmp_path / "data.csv"
    data.write_text(content)
    _refused(capsys, ["fit", data, "--out", tmp_path / "run", *options], match, 2 if case in WRONG_OPTIONS else 1)
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    ("code", "command", "match"),
    [
        (1, ["fit", "none.csv", "--out", "run"], "none.csv cannot be opened"),
        (1, ["fit", ".", "--out", "run"], "not a regular file"),
        (2, ["fit", "--out", "run"], "DATA"),
        (2, ["fit", "good.csv"], "--out"),
        (2, ["fit", "good.csv", "--out", "good.csv"], "is a file"),
        (2, ["fit", "good.csv", "--out", "none/run"], "does not exist"),
        (2, ["fit", "good.csv", "more.csv", "--out", "run"], "more.csv"),
        (1, ["forecast", "none", "good.csv", "--out", "f.csv"], "there is no file none"),
        (1, ["forecast", ".", "good.csv", "--out", "f.csv"], "has no model.safetensors"),
        (1, ["forecast", "good.csv", "good.csv", "--out", "f.csv"], "not a lamperti model"),
        (2, ["forecast", "good.csv", "good.csv", "--out", "good.csv"], "is the data itself"),
        (2, ["forecast", "good.csv", "good.csv", "--out", "."], "is a folder"),
        (2, ["forecast", "good.csv", "good.csv", "--out", "none/f.csv"], "does not exist"),
        (2, ["forecast", "good.csv", "good.csv", "--out", "f.csv", "--level", "90"], "--level"),
        (1, ["simulate", "good.csv", "--out", "s.csv"], "not a lamperti model"),
        (1, ["embed", "good.csv", "good.csv", "--out", "e.csv"], "not a lamperti model"),
        (1, ["export", "good.csv", "m.safetensors"], "not a lamperti model"),
        (2, ["export", "good.csv", "good.csv"], "is the data itself"),
        (1, ["resume", "none"], "has no config.json"),
        (1, ["resume", ".", "good.csv"], "has no config.json"),
        (2, ["resume", ".", "--sort"], "only with DATA"),
        (2, ["config", "init", "good.csv"], "exists already"),
        (2, ["config", "init", "none/a.toml"], "does not exist"),
        (1, ["info", "good.csv"], "not a lamperti model"),
        (2, ["info"], "RUN"),
        (2, ["fti"], "fit"),
        (2, ["--frobnicate"], "--frobnicate"),
        (2, ["demo", "lorentz"], "Did you mean 'lorenz'"),
        (2, ["demo", "lorenz", "--minutes", "-1"], "max_minutes"),
    ],
)
def test_commands_refuse_in_one_sentence_and_write_nothing(code, command, match, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(_csv(GOOD))
    _refused(capsys, command, match, code)
    assert [p.name for p in tmp_path.iterdir()] == ["good.csv"]
    assert (tmp_path / "good.csv").read_text() == _csv(GOOD)
