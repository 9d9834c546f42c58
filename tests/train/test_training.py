"""The training step and loop: one trace, refusals, interruption, selection, repeatability."""

import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.fitted import FIT, MODEL, data, result

import lamperti as lp
from lamperti._compile import PROGRAMS
from lamperti.data import Scaler, Track, segment
from lamperti.train.build import build_model, choose
from lamperti.train.gauge import change_coordinates, gauge_transform
from lamperti.train.loop import as_segment, train
from lamperti.train.schedule import Schedule
from lamperti.train.settings import settings_of
from lamperti.train.start import inducing_inputs
from lamperti.train.step import LearningRates, make_optimiser, make_step, masked_spans, start_state


@pytest.fixture(scope="module")
def tracks():
    series = data().series
    scaler = Scaler.from_series(series)
    return [Track(scaler.values(s.values), s.mask, scaler.steps(s.steps)) for s in series]


@pytest.fixture(scope="module")
def setting(tracks):
    model = build_model(choose(MODEL, tracks)[0], tracks, seed=0)
    segments = segment(tracks, 30, model.encoder.lead)
    optimiser = make_optimiser(LearningRates())
    step = make_step(optimiser, n_samples=2, n_transitions=segments.n_transitions, span_rate=0.5)
    return model, segments, optimiser, step


def test_step_is_traced_once_while_rates_change(setting):
    model, segments, optimiser, step = setting
    state = start_state(model, optimiser, key=jax.random.key(0))
    rng, schedule = np.random.default_rng(0), Schedule(0.1, 0.5, 3)
    before = PROGRAMS.traces
    for i in range(8):
        state, report = step(as_segment(segments.draw(rng, 4)), state, schedule.at(i, i / 8))
        assert bool(report.accepted)
    assert PROGRAMS.traces <= before + 1  # none if another test has made it


def test_step_that_is_not_finite_is_refused_and_changes_nothing(setting):
    model, segments, optimiser, step = setting
    state = start_state(model, optimiser, key=jax.random.key(0))
    batch = as_segment(segments.draw(np.random.default_rng(0), 4))
    poisoned = eqx.tree_at(lambda b: b.y, batch, batch.y.at[0, -1, 0].set(jnp.nan))
    before = [np.array(a) for a in jax.tree.leaves(state.model) if eqx.is_inexact_array(a)]
    after, report = step(poisoned, state, Schedule(0.1, 0.5, 3).at(1, 0.0))
    assert not bool(report.accepted)
    for a, b in zip(before, [a for a in jax.tree.leaves(after.model) if eqx.is_inexact_array(a)], strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_that_stays_not_finite_stops_with_a_diagnosis(setting, tracks):
    model, segments, _, _ = setting
    broken = eqx.tree_at(lambda m: m.dynamics.jitter, model, jnp.asarray(jnp.nan))
    with pytest.raises(lp.TrainingError, match="learning_rate") as caught:
        train(broken, segments, None, settings_of(FIT.model_copy(update={"max_iterations": 100})))
    # Five refusals before each of three returns, and five more; every return raises the jitter once.
    counts = {"refused step": 20, "rollback": 3, "raised jitter": 3}
    assert caught.value.history.counts() == counts
    assert [e.iteration for e in caught.value.history.events if e.kind == "rollback"] == [5, 10, 15]


def test_ctrl_c_returns_what_was_learned_so_far():
    def interrupt(record):
        if record.iteration == 2:
            raise KeyboardInterrupt

    stopped = lp.fit(data().series, MODEL, FIT, progress=interrupt)
    assert stopped.history.status == "interrupted"
    assert stopped.history.best_iteration >= 1
    assert np.isfinite(lp.forecast(stopped, data().series[0], horizon=3, n_samples=20).samples).all()


def test_same_seed_gives_the_same_fit_bit_by_bit():
    again = lp.fit(data().series, MODEL, FIT)
    for a, b in zip(jax.tree.leaves(result().model), jax.tree.leaves(again.model), strict=True):
        if eqx.is_array(a):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_history_terms_add_up_to_the_bound():
    for r in result().history.records:
        assert r.elbo == pytest.approx(r.emission + r.initial + r.transition + r.entropy - r.kl)
    assert result().history.status == "max_iterations"


def test_masked_spans_leave_the_asked_share_alone_and_are_spans():
    keep = np.asarray(masked_spans(jax.random.key(0), 4000, 60, 0.3))
    touched = (~keep).any(axis=1)
    assert abs(touched.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 4000)
    edges = np.abs(np.diff(keep.astype(int), axis=1)).sum(axis=1)
    assert edges.max() <= 2
    assert (~keep).sum(axis=1).max() <= 20


def test_inducing_inputs_of_few_points_are_found_without_a_warning():
    x = np.zeros((5, 2)) + np.arange(5)[:, None]
    assert np.isfinite(inducing_inputs(x, 12, "kmeans", np.random.default_rng(0))).all()


def test_gauge_makes_covariance_the_identity_and_diffusion_diagonal():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    cov, Q = a @ a.T + np.eye(3), b @ b.T + 0.1 * np.eye(3)
    T = gauge_transform(cov, Q)
    assert T is not None
    np.testing.assert_allclose(T @ cov @ T.T, np.eye(3), atol=1e-10)
    turned = T @ Q @ T.T
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-10)


