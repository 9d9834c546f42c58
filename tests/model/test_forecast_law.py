"""Forecasts of a linear model have the law of exact Kalman prediction: means and covariances over whole paths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lamperti as lp
from known_models import WINDOW, Known, encoded, product
from lamperti.data.windows import Track
from lamperti.diagnostics.residuals import as_one_segment
from lamperti.forecasting import draw_drifts, predict_steps, roll_out, smooth, standardised_increments
from lamperti.kernels import Constant
from lamperti.math.normal_gamma import NormalGamma
from oracles import kalman

KNOWN = Known()
LEAD = WINDOW - 1
N, HORIZON = 20_000, 5
FILTER = 2.0  # the particles of a filter are not independent: their means scatter about so much more
RNG = np.random.default_rng(11)
DT = KNOWN.step * RNG.uniform(0.6, 1.5, size=21)
CONTEXT = KNOWN.simulated(DT, seed=5, missing=0.15)


def assert_law(draws, mean, cov, inflation=1.0, what="") -> None:
    """Sample mean and covariance of draws [S, K] within five standard errors."""
    n = len(draws)
    error = inflation * np.sqrt(np.diag(cov) / n)
    z = np.abs(draws.mean(axis=0) - mean) / error
    assert z.max() < 5.0, f"means of {what} are {z.max():.1f} standard errors from the exact ones: {z.round(1)}"
    error = inflation * np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)
    z = np.abs(np.cov(draws, rowvar=False) - cov) / error
    assert z.max() < 5.0, f"covariances of {what} are {z.max():.1f} standard errors from the exact ones"


def kalman_model(y, mask, dt, m0, P0, known: Known = KNOWN) -> kalman.LinearModel:
    F, b, Q = (np.array(a) for a in zip(*map(known.euler, dt), strict=True))
    return kalman.LinearModel(m0, P0, F, b, Q, known.C, known.c, known.r, y, mask)


def start_of(context: lp.Series) -> tuple[np.ndarray, np.ndarray]:
    """What is known of the state after the lead: the model's first state times the encoder's guess."""
    window = Track(np.nan_to_num(KNOWN.scaler.values(context.values)), context.mask, KNOWN.scaler.steps(DT))
    return product(KNOWN.m0, KNOWN.P0, encoded(lp.data.windows.interpolate(window)[: LEAD + 1]))


def filtered(context: lp.Series, known: Known = KNOWN) -> tuple[np.ndarray, np.ndarray]:
    """The last state given the context: the first samples are only the encoder's."""
    linear = kalman_model(context.values[LEAD:], context.mask[LEAD:], DT[LEAD:], *start_of(context), known)
    exact = kalman.smooth(linear)
    return exact.m[-1], exact.P[-1]


def observed(mean, cov) -> tuple[np.ndarray, np.ndarray]:
    """Law of the observations of a path of states."""
    H = np.kron(np.eye(HORIZON), KNOWN.C)
    return H @ mean + np.tile(KNOWN.c, HORIZON), H @ cov @ H.T + np.kron(np.eye(HORIZON), np.diag(KNOWN.r))


def test_rolled_out_paths_have_the_exact_mean_and_covariance_of_the_equation():
    draws = draw_drifts(KNOWN.model(), n=N, uncertain=False, key=jax.random.key(0))
    start = np.random.default_rng(0).multivariate_normal(KNOWN.m0, KNOWN.P0, size=N)
    path = np.asarray(roll_out(draws, jnp.asarray(start), n_steps=HORIZON, key=jax.random.key(1)))
    mean, cov = kalman.future(KNOWN.m0, KNOWN.P0, *KNOWN.euler(KNOWN.step), HORIZON)
    assert_law(path.reshape(N, -1), mean, cov, what="states along rolled-out paths")


