"""Where the model is linear, what is known of a state is what the Kalman filter says, to the digit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_forecast_law import CONTEXT, DT, HORIZON, KNOWN, LEAD, filtered, kalman_model, observed

import lamperti as lp
from lamperti.data.windows import Track
from lamperti.diagnostics.residuals import as_one_segment
from lamperti.forecasting import filter_context, is_linear, predict_steps
from lamperti.kernels import Constant, Linear, SquaredExponential, linear_in_state
from oracles import kalman


def linear_model():
    kernel = (Linear([0.7, 1.2]) + Constant(1.0),)
    return eqx.tree_at(lambda m: m.dynamics.kernels, KNOWN.model(), kernel)


def segment():
    track = Track(KNOWN.scaler.values(np.nan_to_num(CONTEXT.values)), CONTEXT.mask, KNOWN.scaler.steps(DT))
    return as_one_segment(track, LEAD, 64)


def test_a_forecast_of_a_linear_model_starts_from_the_kalman_filter():
    n = 40_000
    assert is_linear(linear_model()) and not is_linear(KNOWN.model())
    mean, cov = filtered(CONTEXT)
    told = lp.forecast(KNOWN.result(linear_model()), CONTEXT, horizon=HORIZON, n_samples=n, drift_uncertainty=False)
    mean, cov = observed(*kalman.future(mean, cov, *KNOWN.euler(KNOWN.step), HORIZON))
    found = told.samples.reshape(n, -1)
    assert np.all(np.abs(found.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(cov) / n))
    np.testing.assert_allclose(found.var(axis=0), np.diag(cov), rtol=5 * np.sqrt(2 / n))
    assert told.least_ess == 1.0


def test_one_step_forecasts_of_a_linear_model_are_exact():
    found = predict_steps(linear_model(), segment(), n_particles=10, key=jax.random.key(0))
    linear = kalman_model(CONTEXT.values, CONTEXT.mask, DT, KNOWN.m0, KNOWN.P0)
    exact = kalman.smooth(linear)
    for k in range(len(DT)):
        m, P = linear.F[k] @ exact.m[k] + linear.b[k], linear.F[k] @ exact.P[k] @ linear.F[k].T + linear.Q[k]
        ours = KNOWN.scaler.unscale_values(np.asarray(found.mean)[k])
        np.testing.assert_allclose(ours, KNOWN.C @ m + KNOWN.c, rtol=1e-6)
        sd = np.sqrt(np.diag(KNOWN.C @ P @ KNOWN.C.T) + KNOWN.r)
        np.testing.assert_allclose(KNOWN.scaler.unscale_sd(np.asarray(found.sd)[k]), sd, rtol=1e-6)


def test_padding_after_the_series_changes_nothing_of_its_last_state():
    short, long = (
        filter_context(
            linear_model(), as_one_segment(_track(), LEAD, multiple), n_samples=6, n_particles=10, key=jax.random.key(1)
        )
        for multiple in (1, 64)
    )
    np.testing.assert_allclose(np.asarray(short.x), np.asarray(long.x), rtol=1e-9)


def _track():
    return Track(KNOWN.scaler.values(np.nan_to_num(CONTEXT.values)), CONTEXT.mask, KNOWN.scaler.steps(DT))


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [
        (Linear([1.0]), True),
        (Linear([1.0]) + Constant(2.0), True),
        (3.0 * Linear([1.0]), True),
        (Constant(2.0) * Linear([1.0]), True),
        (Linear([1.0]) * Linear([1.0]), False),
        (SquaredExponential([1.0], 1.0) + Linear([1.0]), False),
    ],
)
def test_which_kernels_have_linear_functions_only(kernel, answer):
    assert linear_in_state(kernel) == answer
    points = jnp.linspace(-2.0, 2.0, 9)[:, None]
    bent = float(jnp.abs(jnp.diff(kernel.gram(points, jnp.asarray([[0.7]]))[:, 0], 2)).max())
    assert (bent < 1e-9) == answer