def test_change_of_coordinates_changes_no_prediction_of_the_data(setting):
    model, segments, _, _ = setting
    batch = as_segment(segments.draw(np.random.default_rng(1), 1))
    y, mask, dt = batch.y[0], batch.mask[0], batch.dt[0]
    T = jnp.asarray([[0.8, 0.3], [-0.2, 1.1]])
    turned = change_coordinates(model, T)
    old, new = model.encoder(y, mask, dt), turned.encoder(y, mask, dt)
    np.testing.assert_allclose(new.mean, old.mean @ T.T, atol=1e-8)
    np.testing.assert_allclose(turned.emission.mean(new.mean), model.emission.mean(old.mean), atol=1e-5)
    np.testing.assert_allclose(
        jnp.einsum("ji,tjk,kl->til", T, new.potentials.precision, T), old.potentials.precision, atol=1e-6
    )


def test_gauge_move_in_training_keeps_going():
    fitted = lp.fit(data().series, MODEL, FIT.model_copy(update={"gauge_at": (2,)}))
    assert np.isfinite(fitted.history.best_score)


def test_states_in_a_plane_and_states_that_broke_have_no_gauge():
    assert gauge_transform(np.diag([1.0, 1e-12]), np.eye(2)) is None
    assert gauge_transform(np.eye(2), np.full((2, 2), np.nan)) is None


@pytest.mark.parametrize("smoother", ["linearised", "moment-matching", "particle", "linearised-parallel"])
def test_every_smoother_trains(smoother):
    model = MODEL.model_copy(update={"smoother": smoother, "n_particles": 20})
    fitted = lp.fit(data().series, model, FIT.model_copy(update={"max_iterations": 2}))
    assert np.isfinite(fitted.history.records[-1].elbo)


def test_papers_model_trains():
    """Its encoder, its potentials, its natural step, one kernel for each coordinate, a grid, a mean that stays zero."""
    model = MODEL.model_copy(
        update=dict(encoder="conv-gru", potentials="encoder", diffusion_step="natural", shared_kernel=False,
                    inducing="grid", linear_mean=False)
    )  # fmt: skip
    fitted = lp.fit(data().series, model, FIT)
    assert np.isfinite(fitted.history.records[-1].elbo)
    mean = fitted.model.dynamics.mean
    assert not np.any(mean.weight) and not np.any(mean.bias)


_HANG = """
import sys
sys.path.insert(0, {benchmarks!r})
import step
step.CASES["hang"] = dict(latent_dim=3, n_inducing=64, length=100, batch=16)
print(step.run_case("hang", 3, n_samples=4))
"""


def test_training_step_does_not_hang_on_two_cores(tmp_path):
    """jaxlib can deadlock in batched triangular solves; a child without our environment must come through."""
    benchmarks = os.path.join(os.path.dirname(__file__), "..", "..", "benchmarks")
    clean = {k: v for k, v in os.environ.items() if k not in ("PJRT_NPROC", "XLA_FLAGS")}
    clean["PYTHONPATH"] = ""
    done = subprocess.run(
        [sys.executable, "-c", _HANG.format(benchmarks=os.path.abspath(benchmarks))],
        capture_output=True,
        text=True,
        timeout=600,
        env=clean,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