def test_a_path_keeps_one_drift_and_one_diffusion_to_its_end():
    """An unknown constant drift f ~ N(b, s^2 Sigma / lam), lam ~ Gamma: x_H has variance H E[g] + H^2 Var f, not
    H (E[g] + Var f); and its square is spread by the unknown g."""
    shape, rate, sigma, s = 9.0, np.array([1.6, 0.8]), np.array([0.5, 0.2]), np.array([0.7, 1.3])
    q = NormalGamma(jnp.full(2, shape), jnp.asarray(rate), jnp.zeros((2, 1)), jnp.asarray(1 / sigma)[:, None, None])
    model = eqx.tree_at(
        lambda m: (m.dynamics.kernels, m.dynamics.Z, m.dynamics.amplitude, m.dynamics.q, m.dynamics.mean.weight,
                   m.dynamics.diffusion),
        KNOWN.model(),
        ((Constant(1.0),), jnp.zeros((1, 2)), jnp.asarray(s), q, jnp.zeros((2, 2)), jnp.asarray(rate / shape)),
    )  # fmt: skip
    draws = draw_drifts(model, n=N, uncertain=True, key=jax.random.key(2))
    path = np.asarray(roll_out(draws, jnp.zeros((N, 2)), n_steps=4, key=jax.random.key(3)))
    steps = np.arange(1, 5)
    g = rate / (shape - 1)  # E[1 / lam]
    for d in range(2):
        cov = g[d] * (np.minimum.outer(steps, steps) + s[d] ** 2 * sigma[d] * np.outer(steps, steps))
        mean = steps * KNOWN.b[d] * KNOWN.step
        # the tails of a t distribution: its fourth moment is 3 (a - 1) / (a - 2) times the squared variance
        assert_law(path[:, :, d], mean, cov, inflation=1.3, what="paths with an unknown drift")


@pytest.mark.parametrize("start", ["filter", "encoder"])
def test_a_forecast_has_the_law_of_kalman_prediction(start):
    """Irregular steps, missing values, a lead that only the encoder sees, padding, and steps of 0.25 ahead."""
    told = lp.forecast(KNOWN.result(), CONTEXT, horizon=HORIZON, n_samples=N, n_particles=N, start=start,
                       drift_uncertainty=False)  # fmt: skip
    mean, cov = kalman.future(*filtered(CONTEXT), *KNOWN.euler(KNOWN.step), HORIZON)
    assert_law(told.states.reshape(N, -1), mean, cov, FILTER, "forecast states")
    assert_law(told.samples.reshape(N, -1), *observed(mean, cov), FILTER, "forecast observations")
    np.testing.assert_allclose(told.times, CONTEXT.times[-1] + KNOWN.step * np.arange(1, HORIZON + 1), rtol=1e-12)


def test_a_filter_over_noisy_data_weighs_its_particles_as_the_kalman_filter_does():
    """Where the noise is large, it is the weights that know the data, and not the proposal."""
    noisy = KNOWN._replace(r=np.array([4000.0, 1.5]))
    context = noisy.simulated(DT, seed=5)
    told = lp.forecast(noisy.result(), context, horizon=1, n_samples=N, n_particles=N, drift_uncertainty=False)
    mean, cov = kalman.future(*filtered(context, noisy), *KNOWN.euler(KNOWN.step), 1)
    assert_law(told.states[:, 0], mean, cov, FILTER, "forecast states")


def test_a_forecast_without_observation_noise_is_that_of_its_states():
    told = lp.forecast(KNOWN.result(), CONTEXT, horizon=3, n_samples=50, observation_noise=False)
    np.testing.assert_allclose(told.samples, told.states @ KNOWN.C.T + KNOWN.c, rtol=1e-9)


def test_a_simulation_has_the_law_of_the_equation_from_its_start():
    start = np.array([0.9, -0.2])
    told = lp.simulate(KNOWN.result(), n_steps=HORIZON, n_paths=N, start=start, drift_uncertainty=False)
    mean, cov = kalman.future(start, np.zeros((2, 2)), *KNOWN.euler(KNOWN.step), HORIZON)
    assert_law(told.states.reshape(N, -1), mean, cov, what="simulated states")
    assert_law(told.samples.reshape(N, -1), *observed(mean, cov), what="simulated observations")


def test_where_the_encoder_speaks_alone_its_last_state_is_filtered_from_its_guesses():
    """The paper's chain: every state is told of by the encoder, none by the emission."""
    whole = KNOWN.simulated(np.full(9, KNOWN.step), seed=6)
    y = KNOWN.scaler.values(whole.values)
    m, P = product(KNOWN.m0, KNOWN.P0, encoded(y[:WINDOW]))
    F, b, Q = KNOWN.euler(KNOWN.step)
    for k in range(WINDOW, len(y)):
        m, P = product(F @ m + b, F @ P @ F.T + Q, encoded(y[k - LEAD : k + 1]))
    told = lp.forecast(KNOWN.result(told_by="encoder"), whole, horizon=HORIZON, n_samples=N, start="encoder",
                       drift_uncertainty=False)  # fmt: skip
    assert_law(told.states.reshape(N, -1), *kalman.future(m, P, F, b, Q, HORIZON), what="states from the encoder")


