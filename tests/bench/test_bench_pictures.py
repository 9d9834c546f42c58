"""Pictures of a learned model beside the truth."""

import dataclasses

import numpy as np
import problems_for_tests as tiny
import pytest

import fitted
from lamperti import viz
from lamperti.bench import pictures
from lamperti.bench.cells import Cell, picture_path
from lamperti.bench.report import CAPTIONS

CELL = Cell("tiny", 0.1, "lamperti", 0)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    snapshots = pictures.Snapshots()
    snapshots(0, fitted.result().model)
    snapshots(7, fitted.result().model)  # not one of the stages
    problem = dataclasses.replace(tiny.TINY, n_samples=60)
    drawings = pictures.of_simulated(
        problem, problem.test_data(0.1, 0), fitted.result(), problem.real_runs(), snapshots
    )
    return folder, pictures.draw(drawings, folder, CELL), snapshots


def test_every_picture_is_drawn_small_and_has_its_caption(drawn):
    folder, (names, notes), _ = drawn
    assert notes == []
    assert set(names) == {"state_space", "drift", "forecast", "free_run", "statistics", "evolution"}
    assert set(names) <= set(CAPTIONS)
    sizes = [picture_path(folder, CELL, name).stat().st_size for name in names]
    assert max(sizes) < 150_000 and min(sizes) > 1000


def test_a_picture_that_cannot_be_drawn_is_noted(tmp_path):
    def broken():
        raise ValueError("nothing to see")

    assert pictures.draw({"drift": broken}, tmp_path, CELL) == (
        [], ["picture drift was not drawn (ValueError: nothing to see)"]
    )  # fmt: skip


def test_snapshots_are_kept_at_their_iterations_and_followed_by_the_end(drawn):
    _, _, snapshots = drawn
    assert list(snapshots.models) == [0]
    stages = snapshots.stages(fitted.result(), fitted.data().series[:1])
    assert [iteration for iteration, _ in stages] == [0, fitted.result().history.best_iteration]
    assert stages[0][1][0].shape == (60, 2)


def test_training_is_watched_from_the_start_to_the_last_iteration():
    fitted.result()
    assert fitted.WATCHED == [0, 1, 2, 3]


def test_arrows_are_the_mean_motion_of_their_cells():
    x = np.random.default_rng(0).uniform(-1, 1, (4000, 3))
    rotation = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    figure = viz.drift_fields((x, x @ rotation.T), (x, 0.5 * x @ rotation.T))
    true, learned = (axes.collections[0] for axes in figure.axes[:2])
    longest = np.hypot(true.U, true.V).max()
    assert longest == pytest.approx(1.0)
    np.testing.assert_allclose(np.hypot(learned.U, learned.V), 0.5 * np.hypot(true.U, true.V), atol=1e-12)
    assert len(figure.axes) == 4  # the planes of x1 with x2 and with x3


def test_long_run_statistics_survive_escaped_paths_and_say_how_many():
    rng = np.random.default_rng(1)
    real = np.cumsum(rng.standard_normal((3, 400)), axis=1) * 0.1 + np.sin(np.arange(400) / 5)
    model = real.copy()
    model[0, 100:] = np.inf
    figure = viz.long_run(model, real, 0.1)
    assert "1 paths escaped" in figure.axes[2].get_title(loc="left")
    assert len(figure.axes[0].lines) == 2


def test_state_spaces_share_their_axes():
    rng = np.random.default_rng(2)
    true = [rng.standard_normal((50, 3))]
    figure = viz.state_spaces(true, [100 * true[0]])
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
