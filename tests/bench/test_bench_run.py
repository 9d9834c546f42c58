"""The benchmark runs, goes on where it stopped, and keeps what failed."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import problems_for_tests as tiny
import pytest

import fitted
import lamperti as lp
from lamperti.bench import measures, runner
from lamperti.bench.cells import Cell, CellResult, Row, path_of, read_cell, read_cells, write_cell
from lamperti.bench.jobs import Job, Outcome, Work
from lamperti.bench.methods import Training, fit_method, learned
from lamperti.bench.problems import CORE, FINAL, HORIZONS, PAPER, PROBLEMS, QUICK
from lamperti.bench.suites import SUITES, jobs_of
from lamperti.bench.table import COLUMNS, CSV, PARQUET
from lamperti.cli import main
from lamperti.data import systems
from lamperti.evaluation import oracles
from lamperti.train.interrupts import Terminated

SOURCE = {"command": "lamperti bench run", "version": "0.0.0", "machine": "here"}


def quiet(event: runner.Event) -> None:
    pass


def run(jobs: list[Job], folder: Path, **options) -> runner.Summary:
    return runner.run(jobs, Work(folder, 1.0), SOURCE, quiet, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    summary = run(tiny.jobs(), folder)
    assert summary == runner.Summary(done=6, failed=0, skipped=0, kept=0)
    return folder


def without_times(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / CSV)
    return table[table["metric"] != "fit_minutes"].reset_index(drop=True)


def test_the_table_has_a_row_for_every_metric_and_horizon(whole):
    table = pd.read_csv(whole / CSV)
    assert tuple(table.columns) == COLUMNS
    assert not table.duplicated(["system", "noise", "method", "seed", "metric", "horizon"]).any()
    skill = table[table["metric"] == "skill_fraction"]
    assert len(skill) == 6 * 2
    assert (skill["se"] > 0).all() and (skill["n"] == 12).all()
    # climatology is the zero of the scale; what it draws is a sample, so only nearly
    assert skill[skill["method"] == "climatology"]["value"].abs().max() < 0.2
    # free runs only of the method that can
    assert set(table[table["metric"] == "floor_ratio spectrum"]["method"]) == {"ar"}
    assert (table["command"] == SOURCE["command"]).all()
    pd.testing.assert_frame_equal(pd.read_parquet(whole / PARQUET), table, check_dtype=False)


@pytest.mark.parametrize("signal", [KeyboardInterrupt, Terminated])
def test_an_interrupted_run_goes_on_to_the_same_table(signal, whole, tmp_path):
    def stop(work):
        raise signal

    jobs = tiny.jobs()
    stopped = [*jobs[:2], dataclasses.replace(jobs[2], run=stop), *jobs[3:]]
    first = run(stopped, tmp_path)
    assert first.interrupted and first.done == 2 and first.terminated == (signal is Terminated)
    assert len(list(read_cells(tmp_path))) == 2
    second = run(jobs, tmp_path)
    assert (second.done, second.kept, second.interrupted) == (4, 2, False)
    pd.testing.assert_frame_equal(without_times(tmp_path), without_times(whole))


def test_oracles_are_shared_by_the_methods_of_a_problem_and_not_by_its_seeds(whole):
    assert len(list((whole / "oracles").glob("oracle-ornstein*"))) == 2


def test_each_seed_is_judged_on_a_test_set_of_its_own(whole):
    table = pd.read_csv(whole / CSV)
    limit = table[(table["metric"] == "oracle_over_climatology") & (table["horizon"] == 1)]
    by_seed = limit.groupby("seed")["value"].unique()
    assert len(by_seed) == 2 and by_seed[0][0] != by_seed[1][0]
    assert all(len(values) == 1 for values in by_seed), "one test set for all methods of a seed"
    assert not np.isin(tiny.TINY.test_data(0.1, 0).clean, tiny.TINY.test_data(0.1, 1).clean).any()


def test_crps_over_the_oracles_stands_beside_skill(whole):
    table = pd.read_csv(whole / CSV).set_index(["metric", "method", "seed", "horizon"])["value"]
    over = table["crps_over_oracle"]
    assert len(over) == 6 * 2
    np.testing.assert_allclose(over, table["crps_over_climatology"] / table["oracle_over_climatology"])


def test_results_against_another_oracle_or_other_test_sets_are_not_mixed_in(tmp_path, monkeypatch):
    (job,) = tiny.jobs(1)[:1]
    run([job], tmp_path)
    for name, value in (("lamperti.evaluation.oracles.DEFINITION", "x"), ("lamperti.bench.problems.TEST_SEED", 7)):
        with monkeypatch.context() as patch:
            patch.setattr(name, value)
            with pytest.raises(lp.ConfigError, match="another definition"):
                run(tiny.jobs(1)[:1], tmp_path)
    assert run(tiny.jobs(1)[:1], tmp_path).kept == 1


def test_a_failed_cell_is_kept_with_its_reason_and_retried_on_request(tmp_path):
    working, calls = tiny.jobs(1)[0], []

    def broken(work):
        calls.append(1)
        raise np.linalg.LinAlgError("singular as can be")

    failing = dataclasses.replace(working, run=broken)
    assert run([failing], tmp_path).failed == 1
    kept = read_cell(path_of(tmp_path, failing.cell))
    assert kept.status == "failed"
    assert "LinAlgError" in kept.reason and "singular as can be" in kept.reason
    assert run([failing], tmp_path).kept == 1 and len(calls) == 1
    assert run([working], tmp_path, retry=True).done == 1
    assert read_cell(path_of(tmp_path, failing.cell)).status == "done"


def test_what_cannot_run_here_is_skipped_and_looked_at_again(tmp_path):
    def absent(work):
        raise lp.DependencyError("install it")

    job = dataclasses.replace(tiny.jobs(1)[0], run=absent)
    assert run([job], tmp_path).skipped == 1
    assert run([job], tmp_path).skipped == 1
    assert read_cell(path_of(tmp_path, job.cell)).reason == "install it"


def test_results_of_other_settings_are_not_mixed_in(tmp_path):
    job = Job(Cell("a", 0.1, "lamperti", 0), "one", True, lambda work: Outcome((Row("x", 1.0),)))
    run([job], tmp_path)
    with pytest.raises(lp.ConfigError, match="another definition"):
        run([dataclasses.replace(job, fingerprint="two")], tmp_path)
    with pytest.raises(lp.ConfigError, match="trained for 1 minutes, not 2"):
        runner.run([job], Work(tmp_path, 2.0), SOURCE, quiet)


def test_a_cell_reads_back_as_it_was_written(tmp_path):
    rows = (Row("a", math.inf, math.nan, 5, 3), Row("b", -1.5, 0.25))
    cell = Cell("laser", None, "lamperti", 2)
    result = CellResult(cell, "done", rows, notes=("n",), pictures=("p",), minutes=1.0, provenance=SOURCE)
    write_cell(tmp_path, result)
    back = read_cell(path_of(tmp_path, cell))
    assert repr(back) == repr(result)
    path_of(tmp_path, cell).write_text("{}")
    with pytest.raises(lp.ConfigError, match="is not a result"):
        read_cell(path_of(tmp_path, cell))


def test_time_left_follows_experience():
    jobs = tiny.jobs(2)
    seen = [CellResult(jobs[0].cell, "done", seconds=100.0)]
    # two cells of the method seen, four of 20 s each
    assert runner._left(jobs, seen, 1.0) == 2 * 100.0 + 4 * 20.0


def test_problems_have_the_sizes_that_were_agreed():
    assert len(CORE) == 8 and len(FINAL) == 3
    assert {PROBLEMS[name].system for name in (*CORE, *FINAL)} < {name for name in systems.__all__ if name.islower()}
    oscillator, population = PROBLEMS["excited_oscillator"], PROBLEMS["lotka_volterra_1khz"]
    assert (oscillator.n_series, oscillator.n_samples, oscillator.context, oscillator.far) == (120, 500, 200, 300)
    assert (population.n_series, population.n_samples, population.dt) == (10, 600, 0.001)
    assert all(problem.horizons == HORIZONS for problem in PROBLEMS.values())
    for problem in (*PROBLEMS.values(), tiny.TINY):
        small = dataclasses.replace(problem, n_series=2, n_origins=2, n_samples=12)
        assert small.training_data(0.1, 0).clean.shape == (2, 12, 1)
        assert small.training_data(0.0, 0).system.dimension == problem.latent_dim
    with_far = PROBLEMS["excited_oscillator"].test_data(0.0, 0)
    assert with_far.clean.shape == (100, 500, 1)


def test_test_data_is_not_training_data():
    train, test = tiny.TINY.training_data(0.1, 0), tiny.TINY.test_data(0.1, 0)
    other = tiny.TINY.training_data(0.1, 1)
    assert not np.isin(test.clean, train.clean).any()
    assert not np.isin(other.clean, train.clean).any()
    assert len(tiny.TINY.real_runs()) >= 2


def test_suites_have_known_cells():
    assert len(jobs_of(SUITES["quick"])) == len(QUICK) * 8
    assert len(jobs_of(SUITES["core"])) == 8 * 3 * 3 * len(SUITES["core"].methods)
    assert len(jobs_of(SUITES["paper"])) == len(PAPER) * 3 * 3 * len(SUITES["paper"].methods)
    assert {job.cell.system for job in jobs_of(SUITES["final"])} == set(FINAL)
    few = jobs_of(SUITES["all"], seeds=1, noises=[0.0], methods=["lamperti", "ar"], systems=["lorenz"])
    assert [job.cell for job in few] == [Cell("lorenz", 0.0, "ar", 0), Cell("lorenz", 0.0, "lamperti", 0)]
    with pytest.raises(lp.ConfigError, match="Did you mean 'lorenz'"):
        jobs_of(SUITES["quick"], systems=["lorentz"])
    with pytest.raises(lp.ConfigError, match="no method 'arima'"):
        jobs_of(SUITES["quick"], methods=["arima"])


def test_systems_of_the_final_table_are_in_no_other_suite():
    for name, suite in SUITES.items():
        met = {problem.name for problem in suite.problems} & set(FINAL)
        assert met == (set(FINAL) if name == "final" else set()), name


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("name", FINAL)
def test_every_system_of_the_final_table_has_an_oracle(name, noise):
    problem = dataclasses.replace(PROBLEMS[name], context=40, horizons=(1, 2), n_origins=12)
    test = problem.test_data(noise, 0)
    contexts = np.stack([s.values[:40, 0] for s in test.series])
    samples = oracles.particle_forecast(
        test.system, contexts, problem.dt, float(test.noise_sd[0]), 1, n_particles=400, n_samples=50
    )
    error = np.abs(samples.mean(axis=1)[:, 0, 0] - test.clean[:, 40, 0])
    assert np.median(error) < 0.2 * test.clean.std()


def test_a_learned_model_is_measured_in_every_way(tmp_path):
    problem = dataclasses.replace(tiny.TINY, far=20)
    test = problem.test_data(0.1, 0)
    method = learned(fitted.result(), noise=False, minutes=0.1)
    rows = measures.free_run_rows(method, [run[:, :60] for run in problem.real_runs()])
    rows += measures.far_rows(problem, test, method)
    rows += measures.embedding_rows(problem, test, fitted.result(), tmp_path)
    rows += measures.equation_rows(problem, test, fitted.result())
    rows += measures.fit_rows(method)
    found = {row.metric: row.value for row in rows}
    assert found["latent_dim"] == 2 and found["iterations"] == 3
    assert {"relative_rmse", "peak_sd_ratio", "hidden_r2_over_oracle x2", "floor_ratio spectrum"} <= set(found)
    assert found["diffusion_share"] > 0 and found["one_step_variance_ratio"] > 0
    assert math.isfinite(found["eigenvalue_error"])
    # kept beside the forecasts' oracle and read again
    again = measures.oracle_r2(problem, test, tmp_path)
    np.testing.assert_allclose(found["hidden_r2 x2"] / again[1], found["hidden_r2_over_oracle x2"])


@pytest.mark.parametrize("status", ["interrupted", "terminated"])
def test_a_fit_that_was_stopped_does_not_become_a_result(status, monkeypatch):
    stopped = dataclasses.replace(fitted.result(), history=dataclasses.replace(fitted.result().history, status=status))
    monkeypatch.setattr("lamperti.bench.methods.fit", lambda *args, **options: stopped)
    with pytest.raises(Terminated if status == "terminated" else KeyboardInterrupt):
        fit_method("lamperti", fitted.data().series, Training(seed=0, minutes=1.0, horizon=5))


def test_only_the_told_method_is_told_the_dimension(monkeypatch):
    told = []
    monkeypatch.setattr("lamperti.bench.methods.fit", lambda s, m, f, **o: (told.append((m, f)), fitted.result())[1])
    for method in ("lamperti", "lamperti-told"):
        fit_method(method, fitted.data().series, Training(seed=4, minutes=1.5, horizon=5, latent_dim=2))
    defaults, fit_options = lp.ModelConfig(), lp.FitConfig(seed=4, max_minutes=1.5)
    assert told == [(defaults, fit_options), (lp.ModelConfig(latent_dim=2), fit_options)]


def test_the_command_line_runs_a_part_and_tells_of_each_cell(tmp_path, capsys, monkeypatch):
    small = dataclasses.replace(SUITES["quick"], problems=(tiny.TINY,))
    monkeypatch.setitem(SUITES, "quick", small)
    options = ["--methods", "climatology", "persistence", "--noise", "0.1", "--out", str(tmp_path / "b")]
    assert main(["bench", "run", *options]) == 0
    told = capsys.readouterr().err
    assert "[2/2] tiny 10% noise, persistence, seed 0: done" in told and "left 0:00" in told
    assert main(["bench", "run", *options]) == 0
    assert "2 there already" in capsys.readouterr().out
    assert main(["bench", "run", *options, "--retry", "--quiet", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and json.loads(captured.out)["kept"] == 2
    assert main(["bench", "run", "--methods", "ars", "--out", str(tmp_path / "b")]) == 2
    assert "Did you mean 'ar'" in capsys.readouterr().err
