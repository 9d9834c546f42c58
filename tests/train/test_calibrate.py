"""Noises, loadings and linear drift by the likelihood of the data: exact for linear drifts."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from tests.fitted import FIT, MODEL, data, result

import lamperti as lp
from lamperti._params import realise
from lamperti.data import segment
from lamperti.data.bridging import tracks
from lamperti.dynamics.mean import zero_mean
from lamperti.math.normal_gamma import weights
from lamperti.model import LatentSDE, Segment
from lamperti.train.calibrate import calibrate, chosen_point
from lamperti.train.gauge import carry, gauge_transform
from lamperti.train.likelihood import log_likelihood, state_covariance
from lamperti.train.loop import as_segment

G, R = np.array([0.05, 0.2]), 0.02
A, DRIFT = np.array([[-0.2, 0.5], [-0.5, -0.2]]), np.array([0.1, 0.0])


def _linear(g=G, r=R) -> LatentSDE:
    """A model whose drift is a linear function, with these noises."""
    model = result().model
    q = model.dynamics.q
    return eqx.tree_at(
        lambda m: (
            m.dynamics.q.shift,
            m.dynamics.mean.weight,
            m.dynamics.mean.bias,
            m.dynamics.diffusion.raw,
            m.emission.C,
            m.emission.noise,
        ),
        model,
        (
            jnp.zeros_like(q.shift),
            jnp.asarray(A),
            jnp.asarray(DRIFT),
            jnp.log(jnp.asarray(g)),
            jnp.asarray([[1.0, 0.3]]),
            jnp.asarray([r]),
        ),
    )


def _simulated(n_series: int, length: int) -> Segment:
    """Data of that model, a tenth of it missing, and one longer step."""
    rng = np.random.default_rng(5)
    model = _linear()
    lead = model.encoder.lead
    n = lead + length
    dt = np.ones((n_series, n - 1))
    dt[:, lead + 10] = 2.0
    # the Euler step of the model: A is the drift of the mean function, in its units
    x = np.zeros((n_series, n, 2))
    drift = model.dynamics.mean
    for k in range(n - 1):
        step = x[:, k] @ np.asarray(drift.weight).T + np.asarray(drift.bias)
        noise = np.sqrt(G * dt[:, k, None]) * rng.standard_normal((n_series, 2))
        x[:, k + 1] = x[:, k] + dt[:, k, None] * step + noise
    y = x @ np.array([1.0, 0.3]) + np.asarray(model.emission.c) + np.sqrt(R) * rng.standard_normal((n_series, n))
    mask = rng.random((n_series, n)) > 0.1
    link = np.ones((n_series, n - 1), bool)
    return Segment(jnp.asarray(y)[..., None], jnp.asarray(mask)[..., None], jnp.asarray(dt), jnp.asarray(link))


def _kalman(model: LatentSDE, batch: Segment, i: int, Q: np.ndarray | None = None) -> float:
    """log p(y) by a plain Kalman filter that starts from initial x encoder at the first state. The encoder has seen the
    first sample; where it speaks, only the later ones are new."""
    lead = model.encoder.lead
    encoded = model.encoder(batch.y[i], batch.mask[i], batch.dt[i]).potentials
    initial = model.initial.gaussian()
    precision = np.linalg.inv(np.asarray(initial.cov))
    cov = np.linalg.inv(precision + np.asarray(encoded.precision[0]))
    mean = cov @ (precision @ np.asarray(initial.mean) + np.asarray(encoded.information[0]))
    C, c = np.asarray(model.emission.C)[0], float(model.emission.c[0])
    r, g = float(model.emission.noise[0]), np.exp(np.asarray(model.dynamics.diffusion.raw))
    y, mask, dt = (np.asarray(a) for a in (batch.y[i, lead:, 0], batch.mask[i, lead:, 0], batch.dt[i, lead:]))
    encoder_speaks = bool(np.any(np.asarray(encoded.precision[0])))
    total = 0.0
    for k in range(len(y)):
        if mask[k] and not (k == 0 and encoder_speaks):
            error, spread = y[k] - C @ mean - c, C @ cov @ C + r
            total += -0.5 * (np.log(2 * np.pi * spread) + error**2 / spread)
            gain = cov @ C / spread
            mean, cov = mean + gain * error, cov - np.outer(gain, C @ cov)
        if k < len(dt):
            F = np.eye(2) + dt[k] * A
            mean, cov = F @ mean + dt[k] * DRIFT, F @ cov @ F.T + dt[k] * (np.diag(g) if Q is None else Q)
    return total


@pytest.mark.parametrize("encoder_speaks", [True, False])
def test_likelihood_of_a_linear_model_is_the_kalman_filters(encoder_speaks):
    batch = _simulated(3, 40)
    if not encoder_speaks:  # it has seen nothing but the first sample
        lead = _linear().encoder.lead
        batch = eqx.tree_at(lambda b: b.mask, batch, batch.mask.at[:, :lead].set(False).at[:, lead].set(True))
    models = [_linear(), _linear(2.0 * G, 0.5 * R)]
    ours = [np.asarray(log_likelihood(realise(m), batch)) for m in models]
    exact = [np.array([_kalman(m, batch, i) for i in range(3)]) for m in models]
    # what the encoder says of the first state is a constant of each segment
    np.testing.assert_allclose(ours[1] - ours[0], exact[1] - exact[0], rtol=1e-8)


def test_noises_are_recovered_from_data():
    batch = _simulated(40, 100)
    found = calibrate(_linear(5.0 * G, R / 4.0), batch)
    np.testing.assert_allclose(_innovation(found), _innovation(_linear()), rtol=0.05)
    assert _innovation(_linear(5.0 * G, R / 4.0)) > 2.0 * _innovation(_linear())


def _innovation(model: LatentSDE, Q: np.ndarray | None = None) -> float:
    """Variance of an observation given all before, of a model with a linear drift: of the noises of a linear system,
    what one observable determines (how they are shared between motion and observation it does not)."""
    d, e = realise(model.dynamics), model.emission
    Q = np.diag(np.asarray(d.diffusion)) if Q is None else Q
    F, C = np.eye(2) + np.asarray(d.mean.weight), np.asarray(e.C)
    P = np.asarray(scipy.linalg.solve_discrete_are(F.T, C.T, Q, np.diag(np.asarray(e.noise))))
    return float((C @ P @ C.T)[0, 0] + np.asarray(e.noise)[0])


def test_wrong_loadings_and_a_wrong_linear_drift_are_mended():
    batch, truth = _simulated(40, 100), _linear()
    places = lambda m: (m.emission.C, m.emission.c, m.dynamics.mean.weight, m.dynamics.mean.bias)  # noqa: E731
    spoiled = eqx.tree_at(
        places, truth, (truth.emission.C * 1.3, truth.emission.c + 0.3, 0.8 * jnp.asarray(A), jnp.zeros(2))
    )
    found = calibrate(spoiled, batch)
    likely = {name: float(jnp.sum(log_likelihood(realise(m), batch))) for name, m in
              (("truth", truth), ("spoiled", spoiled), ("found", found))}  # fmt: skip
    assert likely["found"] > likely["truth"] > likely["spoiled"] + 50
    # of the whole drift, on average over where the data are: the linear part shares it with the Gaussian process
    d = realise(found.dynamics)
    slope = np.asarray(jax.vmap(jax.jacfwd(d.condition().drift))(d.Z)).mean(axis=0)
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(slope)), np.sort_complex(np.linalg.eigvals(A)), rtol=0.1
    )


def test_the_papers_zero_mean_stays_zero():
    model = _linear()
    zero = dataclasses.replace(model, dynamics=dataclasses.replace(model.dynamics, mean=zero_mean(2)))
    found = calibrate(zero, _simulated(4, 30))
    assert not np.array_equal(found.emission.C, zero.emission.C)
    assert not np.any(found.dynamics.mean.weight) and not np.any(found.dynamics.mean.bias)


def test_nothing_changes_where_held_out_data_is_clearly_less_likely():
    batch = _simulated(8, 50)
    # held-out data without any noise: whatever suits the batch, which has some, suits it less
    quiet = eqx.tree_at(lambda b: b.y, batch, jnp.broadcast_to(_linear().emission.c, batch.y.shape))
    model = _linear(0.5 * G, 0.5 * R)
    assert calibrate(model, batch, quiet) is model
    broken = eqx.tree_at(lambda b: b.y, batch, batch.y.at[0, -1].set(jnp.nan))
    assert calibrate(model, broken) is model


def _total(model: LatentSDE, batch: Segment) -> float:
    return float(jnp.sum(log_likelihood(realise(model), batch)))


def test_a_diffusion_that_is_learned_by_the_conjugate_step_is_fitted_too():
    batch, start = _simulated(20, 60), _linear(5.0 * G, R / 4.0)
    q = start.dynamics.q
    natural = eqx.tree_at(lambda m: m.dynamics.q.rate, start, q.shape * jnp.asarray(5.0 * G))
    natural = dataclasses.replace(natural, dynamics=dataclasses.replace(natural.dynamics, diffusion_step="natural"))
    assert _total(natural, batch) == pytest.approx(_total(start, batch), rel=1e-10)
    found = calibrate(natural, batch)
    assert _total(found, batch) == pytest.approx(_total(calibrate(start, batch), batch), abs=1e-3)
    assert _total(found, batch) > _total(natural, batch) + 50


def test_held_out_data_never_become_less_likely():
    """From where the held-out data are most likely, every way is down."""
    batch, held_out = (jax.tree.map(lambda a, s=s: a[s], _simulated(16, 60)) for s in (slice(0, 10), slice(10, 16)))
    best = calibrate(_linear(1.5 * G), held_out)
    found = calibrate(best, batch, held_out)
    assert _total(found, held_out) >= _total(best, held_out)


def test_of_a_search_the_latest_point_is_taken_that_held_out_segments_do_not_clearly_refuse():
    rng = np.random.default_rng(0)
    start = rng.normal(size=24)
    towards = start + 0.1 + 0.01 * rng.normal(size=(3, 24))
    assert chosen_point(np.stack([start, *towards])) in (1, 2, 3)
    rising = start + np.arange(4)[:, None]
    assert chosen_point(rising) == 3
    noisy_end = np.concatenate([rising, rising[-1:] - 0.01 + rng.normal(size=24)])
    noisy_end[-1] += (rising[-1] - noisy_end[-1]).mean() - 0.1  # a little behind, much less than its standard error
    assert chosen_point(noisy_end) == 4
    assert chosen_point(np.concatenate([rising, rising[-1:] - 0.5])) == 3  # behind for sure
    assert chosen_point(np.stack([start, start - rng.normal(size=24) ** 2])) == 0  # less likely than at the start
    kick = rng.normal(size=24)
    a_little_less = start + kick - kick.mean() - 0.01  # within the standard error of the difference, and yet less
    assert chosen_point(np.stack([start, a_little_less])) == 0
    assert chosen_point(np.stack([start, np.full(24, np.nan)])) == 0
    assert chosen_point(np.array([[1.0], [3.0], [2.0]])) == 1  # one segment has no standard error


def test_fitting_again_finds_nothing_new():
    """From near the maximum; the drift's prior must be that of the fit before, in spite of other noises."""
    batch, model = _simulated(12, 60), _linear(4.0 * G, 0.5 * R)
    found = [model := calibrate(model, batch) for _ in range(3)]
    totals = [_total(m, batch) for m in found]
    assert abs(totals[2] - totals[1]) < 0.5, totals


