"""Stand-ins for recordings: split in time, forecast, run freely, and judged beside simple methods."""

import dataclasses
import math

import numpy as np
import pytest

from lamperti.bench import runner, stand_ins
from lamperti.bench.beside import beside_best
from lamperti.bench.cells import Cell, CellResult, Row, read_cells
from lamperti.bench.document import Heading, Table
from lamperti.bench.jobs import Work
from lamperti.bench.measures import free_run_rows
from lamperti.bench.methods import BASELINES, Fitted
from lamperti.bench.problems import STAND_INS, StandIn
from lamperti.bench.recorded import recorded
from lamperti.bench.recorded_targets import REAL, RECORDED
from lamperti.bench.recordings import RECORDINGS
from lamperti.bench.suites import SUITES, jobs_of
from lamperti.bench.summaries import Results
from lamperti.bench.targets import TARGETS, judge
from lamperti.data import systems

TINY = StandIn("ornstein_uhlenbeck", 0.1, 600, 1000, 40, (1, 5, 20), 10, n_paths=4, n_steps=300, settle=50)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand-ins")
    jobs = stand_ins.jobs([TINY], ["climatology", "ar"], 2, "report")
    assert runner.run(jobs, Work(folder, 1.0), {}, lambda event: None).done == 4
    return list(read_cells(folder))


def test_a_stand_in_is_forecast_and_run_freely(cells):
    assert all(c.cell.noise is None and not c.notes for c in cells)
    rows = {(c.cell.method, c.cell.seed, r.metric, r.horizon): r for c in cells for r in c.rows}
    assert rows["ar", 0, "crps_over_climatology", 1].value < 0.5
    assert rows["climatology", 0, "crps_over_climatology", 1].value == pytest.approx(1.0, abs=0.1)
    # of 39 origins every third block of two
    assert rows["ar", 0, "crps", 20].n == 12
    # the system is linear, so that autoregression is right about it in the long run
    assert rows["ar", 0, "escape_share", None].value == 0
    assert rows["ar", 0, "floor_ratio spectrum", None].value < 5
    assert ("climatology", 0, "escape_share", None) not in rows
    assert rows["ar", 0, "crps", 5].value != rows["ar", 1, "crps", 5].value, "each seed has a recording of its own"


def test_recordings_are_single_channels_without_observation_noise_split_in_time():
    assert set(STAND_INS) <= set(systems.__all__)
    for one in STAND_INS.values():
        assert 20_000 <= one.n_samples <= 100_000 and one.horizons[0] == 1
        starts = one.origins()
        assert starts[0] == one.train >= one.context and starts[-1] + max(one.horizons) <= one.n_samples
        assert len(starts) > 200
    small = dataclasses.replace(STAND_INS["saturated_double_well"], n_samples=60, train=40)
    series = small.recording(0)
    assert len(series) == 60 and series.n_channels == 1 and series.dt == pytest.approx(0.1)
    np.testing.assert_array_equal(series.values, small.recording(0).values)
    assert not np.any(series.values == small.recording(1).values)


def test_real_runs_are_as_long_as_free_ones_and_leave_out_the_transient():
    runs = TINY.real_runs()
    assert [r.shape for r in runs] == [(4, 300)] * 4
    assert len(np.unique(np.concatenate(runs)[:, 0])) == 16
    falling = StandIn("lorenz_transient", 0.02, 50, 80, 10, (1,), 1, n_paths=1, n_steps=20, settle=40)
    assert max(np.abs(r).max() for r in falling.real_runs()) < 12 < 50 < falling.recording(0).values[0]


def test_free_runs_settle_first_and_escape_from_the_range_of_the_recording():
    paths = np.tile(np.sin(np.arange(350) / 7.0), (4, 1))
    paths[:, :50] = 4.0  # still falling in

    def simulate(n_paths: int, n_steps: int, seed: int) -> np.ndarray:
        assert (n_paths, n_steps) == (4, 350)
        return paths[..., None]

    real = [np.sin(np.arange(300) / 7.0 + np.arange(4)[:, None] + k) for k in range(3)]
    fitted = Fitted(lambda *_: np.empty((0, 0, 0)), simulate, 0.0)

    def escaped(*recording: float) -> float:
        rows = free_run_rows(fitted, real, 50, np.array(recording))
        return next(r.value for r in rows if r.metric == "escape_share")

    assert escaped(-1.0, 3.0) == 0.0 and escaped(-1.0, 1.0) == 1.0
    settled = {r.metric: r.value for r in free_run_rows(fitted, real, 50, np.array([-1.0, 3.0]))}
    assert settled["sd_ratio"] == pytest.approx(1.0, abs=0.02)


def test_the_suite_has_every_stand_in_with_all_simple_methods():
    jobs = jobs_of(SUITES["recordings"])
    assert {j.cell.system for j in jobs} == set(STAND_INS)
    assert {j.cell.method for j in jobs} == {"lamperti", *BASELINES}
    assert len(jobs) == 5 * 8 * 3 and len({j.fingerprint for j in jobs}) == 5
    other = jobs_of(SUITES["recordings"], origins="development")
    assert not {j.fingerprint for j in jobs} & {j.fingerprint for j in other}


