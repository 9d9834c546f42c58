"""A model fitted to its forecasts: scores beside exact Gaussian ones, what is gained, and what is left alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from tests.train.test_calibrate import DRIFT, A, G, R, _linear, _simulated

from lamperti._params import realise
from lamperti.evaluation import scores as plain
from lamperti.interfaces import Gaussian
from lamperti.train.fitted import Fitted
from lamperti.train.forecast_fit import Scores, crps, fit_forecasts, forecast_scores, gained, horizons
from lamperti.train.likelihood import filtered_states


def test_horizons_double_and_end_with_the_last():
    np.testing.assert_array_equal(horizons(1), [1])
    np.testing.assert_array_equal(horizons(8), [1, 2, 4, 8])
    np.testing.assert_array_equal(horizons(20), [1, 2, 4, 8, 16, 20])


def test_crps_is_that_of_all_pairs_without_the_pairs_of_a_draw_with_itself():
    rng = np.random.default_rng(1)
    samples, y = rng.normal(size=(3, 7, 2)), rng.normal(size=(3, 2))
    distance = np.abs(samples[:, :, None] - samples[:, None]).sum(axis=(1, 2)) / (7 * 6)
    expected = np.abs(samples - y[:, None]).mean(axis=1) - 0.5 * distance
    np.testing.assert_allclose(crps(jnp.asarray(samples), jnp.asarray(y)), expected, rtol=1e-12)


def test_few_draws_have_the_mean_score_of_many():
    rng = np.random.default_rng(2)
    few = np.asarray(crps(jnp.asarray(rng.normal(size=(40_000, 4, 1))), jnp.full((40_000, 1), 0.7)))
    many = plain.crps(rng.normal(size=(1, 20_000, 1, 1)), np.full((1, 1, 1), 0.7)).mean()
    np.testing.assert_allclose(few.mean(), many, atol=5 * few.std() / 200)


def gaussian_crps(mean, sd, y):
    z = (y - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_scores_of_a_linear_model_are_those_of_its_exact_gaussian_forecasts():
    model, batch = _linear(), _simulated(3, 40)
    found = forecast_scores(Fitted.of(model), model, batch, 4000, key=jax.random.key(0))
    lead, last = model.encoder.lead, 39
    n_ahead = int(2 / 3 * last)
    origins = np.linspace(min(0.1 * last, last - n_ahead), last - n_ahead, 4).astype(int)
    means, covs = (np.asarray(a) for a in filtered_states(realise(model), batch))
    y, mask, dt = (np.asarray(a) for a in (batch.y[:, lead:, 0], batch.mask[:, lead:, 0], batch.dt[:, lead:]))
    C, c = np.array([1.0, 0.3]), float(model.emission.c[0])
    for i in range(3):
        total, count = np.zeros(6), np.zeros(6)
        for origin in origins:
            mean, cov = means[i, origin], covs[i, origin]
            for h in range(1, n_ahead + 1):
                step = dt[i, origin + h - 1]
                F = np.eye(2) + step * A
                mean, cov = F @ mean + step * DRIFT, F @ cov @ F.T + step * np.diag(G)
                at = np.flatnonzero(horizons(n_ahead) == h)
                if len(at) and mask[i, origin + h]:
                    spread = np.sqrt(C @ cov @ C + R)
                    total[at] += gaussian_crps(C @ mean + c, spread, y[i, origin + h])
                    count[at] += 1
        np.testing.assert_array_equal(found.count[i], count)
        np.testing.assert_allclose(found.crps[i], total / np.maximum(count, 1), atol=0.03)


def test_the_filter_of_a_linear_model_is_the_kalman_filter():
    """Its last state, given all of the series, is what the smoothed one is."""
    model, batch = _linear(), _simulated(2, 40)
    mean, cov = filtered_states(realise(model), batch)
    chain = realise(model).chain(
        jax.tree.map(lambda a: a[0], batch), realise(model).dynamics.condition(), key=jax.random.key(0)
    )
    last: Gaussian = chain.last()
    np.testing.assert_allclose(mean[0, -1], last.mean, rtol=1e-6)
    np.testing.assert_allclose(cov[0, -1], last.cov, rtol=1e-6)


def test_what_is_gained_is_the_mean_share_over_horizons_with_its_error_over_segments():
    before = Scores(
        jnp.asarray([[1.0, 2.0], [1.0, 4.0], [4.0, 0.0]]), jnp.asarray([[2.0, 1.0], [2.0, 1.0], [2.0, 0.0]])
    )
    after = Scores(before.crps * jnp.asarray([[0.9], [1.0], [0.8]]), before.count)
    # references 2 and 3; segment by segment (.1/2 + 1.5 * .2/3)/2, 0, (.8/2 + 0)/2
    each = np.array([(0.05 + 0.1) / 2, 0.0, 0.2])
    gain, se = gained(before, after)
    np.testing.assert_allclose([gain, se], [each.mean(), each.std(ddof=1) / np.sqrt(3)], rtol=1e-6)


def test_a_horizon_without_samples_counts_for_nothing():
    before = Scores(jnp.asarray([[1.0, 0.0], [3.0, 0.0]]), jnp.asarray([[1.0, 0.0], [1.0, 0.0]]))
    after = Scores(before.crps / 2, before.count)
    np.testing.assert_allclose(gained(before, after)[0], 0.5)


@pytest.fixture(scope="module")
def mended():
    """A model whose states decay ten times too slowly and whose noise is too small, after the fit to forecasts."""
    wrong = eqx.tree_at(
        lambda m: m.dynamics.mean.weight, _linear(g=0.2 * G), jnp.asarray([[-0.02, 0.5], [-0.5, -0.02]])
    )
    train, unseen = _simulated(40, 40), _simulated(40, 40)
    held_out = jax.tree.map(lambda a: a[20:], unseen)
    return wrong, *fit_forecasts(wrong, jax.tree.map(lambda a: a[:20], train), held_out), held_out


def test_wrong_decay_and_noise_are_mended(mended):
    wrong, found, gain, held_out = mended
    score = [
        forecast_scores(Fitted.of(model), model, held_out, 200, key=jax.random.key(3)).by_horizon()
        for model in (wrong, found, _linear())
    ]
    assert found is not wrong and gain > 0.1
    lost = np.asarray(score[0] / score[2]).mean() - 1
    left = np.asarray(score[1] / score[2]).mean() - 1
    assert lost > 0.2 and left < 0.25 * lost, (lost, left)


def test_a_few_held_out_segments_cannot_tell_and_leave_the_model_as_it_was():
    model, batch = _linear(), _simulated(6, 40)
    found, gain = fit_forecasts(model, batch, jax.tree.map(lambda a: a[:3], batch))
    assert found is model and gain == 0.0


def test_a_chain_that_the_encoder_tells_of_is_left_as_it_was():
    model = eqx.tree_at(lambda m: m.emission.c, _linear(), jnp.zeros(1))
    told = type(model)(model.encoder, model.dynamics, model.emission, model.initial, model.smoother, "encoder")
    batch = _simulated(6, 40)
    assert fit_forecasts(told, batch, batch)[0] is told