def test_the_prior_of_the_drift_is_what_it_was_when_noises_change():
    model = eqx.tree_at(lambda m: m.dynamics.kernels, result().model, result().model.dynamics.kernels * 2)  # no turn
    found = calibrate(model, _simulated(8, 40))
    d, e = realise(model.dynamics), realise(found.dynamics)
    assert not np.allclose(d.diffusion, e.diffusion, rtol=0.1)
    np.testing.assert_allclose(e.amplitude**2 * e.diffusion, d.amplitude**2 * d.diffusion, rtol=1e-8)


def test_the_divergence_from_the_prior_does_not_depend_on_the_units_of_coordinates():
    model = result().model
    d = realise(model.dynamics)
    T = jnp.diag(jnp.asarray([3.0, 0.2]))
    carried = realise(carry(model, T, jnp.diag(d.diffusion)).dynamics)
    np.testing.assert_allclose(carried.kl(), d.kl(), rtol=1e-6)


def test_where_the_encoder_speaks_everywhere_only_noises_are_fitted():
    model = dataclasses.replace(_linear(5.0 * G), told_by="emission*encoder")
    found = calibrate(model, _simulated(8, 40))
    assert not np.array_equal(found.dynamics.diffusion.raw, model.dynamics.diffusion.raw)
    np.testing.assert_array_equal(found.emission.C, model.emission.C)
    np.testing.assert_array_equal(found.dynamics.mean.weight, model.dynamics.mean.weight)


