"""Every write of a run refused in turn: an error that says so, and what was committed before is whole."""

import errno
import os
import warnings

import numpy as np
import pytest
from tests.refusals import ERRORS, Refusal

import fitted
import lamperti as lp
from lamperti.config import Config
from lamperti.runs.commits import committed, read_commit
from lamperti.runs.folder import HISTORY, RunFolder, new_run
from lamperti.runs.sealed import read_config
from lamperti.train.loop import train


@pytest.fixture(scope="module")
def position():
    """Where a short training stood."""
    from lamperti.data import Scaler, Track, segment
    from lamperti.train.build import build_model, choose
    from lamperti.train.settings import settings_of

    series = fitted.data().series
    scaler = Scaler.from_series(series)
    tracks = [Track(scaler.values(s.values), s.mask, scaler.steps(s.steps)) for s in series]
    model = build_model(choose(fitted.MODEL, tracks)[0], tracks, seed=0)
    kept = []
    segments = segment(tracks, 30, model.encoder.lead)
    train(
        model, segments, None, settings_of(fitted.FIT.model_copy(update={"max_iterations": 1})), checkpoint=kept.append
    )
    return kept[-1]


def _begin(folder: RunFolder, position) -> None:
    folder.begin(Config(fitted.MODEL, fitted.FIT), fitted.data().series, position.state.model, None)


STEPS = {
    "config": _begin,
    "commit": lambda folder, position: folder.commit(position),
    "finish": lambda folder, position: folder.finish(fitted.result()),
}


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("step", STEPS)
def test_a_refusal_at_any_write_is_a_named_error_and_leaves_the_run_whole(step, number, position, tmp_path):
    work = STEPS[step]
    with new_run(tmp_path / "run", overwrite=False) as folder:
        _begin(folder, position)
        folder.commit(position)
        before = read_commit(committed(folder.path / "checkpoints")[0])
        with pytest.MonkeyPatch.context() as patch:
            counter = Refusal(patch, -1, 0)
            work(folder, position)
        assert counter.calls >= 3
        for k in range(1, counter.calls + 1):
            if step == "config":  # beginning anew forgets the run before, on purpose
                folder.commit(position)
            with pytest.MonkeyPatch.context() as patch:
                Refusal(patch, k, number)
                with pytest.raises((lp.RunError, lp.ModelFileError), match=os.strerror(number)):
                    work(folder, position)
            read_config(folder.path)
            assert all(read_commit(place) == before for place in committed(folder.path / "checkpoints"))
            assert step == "config" or committed(folder.path / "checkpoints")
            assert not [p for p in folder.path.iterdir() if p.name.endswith(".tmp")]


def test_a_history_that_cannot_be_written_does_not_hide_why_training_failed(position, tmp_path):
    error = lp.TrainingError("it does not learn")
    error.history = position.history
    with new_run(tmp_path / "run", overwrite=False) as folder:
        _begin(folder, position)
        with pytest.MonkeyPatch.context() as patch:
            Refusal(patch, 1, errno.ENOSPC)
            with pytest.warns(lp.LampertiWarning, match=HISTORY):
                folder.fail(error)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            folder.fail(error)
        assert "it does not learn" in (folder.path / HISTORY).read_text()


def test_a_position_of_a_version_without_axes_is_taken_up(position):
    from lamperti.train.position import restore
    from lamperti.train.settings import settings_of
    from lamperti.train.step import make_optimiser

    arrays, content = position.export()
    old = {name: array for name, array in arrays.items() if not name.endswith("dynamics.axes")}
    assert len(old) == len(arrays) - 2
    found = restore(old, content, position.state.model, make_optimiser(settings_of(fitted.FIT).rates))
    for model in (found.best, found.state.model):
        np.testing.assert_array_equal(model.dynamics.axes, np.eye(2))
    del old["best.dynamics.Z"]
    with pytest.raises(ValueError, match=r"best\.dynamics\.Z"):
        restore(old, content, position.state.model, make_optimiser(settings_of(fitted.FIT).rates))