def test_embedded_states_are_the_kalman_smoothers():
    """Of a series from its first sample on: the lead is made up, and the encoder silent."""
    exact = kalman.smooth(kalman_model(CONTEXT.values, CONTEXT.mask, DT, KNOWN.m0, KNOWN.P0))
    found = lp.embed(KNOWN.result(), CONTEXT)
    np.testing.assert_allclose(found.mean, exact.ms, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.cov, exact.Ps, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.times, CONTEXT.times)


def test_a_gap_is_crossed_by_the_equation_in_steps_of_the_usual_length():
    """A step of three usual ones: three Euler steps, none of them observed in between."""
    dt = np.full(8, KNOWN.step)
    dt[4] *= 3
    series = KNOWN.simulated(dt, seed=8)
    rows = np.array([0, 1, 2, 3, 4, 7, 8, 9, 10])
    y, mask = np.zeros((11, 2)), np.zeros((11, 2), bool)
    y[rows], mask[rows] = series.values, True
    exact = kalman.smooth(kalman_model(y, mask, np.full(10, KNOWN.step), KNOWN.m0, KNOWN.P0))
    found = lp.embed(KNOWN.result(), series)
    np.testing.assert_allclose(found.mean, exact.ms[rows], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.cov, exact.Ps[rows], rtol=1e-6, atol=1e-9)


def test_one_step_forecasts_along_a_series_are_the_kalman_filters():
    """Mean and sd of each sample given those before it, observation noise included."""
    model = KNOWN.model()
    track = Track(KNOWN.scaler.values(np.nan_to_num(CONTEXT.values)), CONTEXT.mask, KNOWN.scaler.steps(DT))
    segment = as_one_segment(track, LEAD, 64)
    n = 4000
    found = predict_steps(model, segment, n_particles=n, key=jax.random.key(4))
    linear = kalman_model(CONTEXT.values, CONTEXT.mask, DT, KNOWN.m0, KNOWN.P0)
    exact = kalman.smooth(linear)
    for k in range(len(DT)):
        m, P = linear.F[k] @ exact.m[k] + linear.b[k], linear.F[k] @ exact.P[k] @ linear.F[k].T + linear.Q[k]
        mean, sd = KNOWN.C @ m + KNOWN.c, np.sqrt(np.diag(KNOWN.C @ P @ KNOWN.C.T) + KNOWN.r)
        ours = KNOWN.scaler.unscale_values(np.asarray(found.mean)[k])
        # resampled particles: a mean over so many is as good as one over a fifth of them
        np.testing.assert_allclose(ours, mean, rtol=0, atol=5 * sd.max() / np.sqrt(n / 5), err_msg=f"mean of {k + 1}")
        spread = KNOWN.scaler.unscale_sd(np.asarray(found.sd)[k])
        np.testing.assert_allclose(spread, sd, rtol=5 / np.sqrt(2 * n / 5), err_msg=f"sd of sample {k + 1}")


def test_increments_along_drawn_paths_are_standard_normal_for_the_right_model():
    """Many short series of the model itself, so that the draws have the law of the states."""
    z = []
    model = KNOWN.model()
    for seed in range(40):
        dt = KNOWN.step * np.random.default_rng(seed).uniform(0.6, 1.5, size=63)
        series = KNOWN.simulated(dt, seed=100 + seed)
        track = Track(KNOWN.scaler.values(series.values), series.mask, KNOWN.scaler.steps(dt))
        z.append(np.asarray(standardised_increments(model, as_one_segment(track, LEAD, 64), key=jax.random.key(seed))))
    assert_law(np.concatenate(z), np.zeros(2), np.eye(2), what="standardised increments")


def test_smoothed_marginals_do_not_depend_on_padding():
    track = Track(KNOWN.scaler.values(np.nan_to_num(CONTEXT.values)), CONTEXT.mask, KNOWN.scaler.steps(DT))
    short, long = (smooth(KNOWN.model(), as_one_segment(track, LEAD, m), key=jax.random.key(0)) for m in (22, 64))
    np.testing.assert_allclose(long.mean[:22], short.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(long.cov[:22], short.cov, rtol=1e-9, atol=1e-12)