def test_a_disaster_in_one_held_out_segment_is_enough_to_refuse():
    batch = _simulated(8, 50)
    model = _linear(1.3 * G, 1.2 * R)
    assert calibrate(model, batch, batch) is not model
    # one segment ten thousand sds away: the smaller noise makes it less likely by far, and the spread of gains large
    far = eqx.tree_at(lambda b: b.y, batch, batch.y.at[0, -1].set(1e4 * float(np.sqrt(R))))
    far = eqx.tree_at(lambda b: b.mask, far, far.mask.at[0, -1].set(True))
    assert calibrate(model, batch, far) is model


def test_what_held_out_data_refuse_is_tried_again_with_the_noises_only(monkeypatch):
    batch, model = _simulated(8, 50), _linear(5.0 * G, R / 4.0)
    spoiled = eqx.tree_at(lambda m: m.emission.c, model, model.emission.c + 5.0)
    monkeypatch.setattr("lamperti.train.calibrate._turned_to_suit", lambda *_: spoiled)
    found = calibrate(model, batch, batch)
    for name in ("C", "c"):
        np.testing.assert_array_equal(getattr(found.emission, name), getattr(model.emission, name))
    np.testing.assert_array_equal(found.dynamics.mean.weight, model.dynamics.mean.weight)
    np.testing.assert_allclose(found.dynamics.q.shift, model.dynamics.q.shift, atol=1e-12)
    assert np.all(found.dynamics.diffusion.raw < model.dynamics.diffusion.raw)


