"""Models whose state is read off a window, with a regressed drift: exact answers, and the way through the library."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import lamperti as lp
from lamperti import alternatives
from lamperti._params import realise
from lamperti.data.bridging import tracks
from lamperti.data.scaling import Scaler
from lamperti.kernels import SquaredExponential
from lamperti.train.regressed import _between, dynamics_of, noise_field
from lamperti.train.start import LinearPicture

REGRESSED = lp.ModelConfig(coordinates="regressed", latent_dim=2, window=6)


STILL = {"shake": 0.0, "between": 0.0, "key": jax.random.key(0)}


def oscillation(n=3000, seed=0):
    """Van der Pol's, without noise of the observations."""
    return lp.systems.van_der_pol(n_series=1, n_samples=n, dt=0.2, observation_noise=0.0, seed=seed).series[0]


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        return lp.fit(oscillation(), model=REGRESSED, progress=False)


@pytest.fixture(scope="module")
def wide():
    """A state of two scales of time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        asked = lp.ModelConfig(coordinates="regressed", latent_dim=5, window=64, newest=3)
        return lp.fit(oscillation(), model=asked, progress=False)


def test_the_noise_field_is_at_the_maximum_of_its_posterior():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(800, 3))
    squares = (rng.normal(size=800) ** 2 * np.exp(0.3 + phi @ [0.8, -0.5, 0.0]))[:, None]

    def cost(w):
        s = w[0] + phi @ w[1:]
        return 0.5 * np.sum(s + squares[:, 0] * np.exp(-s)) + 0.5 * np.sum(w[1:] ** 2)

    exact = minimize(cost, np.zeros(4), tol=1e-12).x
    log_g, a = noise_field(jnp.asarray(squares), jnp.asarray(phi))
    np.testing.assert_allclose(np.append(log_g[0], a[0]), exact, atol=1e-4)
    np.testing.assert_allclose(np.append(log_g[0], a[0]), [0.3, 0.8, -0.5, 0.0], atol=0.2)


def picture(n=4000, seed=0):
    """States of one coordinate whose drift is a sine and whose noise grows to the right."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 1))
    dx = 0.3 * np.sin(2 * x) + np.exp(0.5 * x) * 0.1 * rng.normal(size=x.shape)
    y, mask = x.copy(), np.ones((n, 1), bool)
    return LinearPicture(np.zeros(1), np.eye(1), x, dx, np.ones(n), y, mask, np.full(1, 1e-6))


def test_the_drift_is_the_exact_posterior_mean_and_the_noise_that_of_the_state():
    p = picture()
    Z = np.linspace(-2, 2, 12)[:, None]
    kernel = SquaredExponential([0.8], 1.0)
    dynamics = realise(dynamics_of(p, jnp.asarray(Z), (kernel,), share=jnp.asarray(1.0), jitter=1e-8, **STILL))
    # The oracle: weights of the kernel at Z under their prior, in plain NumPy.
    gram = lambda a, b: np.exp(-0.5 * ((a - b.T) / 0.8) ** 2)  # noqa: E731
    K, A = gram(Z, Z) + 1e-8 * np.eye(12), gram(p.x, Z)
    mean = np.asarray(dynamics.mean.weight)[0, 0] * p.x + np.asarray(dynamics.mean.bias)
    residual = p.dx - mean
    prior = np.var(residual)
    g = np.mean(residual**2)
    for _ in range(3):
        w = np.linalg.solve(A.T @ A / g + K / prior, A.T @ residual / g)
        last, g = g, np.mean((residual - A @ w) ** 2)
    assert last == pytest.approx(g, rel=1e-2)
    at = np.linspace(-1.8, 1.8, 9)[:, None]
    transition = dynamics.condition()
    got = np.array([transition.drift(jnp.asarray(x))[0] for x in at])
    weight, bias = np.asarray(dynamics.mean.weight)[0, 0], np.asarray(dynamics.mean.bias)[0]
    np.testing.assert_allclose(got, (gram(at, Z) @ w)[:, 0] + weight * at[:, 0] + bias, atol=2e-3)
    np.testing.assert_allclose(got, 0.3 * np.sin(2 * at[:, 0]), atol=0.03)
    sd = np.sqrt([transition.variance(jnp.asarray(x), jnp.asarray(1.0))[0] for x in at])
    np.testing.assert_allclose(sd, 0.1 * np.exp(0.5 * at[:, 0]), rtol=0.15)


def test_the_state_of_the_last_sample_is_its_window(result):
    series = oscillation(400, seed=5)
    model = realise(result.model)
    assert model.told_by == "window"
    (track,) = tracks([series], result.scaler)
    skip = model.encoder.skip
    window = np.asarray(track.y)[-6:].ravel()
    exact = np.asarray(skip.projection) @ (window - np.asarray(skip.offset))
    states = lp.embed(result, series)
    np.testing.assert_allclose(states.mean[-1], exact[:2], atol=5e-3)
    assert np.sqrt(states.cov[-1].diagonal()).max() < 5e-3
    began = lp.forecast(result, series, horizon=1, n_samples=200, seed=0, drift_uncertainty=False)
    assert np.isfinite(began.samples).all() and began.least_ess == 1.0


def test_a_gap_widens_the_states(result):
    series = oscillation(400, seed=5)
    mask = np.ones((400, 1), bool)
    mask[200:220] = False
    gappy = lp.Series(np.where(mask, series.values, np.nan), times=series.times, missing="nan")
    states = lp.embed(result, gappy)
    sd = np.sqrt(states.cov[:, 0, 0])
    assert sd[212] > 20 * sd[100]


