"""Recordings: read, split and scored; skipped with a reason where they are absent."""

import dataclasses

import numpy as np
import pytest

import fitted
import lamperti as lp
from lamperti.bench import real, runner
from lamperti.bench.cells import read_cells
from lamperti.bench.jobs import Work
from lamperti.bench.recordings import RECORDINGS, Recording, Walks
from lamperti.bench.suites import SUITES, jobs_of
from lamperti.data.writing import write_csv


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
    assert ratios["ar"][1].n == 309 - 10 - 200 + 1


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


def test_futures_lie_after_the_training_samples_and_within_the_recording():
    for recording in RECORDINGS.values():
        if isinstance(recording, Recording):
            length = recording.train + 3 * recording.stride + max(recording.horizons)
            starts = recording.origins(length)
            assert min(starts) >= recording.train and len(starts) == 4
            assert max(starts) + max(recording.horizons) <= length
            assert min(starts) >= recording.context


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
    from lamperti.bench.cells import Cell

    series = lp.systems.ornstein_uhlenbeck(1, 200, dt=0.1, seed=9).series[0]
    names, notes = pictures.draw(
        pictures.of_recording(fitted.result(), series, 60, 10, 120), tmp_path, Cell("x", None, "lamperti", 0)
    )
    assert (names, notes) == (["forecast", "free_run"], [])