def test_fit_calibrates_what_the_likelihood_tells_and_leaves_the_networks_and_kernels():
    whole = FIT.model_copy(update={"validation_fraction": 0.0})
    fitted = lp.fit(data().series, MODEL, whole.model_copy(update={"calibrate": True}))
    plain = lp.fit(data().series, MODEL, whole).model

    def moved(m: LatentSDE):
        d, e = m.dynamics, m.emission
        return d.diffusion.raw, d.axes, d.q.shift, d.mean.weight, d.mean.bias, e.noise, e.C, e.c

    assert not any(np.array_equal(a, b) for a, b in zip(moved(fitted.model), moved(plain), strict=True))
    for of in (lambda m: m.encoder.mlp, lambda m: m.encoder.log_sd, lambda m: m.dynamics.kernels):
        for a, b in zip(jax.tree.leaves(of(fitted.model)), jax.tree.leaves(of(plain)), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    batch = as_segment(segment(tracks(data().series, fitted.scaler), 30, plain.encoder.lead).cover())
    before, after = (float(jnp.sum(log_likelihood(realise(m), batch))) for m in (plain, fitted.model))
    assert after > before


def test_training_that_was_stopped_comes_back_at_once(monkeypatch):
    from lamperti import fitting

    def no(*args, **options):
        raise AssertionError("calibrated")

    def stopped(record):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "calibrate", no)
    config = FIT.model_copy(update={"calibrate": True})
    assert lp.fit(data().series, MODEL, config, progress=stopped).history.status == "interrupted"


def _tilted(n_series: int, length: int, Q: np.ndarray) -> Segment:
    """Data of the linear model whose noises go together."""
    rng = np.random.default_rng(6)
    model = _linear()
    n = model.encoder.lead + length
    x = np.zeros((n_series, n, 2))
    root = np.linalg.cholesky(Q)
    for k in range(n - 1):
        x[:, k + 1] = x[:, k] + x[:, k] @ A.T + DRIFT + rng.standard_normal((n_series, 2)) @ root.T
    y = x @ np.array([1.0, 0.3]) + np.asarray(model.emission.c) + np.sqrt(R) * rng.standard_normal((n_series, n))
    whole = jnp.ones((n_series, n), bool)
    return Segment(jnp.asarray(y)[..., None], whole[..., None], jnp.ones((n_series, n - 1)), whole[:, 1:])


