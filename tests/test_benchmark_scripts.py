"""The studies in benchmarks/ at a size that takes seconds."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lamperti as lp
from lamperti.data.systems import ornstein_uhlenbeck

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def test_two_seconds_of_damaged_files_find_nothing(script, tmp_path, monkeypatch):
    out = tmp_path / "fuzz.json"
    targets = ("csv", "npz", "zarr", "model")
    chosen = [word for target in targets for word in ("--target", target)]
    options = ["--minutes", str(0.5 / 60), "--keep", str(tmp_path / "found"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["fuzz.py", *chosen, *options])
    with pytest.raises(SystemExit) as ended:
        script("fuzz").main()
    results = json.loads(out.read_text())
    assert ended.value.code == 0, results
    assert set(results) == set(targets)
    assert all(r["files"] and r["seconds"] >= 0.5 and not r["findings"] for r in results.values())
    assert not (tmp_path / "found").exists()


def test_a_finding_of_the_fuzzer_is_kept_and_counted(script, tmp_path, monkeypatch):
    fuzz = script("fuzz")

    def fail(path, **options):
        raise KeyError("not documented")

    monkeypatch.setattr(fuzz.lp, "read", fail)
    result = fuzz.run("csv", 1.0, 0, tmp_path)
    assert len(result["findings"]) == result["files"] == 100
    assert "not documented" in (tmp_path / "csv-0-0.txt").read_text()
    assert list(tmp_path.glob("csv-0-0.*"))


def test_kills_are_planned_at_all_places_and_the_same_for_a_seed(script):
    import random

    kill = script("kill")
    plans = [kill.plan(random.Random(f"0 {i}")) for i in range(200)]
    assert plans == [kill.plan(random.Random(f"0 {i}")) for i in range(200)]
    share = {where: sum(p.where == where for p in plans) / 200 for where in ("early", "training", *kill._POINTS)}
    assert min(share.values()) > 0.1 and sum(share.values()) == pytest.approx(1.0)
    assert all(bool(p.at) != bool(p.wait) for p in plans)


def test_a_study_of_kills_goes_on_from_its_counts_and_refuses_those_of_another(script, tmp_path):
    kill = script("kill")
    out = tmp_path / "kill.json"
    counts = kill._before(out, 3, 40)
    assert counts["kills"] == 0
    kill._keep(out, counts | {"kills": 7})
    assert kill.study(7, 3, 40, out=out)["kills"] == 7  # enough: nothing is started
    with pytest.raises(SystemExit, match="other settings"):
        kill.study(7, 4, 40, out=out)


def test_the_grid_of_hard_fits_counts_by_kind_and_adds_up_its_seconds(script):
    stability = script("stability")
    fits = {
        "short lorenz 0": {"outcome": "finished", "wall_s": 2.0, "cpu_s": 3.0},
        "short lorenz 1": {"outcome": "diagnosed", "wall_s": 1.0, "cpu_s": 1.0},
        "noisy lorenz 0": {"outcome": "finished"},
    }
    found = stability.summary(fits)
    assert found["counts"]["short"] == {"finished": 1, "diagnosed": 1}
    assert found["counts"]["noisy"] == {"finished": 1} and found["counts"]["gaps"] == {}
    assert (found["wall_s"], found["cpu_s"]) == (3, 4)
    assert len(list(stability.grid(list(stability.KINDS)))) == 200


def test_a_path_stays_within_three_times_the_range_of_the_data_or_runs_away(script):
    stability = script("stability")
    data = [lp.Series([0.0, 1.0, 99.0], mask=[True, True, False]), lp.Series([0.5, 2.0])]  # from 0 to 2
    inside, at, beyond, nowhere = (np.full((1, 2, 1), value) for value in (1.0, 4.0, 4.01, np.nan))
    assert stability.stays(inside, data) and stability.stays(at, data)
    assert not stability.stays(beyond, data) and not stability.stays(nowhere, data)


GOOD = {"figures": 2, "missing": [], "width": 1265, "height": 9, "console": [], "requests": [], "bytes": 9}
BAD = {
    "no figure": {"figures": 0},
    "not drawn: space": {"missing": ["space"]},
    "console says: oh": {"console": ["oh"]},
    "asks for https://a/b": {"requests": ["data:,", "https://a/b"]},
    "1400 pixels": {"width": 1400},
    "8000001 bytes": {"bytes": 8_000_001},
}


@pytest.mark.parametrize("said", BAD)
def test_what_a_reader_would_miss_is_said_of_a_report(said, script):
    browser = script("browser")
    assert browser.fails(GOOD) == []
    (only,) = browser.fails(GOOD | BAD[said])
    assert said in only


def test_the_browser_finds_what_is_wrong_with_a_page(script, tmp_path, monkeypatch):
    browser = script("browser")
    program = browser.find_chromium()
    if program is None:
        pytest.skip("no Chromium on the path")
    page = tmp_path / "bad.html"
    page.write_text(
        "<html><body><div class='plot' id='drawn' data-drawn='yes'><svg class='main-svg'></svg></div>"
        "<div class='plot' id='empty'></div><div style='width:2000px'>wide</div><img src='http://127.0.0.1:9/a.png'>"
        "<script>console.error('first'); throw new Error('second');</script></body></html>"
    )
    monkeypatch.setattr(browser, "_PATIENCE", 1.0)
    with browser.Browser(program) as opened:
        found, picture = browser.look(opened, page)
    assert found["figures"] == 2 and found["missing"] == ["empty"] and found["width"] >= 2000
    assert found["requests"] == ["http://127.0.0.1:9/a.png"]
    assert any("first" in text for text in found["console"]) and any("second" in text for text in found["console"])
    assert len(found["fails"]) == 4 and picture.startswith(b"\x89PNG")


def test_steps_of_a_linear_system_are_gaussian_whichever_way_they_are_made(script):
    # A linear system has one covariance for all states: the true law, and both ways to imitate it, are the same.
    made = ornstein_uhlenbeck(4, 500, dt=0.1, seed=0)
    x = made.states.reshape(-1, 2)
    steps = script("constant_noise").true_and_gaussian(made.system, x, 0.1, n_grid=15, n_draws=4000)
    ends = {name: step(np.tile(x[:50], (400, 1)), np.random.default_rng(1)) for name, step in steps.items()}
    cov = made.system.process_covariance(0.1)
    sd = np.sqrt(np.diag(cov))
    for end in ends.values():
        error = end.reshape(400, 50, 2) - x[:50] @ made.system.transition_matrix(0.1).T
        assert np.all(np.abs(error.mean(axis=0)) < 5 * sd / np.sqrt(400) + 0.05 * sd)
        np.testing.assert_allclose(np.cov(error.reshape(-1, 2).T), cov, atol=0.05 * cov.max())


def test_both_oracles_are_compared_on_the_origins_of_the_committed_benchmark(script, tmp_path, monkeypatch):
    options = ["--origins", "6", "--context", "9", "--particles", "200", "--out", str(tmp_path)]
    table = ["--table", str(FOLDER.parent / "docs/benchmarks/core/results.csv")]
    chosen = ["--systems", "double_well", "ornstein_uhlenbeck", "excited_oscillator"]
    monkeypatch.setattr(sys, "argv", ["oracle_noise_free.py", *options, *table, *chosen])
    script("oracle_noise_free").main()
    found = json.loads((tmp_path / "oracle_noise_free.json").read_text())["systems"]
    assert found["double_well"]["oracle"] < found["double_well"]["former"]
    assert found["ornstein_uhlenbeck"]["former_over_oracle"] == 1.0
    assert "best" not in found["excited_oscillator"] and found["double_well"]["best_method"] == "lamperti"


def test_every_error_made_on_purpose_can_still_be_made(script):
    """Its text occurs once, and the tests that should notice exist; else write it anew in benchmarks/mutants.toml."""
    mutants = script("mutants")
    every = mutants.mutants()
    assert len(every) >= 60
    root = FOLDER.parent
    for mutant in every:
        text = (root / "src" / "lamperti" / mutant.file).read_text()
        assert text.count(mutant.old) == 1, f"{mutant.name}: old text occurs {text.count(mutant.old)} times"
        assert mutant.new != mutant.old and mutant.wrong, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            source = (root / "tests" / file).read_text()
            assert not name or f"def {name}(" in source, f"{mutant.name}: there is no {test}"


def test_results_of_errors_made_on_purpose_are_of_the_list_and_nearly_all_were_noticed(script):
    mutants = script("mutants")
    results = json.loads((FOLDER / "results" / "mutants.json").read_text())
    assert list(results) == [mutant.name for mutant in mutants.mutants()]
    assert sum(r["noticed"] for r in results.values()) >= mutants.ENOUGH * len(results)
    assert mutants.PAGE.read_text() == mutants.table(results)


def test_an_error_is_made_in_a_copy_that_the_tests_import(script, tmp_path):
    mutants = script("mutants")
    for name, text in {
        "src/lamperti/__init__.py": "half = 0.5\nother = 1\n",
        "tests/test_half.py": "import lamperti\n\n\ndef test_half():\n    assert lamperti.half == 0.5, 'not a half'\n",
        "pyproject.toml": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def judged(old, new):
        mutant = mutants.Mutant("m", "wrong", "__init__.py", old, new, ("test_half.py",))
        return mutants.judge(mutant, tmp_path, tmp_path / "cache")

    noticed = judged("half = 0.5", "half = 1.0")
    assert noticed.noticed and noticed.test == "test_half.py::test_half" and "not a half" in noticed.message
    assert not judged("other = 1", "other = 2").noticed
    with pytest.raises(SystemExit, match=r"occurs 2 times in __init__\.py, not once"):
        judged(" = ", " == ")
    assert (tmp_path / "src/lamperti/__init__.py").read_text().startswith("half = 0.5")


def test_a_few_records_tell_processes_with_a_law_from_those_without(script, monkeypatch):
    study = script("stationarity")
    monkeypatch.setattr(study.systems, "__all__", ["ornstein_uhlenbeck"])
    kept = ("white noise, 1000", "3 slow cycles, 1000", "trend and season, 1000", "growth to the 1000-fold, 1000")
    for table in (study.STATIONARY, study.WITHOUT_LAW):
        for name in [*table]:
            if name not in kept:
                monkeypatch.delitem(table, name)
    found = study.study(3)
    assert set(found["stationary"].values()) == {1.0} and len(found["stationary"]) == 4
    assert set(found["without a law"].values()) == {0.0} and len(found["without a law"]) == 2