def test_a_gap_widens_the_states_of_a_long_window(wide):
    """Most of a window of 64 is seen in a gap of 20, but not the newest sample."""
    series = oscillation(400, seed=5)
    mask = np.ones((400, 1), bool)
    mask[200:220] = False
    states = lp.embed(wide, lp.Series(np.where(mask, series.values, np.nan), times=series.times, missing="nan"))
    sd = np.sqrt(states.cov[:, 0, 0])
    assert sd[215] > 20 * sd[150] and sd[222] == pytest.approx(sd[150], rel=0.5)


def test_two_scales_are_chosen_kept_and_told(wide):
    config = wide.config.model
    assert (config.latent_dim, config.window, config.newest) == (5, 64, 3)
    assert config.n_inducing == 187  # one for sixteen samples
    assert "the 3 newest samples and what predicts best of a window of 64 samples" in wide.dimensions.reason


def test_places_where_no_data_was_lead_to_the_nearest_inducing_input():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 4000)
    x = jnp.asarray(3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    Z = x[:200]
    kernel = SquaredExponential([1.0, 1.0], 1.0)
    p, back, alone = (np.asarray(a) for a in _between(x, Z, kernel, key=jax.random.key(0)))
    distance = np.linalg.norm(p[:, None] - np.asarray(Z), axis=2)
    nearest = np.asarray(Z)[distance.argmin(axis=1)]
    np.testing.assert_allclose(back, 0.3 * (nearest - p), atol=1e-12)
    np.testing.assert_array_equal(alone, distance.min(axis=1) > np.sqrt(-2 * np.log(0.88)))
    assert np.linalg.norm(p, axis=1).max() > 4.0  # a little beyond the data as well
    assert 0.5 < alone.mean() < 1.0


def test_the_drift_is_shaken_as_much_as_free_runs_need(monkeypatch):
    """Told that free runs are far from the data until states are shaken by a whole step's noise, that is taken."""
    series = oscillation(800)
    shakes = []
    build = alternatives.regressed_model

    def counted(*args, shake, **rest):
        shakes.append(shake)
        return build(*args, shake=shake, **rest)

    monkeypatch.setattr(alternatives, "regressed_model", counted)
    far = iter([0.0, 5.0, 0.01])  # of the halves of the data, and of each model
    monkeypatch.setattr(alternatives, "_apart", lambda a, b: next(far))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        lp.fit(series, model=REGRESSED, progress=False)
    assert shakes == [0.5, 1.0]


def test_forecasts_follow_the_oscillation_and_say_how_surely(result):
    series = oscillation(1500, seed=7)
    errors, held = [], []
    for at in range(300, 1400, 100):
        told = lp.forecast(result, series[at - 100 : at], horizon=10, n_samples=200, seed=at)
        truth = series.values[at : at + 10]
        low, high = told.interval(0.9)
        errors.append(told.mean - truth)
        held.append((truth >= low) & (truth <= high))
    assert np.sqrt(np.mean(np.square(errors))) < 0.35 * series.values.std()
    assert 0.75 < np.mean(held) <= 1.0


def test_free_runs_have_the_range_and_the_pace_of_the_data(result):
    runs = lp.simulate(result, n_steps=3000, n_paths=8, seed=1).samples[:, :, 0]
    real = oscillation().values[:, 0]
    # of each path, for one that is caught outside the data is lost among eight
    assert runs.std(axis=1) == pytest.approx(np.full(8, real.std()), rel=0.15)
    crossings = [np.sum((one[:-1] < 0) & (one[1:] >= 0)) for one in (*runs, real)]
    assert np.mean(crossings[:8]) == pytest.approx(crossings[8], rel=0.15)


def test_it_is_saved_loaded_and_resumed_as_it_is(result, tmp_path):
    lp.save(result, tmp_path / "model.safetensors")
    again = lp.load(tmp_path / "model.safetensors")
    assert again.model.told_by == "window" and again.config.model == result.config.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        first = lp.fit(oscillation(600), model=REGRESSED, run=tmp_path / "run", progress=False)
        resumed = lp.resume(tmp_path / "run", oscillation(600), progress=False)
    for one, two in ((result, again), (first, resumed)):
        told = [lp.forecast(r, oscillation(200, seed=2), horizon=5, n_samples=20).samples for r in (one, two)]
        np.testing.assert_array_equal(*told)


def test_clean_data_is_not_trained_and_noisy_data_is():
    from lamperti.train.build import choose

    def chosen(noise, **options):
        data = lp.systems.lorenz(n_series=10, n_samples=400, dt=0.02, observation_noise=noise, seed=0).series
        return choose(lp.ModelConfig(**options), tracks(data, Scaler.from_series(data)))

    config, choice = chosen(0.0)
    assert config.coordinates == "regressed" and config.n_inducing >= 128
    assert "no sign of observation noise" in choice.reason()
    assert choice.dimensions.dimension == config.latent_dim
    assert chosen(0.0, latent_dim=4)[0].latent_dim == 4
    for options in ({"kernel": "matern32"}, {"coordinates": "predictive"}, {"encoder": "conv-gru"}):
        assert chosen(0.0, **options)[0].coordinates != "regressed"
    assert chosen(0.1)[0].coordinates in ("components", "predictive")


def test_parts_that_do_not_go_with_it_are_refused_with_the_way_out():
    for options in ({"kernel": "matern32"}, {"encoder": "conv-gru"}, {"shared_kernel": False}):
        with pytest.raises(lp.ConfigError, match="leave them out"):
            lp.fit(oscillation(600), model=lp.ModelConfig(coordinates="regressed", **options), progress=False)
    with pytest.raises(lp.SeriesError, match="too short"):
        lp.fit(oscillation(60), model=lp.ModelConfig(coordinates="regressed"), progress=False)