def test_noises_that_go_together_are_found_and_the_coordinates_turned():
    Q = np.array([[0.05, 0.09], [0.09, 0.2]])  # correlation .9
    batch, start = _tilted(40, 100, Q), _linear()
    found = calibrate(start, batch)
    assert not np.allclose(found.dynamics.axes, np.eye(2), atol=0.05)
    truth = float(jnp.sum(log_likelihood(realise(start), batch, jnp.asarray(Q))))
    best = float(jnp.sum(log_likelihood(realise(found), batch)))
    assert best > truth > float(jnp.sum(log_likelihood(realise(start), batch))) + 10.0
    # states have unit covariance in the new coordinates, in which the diffusion is diagonal
    spread = state_covariance(realise(found), batch, jnp.diag(realise(found.dynamics).diffusion))
    np.testing.assert_allclose(spread, np.eye(2), atol=0.02)


def test_a_carried_model_gives_the_data_the_same_likelihood():
    """By plain Kalman filters: the new model's, and the old one's with the full matrix."""
    batch, model = _simulated(3, 40), _linear()
    Q = np.array([[0.05, 0.06], [0.06, 0.2]])
    T = gauge_transform(np.array([[1.0, 0.2], [0.2, 1.5]]), Q)
    carried = carry(model, jnp.asarray(T), jnp.asarray(Q))
    old = np.asarray(log_likelihood(realise(model), batch, jnp.asarray(Q)))
    np.testing.assert_allclose(
        np.asarray(log_likelihood(realise(carried), batch)), old, rtol=1e-6
    )  # a ridge on the first state
    exact = [_kalman(model, batch, i, Q) for i in range(3)]
    plain = [_kalman(model, batch, i) for i in range(3)]
    ours = old - np.asarray(log_likelihood(realise(model), batch))
    np.testing.assert_allclose(ours, np.subtract(exact, plain), rtol=1e-7)


def test_drifts_with_kernels_of_their_own_are_not_mixed():
    start = _linear()
    two = eqx.tree_at(lambda m: m.dynamics.kernels, start, start.dynamics.kernels * 2)
    found = calibrate(two, _tilted(8, 40, np.array([[0.05, 0.09], [0.09, 0.2]])))
    assert not np.array_equal(found.emission.noise, two.emission.noise)
    np.testing.assert_array_equal(found.dynamics.axes, np.eye(2))


def test_ctrl_c_while_calibrating_gives_back_what_was_trained(monkeypatch):
    from lamperti import fitting

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "calibrate", interrupted)
    found = lp.fit(data().series, MODEL, FIT.model_copy(update={"calibrate": True}))
    assert found.history.status == "interrupted"
    np.testing.assert_array_equal(found.model.emission.C, result().model.emission.C)


def test_the_clock_stops_the_search_with_what_it_has_found():
    batch, start = _simulated(8, 100), _linear(5.0 * G, R / 4.0)
    at_once, in_time = (calibrate(start, batch, max_seconds=limit) for limit in (0.0, np.inf))
    likelihoods = [float(np.sum(np.asarray(log_likelihood(realise(m), batch)))) for m in (start, at_once, in_time)]
    assert likelihoods[0] < likelihoods[1] < likelihoods[2] - 1.0


def test_a_prior_that_outweighs_the_data_leaves_the_drift_linear():
    """Data of a linear equation, a drift with a bump that nothing calls for, and few transitions that the batch stands
    for: the prior pulls the bump down."""
    start = _linear()
    q = start.dynamics.q
    mu = 0.5 * jnp.sqrt(realise(start.dynamics).diffusion)[:, None] * jnp.ones_like(q.shift)
    bumpy = eqx.tree_at(lambda m: m.dynamics.q.shift, start, jnp.einsum("dij,dj->di", q.prec, mu))
    batch = _simulated(8, 50)
    found = calibrate(bumpy, batch, n_transitions=1)

    def size(model: LatentSDE) -> float:
        d = realise(model.dynamics)
        return float(jnp.sqrt(jnp.sum(weights(d.q).mu ** 2 / d.diffusion[:, None])))

    assert size(found) < 0.1 * size(bumpy)