def made(ours: float, systems, method: str = "lamperti", **metrics: float) -> list[CellResult]:
    rows = [Row(name, ours, horizon=h) for h in (1, 5) for name in ("crps", "crps_over_climatology")]
    rows += [Row("coverage_90", 0.9, horizon=h) for h in (1, 5)]
    rows += [Row(name.replace("__", " "), value) for name, value in metrics.items()]
    return [CellResult(Cell(s, None, method, 0), "done", tuple(rows)) for s in systems]


def verdict(words: str, cells) -> str:
    (target,) = [t for t in TARGETS if t.what.startswith(words)]
    return judge(target, Results.of(cells)).outcome


def test_the_library_stands_beside_the_best_simple_method_at_each_horizon():
    def cell(method: str, near: float, far: float) -> CellResult:
        rows = [Row(name, v, horizon=h) for h, v in ((1, near), (5, far)) for name in ("crps", "crps_over_climatology")]
        return CellResult(Cell("laser", None, method, 0), "done", tuple(rows))

    found = beside_best(Results.of([cell("lamperti", 0.2, 0.6), cell("ar", 0.1, 0.9), cell("simplex", 0.4, 0.5)]))
    assert found["laser"].best == "simplex" and found["laser"].mean == pytest.approx(0.4 / 0.45)
    assert found["laser"].at == pytest.approx({1: 2.0, 5: 1.2})
    broken = beside_best(Results.of([cell("lamperti", math.inf, 0.6), cell("ar", math.inf, 0.5)]))
    assert broken["laser"].mean == math.inf and broken["laser"].at[1] == math.inf
    assert beside_best(Results.of([cell("lamperti", 0.2, 0.6)])) == {}


def test_targets_of_real_recordings_allow_two_to_be_worse_but_none_by_far():
    assert len(REAL) == 9 and "mocap" in RECORDINGS and "mocap" not in REAL
    simple = made(0.5, REAL, "ar")
    within, each = "real: mean CRPS over horizons", "real: the same, each"
    assert verdict(within, simple + made(0.52, REAL)) == "met"
    two = simple + made(0.52, REAL[2:]) + made(0.56, REAL[:2])
    assert verdict(within, two) == "met" and verdict(each, two) == "met"
    assert verdict(within, simple + made(0.52, REAL[3:]) + made(0.56, REAL[:3])) == "missed"
    assert verdict(each, simple + made(0.4, REAL[1:]) + made(0.6, REAL[:1])) == "missed"
    assert verdict(within, simple + made(0.4, REAL[1:])) == "partly run"
    assert verdict("real: share of forecasts", made(0.4, REAL, diverging_share=0.0)) == "met"
    assert verdict("real: share of forecasts", made(0.4, REAL[:1], diverging_share=0.01)) == "missed"


def test_targets_of_the_stand_ins_ask_for_each_number():
    fine = {"escape_share": 0.0, "floor_ratio__values": 4.9, "floor_ratio__spectrum": 1.0}
    names = list(STAND_INS)
    good = made(0.5, names, **fine)
    for words in ("stand-ins: share", "stand-ins: W1 of the values", "stand-ins: 90"):
        assert verdict(words, good) == "met", words
    assert verdict("stand-ins: share", made(0.5, names, escape_share=0.125)) == "missed"
    far = made(0.5, names[:1], **(fine | {"floor_ratio__values": 5.1}))
    assert verdict("stand-ins: W1 of the values", far) == "missed"
    spikes = {"floor_ratio__peak__heights": 4.0, "floor_ratio__state__space": 9.8}
    assert verdict("stand-ins: W1 of peaks", made(0.5, names[:1], **spikes)) == "missed"
    assert verdict("stand-ins: W1 of peaks", good) == "not run"
    # real recordings are none of their business
    assert verdict("stand-ins: share", made(0.5, REAL, escape_share=0.125)) == "not run"
    beside = made(0.5, names, "ar")
    assert verdict("stand-ins: CRPS", [*beside, *made(0.53, names)]) == "missed"
    assert verdict("stand-ins: CRPS", [*beside, *made(0.5, names)]) == "partly run"  # two horizons of five
    assert all(target in TARGETS for target in RECORDED)


def test_the_report_tells_recordings_apart_and_shows_what_a_fit_says_of_itself():
    spoken = [dataclasses.replace(c, verdict="Better than all simple methods.") for c in made(0.4, ["ecg"])]
    found = [*spoken, *made(0.5, ["ecg", "beta_cell"], "ar"), *made(0.45, ["beta_cell"], diverging_share=0.25)]
    blocks = recorded(found, Results.of(found))
    assert [b.text for b in blocks if isinstance(b, Heading)] == [
        "Simulated recordings", "beta_cell", "Real recordings", "ecg",
    ]  # fmt: skip
    summaries = [b for b in blocks if isinstance(b, Table) and b.header[0] == "recording"]
    (cell,), (ecg,) = (table.rows for table in summaries)
    assert cell[:4] == ("beta_cell", "0.900", "ar", "h = 1: 0.9, h = 5: 0.9") and cell[5:] == ("0.250", "–")
    assert ecg[4] == "h = 1: 0.9, h = 5: 0.9" and ecg[6] == "Better than all simple methods."
    assert all(len(row) == len(table.header) for table in summaries for row in table.rows)
    assert recorded([], Results.of([])) == []
