"""Recordings: read, split and scored; skipped with a reason where they are absent."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import fitted
import lamperti as lp
from lamperti.bench import real, runner
from lamperti.bench.cells import Cell, read_cells
from lamperti.bench.futures import diverges, future_rows
from lamperti.bench.jobs import Job, Outcome, Work
from lamperti.bench.measures import verdict_of
from lamperti.bench.methods import Fitted, even
from lamperti.bench.origins import part_of
from lamperti.bench.recordings import RECORDINGS, Recording, Walks
from lamperti.bench.suites import SUITES, jobs_of
from lamperti.cli import main
from lamperti.data.writing import write_csv
from lamperti.evaluation import scores


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Made-up files with the names and columns of the real ones."""
    place = tmp_path_factory.mktemp("data")
    rng, t = np.random.default_rng(0), np.arange(309.0)
    cycle = 50 + 40 * np.sin(t / 1.75) + 2 * rng.standard_normal(309)
    write_csv(place / "sunspots_yearly.csv", {"YEAR": 1700 + t, "SUNACTIVITY": cycle})
    walks = 20 + np.cumsum(rng.standard_normal((9, 60, 4)), axis=1)
    walks[:, :, 2] = 7.0  # a joint that never moves
    np.savez(place / "mocap35.npz", Xtr=walks[:5], Xval=walks[5:6], Xtest=walks[6:])
    smooth = lambda n: np.sin(np.arange(n) / 9.0) + 0.05 * rng.standard_normal(n)  # noqa: E731
    pd.DataFrame({"date": pd.date_range("1950-01-01", periods=732, freq="MS"), "sst": 25.0, "anomaly": smooth(732)}
                 ).to_csv(place / "elnino_monthly.csv", index=False)  # fmt: skip
    weeks = pd.DataFrame({"co2": 330 + 3 * smooth(2284)}, index=pd.date_range("1958-03-29", periods=2284, freq="7D"))
    weeks.iloc[[6, 7, 40, 1427]] = np.nan
    weeks.to_csv(place / "co2_weekly.csv")
    write_csv(place / "ecg_mitbih208_90hz.csv", {"t": np.round(np.arange(16_300) / 90, 6), "ecg": smooth(16_300)})
    hares = {"year": np.arange(1845, 1936), "hare": 10 ** smooth(91), "lynx": 10 ** (3 + 0.1 * smooth(91))}
    write_csv(place / "hare_lynx_1845_1935.csv", hares)
    levels = {name: smooth(1024) for name in ("uEst", "uVal", "yEst", "yVal")}
    write_csv(place / "cascaded_tanks_overflow.csv", levels)
    return place


def run(jobs, out, data):
    runner.run(jobs, Work(out, 1.0, data), {}, lambda event: None)
    return {result.cell.method: result for result in read_cells(out)}


def test_a_recording_is_scored_against_its_climatology(folder, tmp_path):
    jobs = jobs_of(SUITES["real"], seeds=1, methods=["climatology", "ar"], systems=["sunspots"])
    found = run(jobs, tmp_path, folder)
    ratios = {m: {r.horizon: r for r in c.rows if r.metric == "crps_over_climatology"} for m, c in found.items()}
    assert set(ratios["ar"]) == {1, 2, 5, 10}
    assert all(row.value < 0.5 and row.se > 0 for row in ratios["ar"].values())
    assert all(abs(row.value - 1) < 0.1 for row in ratios["climatology"].values())
    # of the 100 origins every third block of ten: the third, sixth and ninth
    assert ratios["ar"][1].n == 30
    assert all(c.rows[-1].metric == "diverging_share" and c.rows[-1].value == 0 for c in found.values())


def test_walks_are_forecast_from_their_first_frames(folder, tmp_path):
    jobs = jobs_of(SUITES["real"], seeds=1, methods=["climatology", "ar"], systems=["mocap"])
    found = run(jobs, tmp_path, folder)
    assert list(found) == ["climatology"], "autoregression needs a longer past and does not take part"
    (mse,) = [row for row in found["climatology"].rows if row.metric == "test_mse"]
    train, test = Walks().load(folder)
    expected = np.mean((test[:, 3:] - train.mean(axis=(0, 1))) ** 2)
    assert mse.value == pytest.approx(expected, rel=0.05)
    assert mse.n == 3


def test_absent_recordings_are_skipped_with_a_reason(tmp_path):
    jobs = jobs_of(SUITES["real"], seeds=1, methods=["ar"], systems=["lynx"])
    assert "Pass --data" in run(jobs, tmp_path, None)["ar"].reason
    found = run(jobs, tmp_path, tmp_path)["ar"]
    assert found.status == "skipped"
    assert "lynx_mackenzie_1821_1934.csv is not in the data folder" in found.reason


@pytest.mark.parametrize(
    ("name", "length", "channels", "first", "n_origins"),
    [
        # the third minute, however long the file is
        ("ecg", 10_800, 1, 10_800, (5400 - 60) // 15 + 1),
        ("elnino", 480, 1, 480, 732 - 480 - 12 + 1),
        ("co2", 1566, 1, 1566, (2284 - 1566 - 52) // 4 + 1),
        ("hare_lynx", 50, 2, 50, 91 - 50 - 10 + 1),
        ("sunspots", 200, 1, 200, 100),
        # all futures are in the second record, none in the one learned from
        ("tanks", 1024, 1, 100, (1024 - 100 - 64) // 8 + 1),
    ],
)
def test_recordings_are_split_in_time(folder, name, length, channels, first, n_origins):
    recording = RECORDINGS[name]
    assert isinstance(recording, Recording)
    split = recording.load(folder)
    starts = recording.origins(split)
    assert (len(split.train), split.train.n_channels, starts[0], len(starts)) == (length, channels, first, n_origins)
    assert starts[-1] + max(recording.horizons) <= len(split.tested) and starts[0] >= recording.context
    assert split.tested.names == split.train.names


def test_times_and_missing_samples_are_read_as_a_user_would(folder):
    months, weeks, years, beats, levels = (
        RECORDINGS[name].load(folder).train  # type: ignore[union-attr]
        for name in ("elnino", "co2", "hare_lynx", "ecg", "tanks")
    )
    assert set(np.diff(months.times)) == {days * 86400.0 for days in (28, 29, 30, 31)}
    assert set(np.diff(weeks.times)) == {7 * 86400.0} and (~weeks.mask).sum() == 4
    assert years.times[0] == 1845 and years.names == ("hare", "lynx")
    assert beats.dt == pytest.approx(1 / 90, rel=1e-3) and levels.dt == 4.0


def test_populations_are_taken_as_logarithms(folder):
    hares = RECORDINGS["hare_lynx"].load(folder).train.values  # type: ignore[union-attr]
    assert np.abs(hares[:, 0]).max() < 1.3 and np.abs(hares[:, 1] - 3).max() < 0.2


@pytest.mark.parametrize("name", ["elnino", "co2", "hare_lynx", "tanks", "ecg"])
def test_simple_methods_run_on_every_recording(folder, tmp_path, name):
    jobs = jobs_of(SUITES["real"], seeds=1, methods=["climatology", "persistence"], systems=[name])
    found = run(jobs, tmp_path, folder)
    assert [c.status for c in found.values()] == ["done", "done"], [c.reason for c in found.values()]
    ratio = {(m, r.horizon): r for m, c in found.items() for r in c.rows if r.metric == "crps_over_climatology"}
    nearest = min(h for _, h in ratio)
    assert ratio["persistence", nearest].value < 0.6 < ratio["climatology", nearest].value
    assert all(row.se > 0 for row in ratio.values())


def test_a_simple_method_counts_samples_and_fills_gaps_with_straight_lines():
    values = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [7.0, np.nan]])
    made = even(lp.Series(values, times=[0.0, 1.0, 2.0, 9.0], missing="nan"))
    np.testing.assert_array_equal(made.values, [[1, 5], [2, 5], [3, 5], [7, 5]])
    assert made.is_regular and made.mask.all()
    whole = lp.Series([1.0, 2.0, 4.0], dt=0.5)
    assert even(whole) is whole


def test_channels_are_scored_in_their_own_sds_and_averaged():
    rng = np.random.default_rng(3)
    values = rng.standard_normal((80, 2)) * [1.0, 1000.0]
    values[70, 1] = np.nan  # a future that nobody can score
    series = lp.Series(values, missing="nan")
    train, starts = series[:40], [40, 45, 50, 55, 60, 65]
    ensembles = {k: rng.standard_normal((64, 6, 2)) * [1.0, 1000.0] for k in starts}
    fitted = Fitted(lambda context, horizon, seed: ensembles[seed][:, :horizon], None, 0.0)
    rows = {(r.metric, r.horizon): r for r in future_rows(fitted, train, series, starts, 10, (1, 6), 5)}
    sds = train.values.std(axis=0)
    for h in (1, 6):
        each = [
            scores.crps(ensembles[k][None, :, h - 1 : h] / sds, values[None, k + h - 1 : k + h] / sds) for k in starts
        ]
        assert rows["crps", h].value == pytest.approx(np.nanmean(each))
        assert rows["crps", h].n == 6
    assert rows["diverging_share", None].value == 0.0
    ensembles[55][3, 2, 0] = 50.0  # one path, between the horizons that are scored
    again = {r.metric: r.value for r in future_rows(fitted, train, series, starts, 10, (1, 6), 5)}
    assert again["diverging_share"] == pytest.approx(1 / 6)


def test_a_forecast_diverges_outside_three_times_the_range():
    values = np.array([[0.0], [2.0], [np.nan]])
    inside = np.full((4, 3, 1), 3.9)
    for value, expected in ((3.9, False), (4.1, True), (-2.1, True), (np.nan, True), (np.inf, True)):
        inside[2, 1] = value
        assert diverges(inside, values) is expected, value


def test_every_third_block_of_origins_is_kept_for_reports():
    starts = range(100, 400, 10)
    kept, free = part_of(starts, "report", 2), part_of(starts, "development", 2)
    assert kept[:4] == [140, 150, 200, 210]
    assert sorted(kept + free) == list(starts) and len(free) == 2 * len(kept)
    # too short for three blocks of twelve: shorter ones
    few = part_of(range(14), "report", 12)
    assert few == [4, 5, 10, 11]


def test_results_of_the_two_parts_are_not_mixed(folder, tmp_path):
    def jobs(part):
        return jobs_of(SUITES["real"], seeds=1, methods=["climatology"], systems=["sunspots"], origins=part)

    found = run(jobs("development"), tmp_path, folder)
    assert next(r.n for r in found["climatology"].rows if r.horizon == 1) == 70
    with pytest.raises(lp.ConfigError, match="other --origins"):
        run(jobs("report"), tmp_path, folder)


def test_the_command_line_takes_the_part_of_the_origins(folder, tmp_path):
    where = ["--data", str(folder), "--out", str(tmp_path / "b"), "--seeds", "1", "--quiet"]
    chosen = ["--systems", "sunspots", "--methods", "climatology", "--origins", "development"]
    assert main(["bench", "run", "--suite", "real", *where, *chosen]) == 0
    (cell,) = read_cells(tmp_path / "b")
    assert next(r.n for r in cell.rows if r.horizon == 1) == 70


def test_what_a_fit_says_of_itself_is_kept_with_the_cell(tmp_path):
    sentence = "Forecasts are as good as those of a straight line."
    asked = Fitted(
        lambda *_: np.empty((0, 0, 0)), None, 0.0, SimpleNamespace(verdict=SimpleNamespace(sentence=sentence))
    )  # type: ignore
    assert verdict_of(asked) == sentence
    assert verdict_of(dataclasses.replace(asked, result=None)) == ""
    job = Job(Cell("laser", None, "lamperti", 0), "x", True, lambda work: Outcome((), verdict=verdict_of(asked)))
    assert run([job], tmp_path, None)["lamperti"].verdict == sentence


def test_relaxation_is_read_off_the_drift():
    @dataclasses.dataclass
    class Linear:
        """Stands for a fitted model of one coordinate with the Euler rate of a known process."""

        tau: float
        dt: float
        states: np.ndarray = dataclasses.field(default_factory=lambda: np.linspace(-2, 2, 50)[:, None])

        def drift(self, x):
            return np.expm1(-self.dt / self.tau) / self.dt * x, 0 * x

        def diffusion(self, x):
            return np.full_like(x, -np.expm1(-2 * self.dt / self.tau) / self.dt), 0 * x

        @property
        def model(self):
            emission = type("Emission", (), {"mean": staticmethod(lambda x: x)})
            return type("Model", (), {"emission": emission, "latent_dim": 1})

        @property
        def scaler(self):
            return type("Scaler", (), {"scale": np.array([3.0])})

    rows = {r.metric: r.value for r in real.relaxation_rows(Linear(0.02, 0.007), 0.007, 0.02, 9.0)}  # type: ignore
    assert rows["relaxation_time"] == pytest.approx(0.02)
    assert rows["one_step_variance_ratio"] == pytest.approx(1.0, rel=1e-6)


def test_a_fitted_model_of_a_recording_is_drawn(tmp_path):
    from lamperti.bench import pictures

    series = lp.systems.ornstein_uhlenbeck(1, 200, dt=0.1, seed=9).series[0]
    names, notes = pictures.draw(
        pictures.of_recording(fitted.result(), series, 60, 10, 120), tmp_path, Cell("x", None, "lamperti", 0)
    )
    assert (names, notes) == (["forecast", "free_run"], [])
