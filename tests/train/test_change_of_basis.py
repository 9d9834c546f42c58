"""A model in other latent coordinates is the same model: the law of what is observed does not change."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fixed_paths import DATA, KNOWN, LEAD, PRIOR, S, drift_of, made_model, paths
from known_models import Known, encoder, unsure_drift
from lamperti._params import positive, realise
from lamperti.emissions.linear_gaussian import emission_moments, refit
from lamperti.model import LatentSDE
from lamperti.train.gauge import carry, change_coordinates, gauge_move, gauge_transform

Q = np.array([[0.20, 0.09], [0.09, 0.075]])  # of the noise, in the old coordinates
STEPS = np.array([1.0, 0.6, 1.7, 1.0, 0.8])


def turn() -> np.ndarray:
    """Coordinates in which Q is diagonal; nothing about them is orthogonal."""
    T = gauge_transform(np.array([[1.0, 0.4], [0.4, 1.9]]), Q)
    assert T is not None
    assert np.abs(T @ T.T - np.eye(2)).max() > 0.1
    return T


def law_of_y(model: LatentSDE, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all observations of a model with a linear drift, over a few irregular steps."""
    A, b = np.asarray(model.dynamics.mean.weight), np.asarray(model.dynamics.mean.bias)
    C, c, r = (np.asarray(a) for a in (model.emission.C, model.emission.c, model.emission.noise))
    m = np.asarray(model.initial.mean)
    P = np.asarray(model.initial.second) - np.outer(m, m)
    n = len(STEPS) + 1
    means, cov = [m], np.zeros((n, n, 2, 2))
    cov[0, 0] = P
    for k, dt in enumerate(STEPS):
        F = np.eye(2) + dt * A
        means.append(F @ means[-1] + dt * b)
        cov[k + 1, k + 1] = F @ cov[k, k] @ F.T + dt * noise
        for j in range(k + 1):
            cov[k + 1, j] = F @ cov[k, j]
            cov[j, k + 1] = cov[k + 1, j].T
    seen = np.einsum("pi,abij,qj->apbq", C, cov, C).reshape(2 * n, 2 * n)
    return (np.array(means) @ C.T + c).ravel(), seen + np.kron(np.eye(n), np.diag(r))


def trainable(model: LatentSDE) -> LatentSDE:
    d = model.dynamics
    return eqx.tree_at(lambda m: (m.dynamics.amplitude, m.dynamics.diffusion), model,
                       (positive(d.amplitude), positive(d.diffusion)))  # fmt: skip


def test_a_carried_model_has_the_same_law_of_the_observations():
    model, T = trainable(Known().model()), turn()
    carried = realise(carry(model, jnp.asarray(T), jnp.asarray(Q)))
    old = law_of_y(model, Q)
    new = law_of_y(carried, np.diag(np.asarray(carried.dynamics.diffusion)))
    np.testing.assert_allclose(new[0], old[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(new[1], old[1], rtol=1e-8, atol=1e-10)


def test_the_drift_of_a_carried_model_is_the_old_drift_in_new_coordinates():
    """A Gaussian process of its own shape, its posterior mean and all."""
    model, T = trainable(Known().model(gp=unsure_drift())), turn()
    old = realise(model).dynamics
    new = realise(carry(model, jnp.asarray(T), jnp.asarray(Q))).dynamics
    x = np.random.default_rng(0).normal(size=(7, 2))
    f = drift_of(old, x)[2]
    np.testing.assert_allclose(jax.vmap(new.condition().drift)(jnp.asarray(x @ T.T)), f @ T.T, rtol=1e-8, atol=1e-10)


def test_the_encoder_says_the_same_in_new_coordinates():
    T = turn()
    y, mask, dt = (a[0] for a in (DATA.batch.y, DATA.batch.mask, DATA.batch.dt))
    old, new = encoder()(y, mask, dt), encoder().turned(jnp.asarray(T))(y, mask, dt)
    back = np.linalg.inv(T)
    np.testing.assert_allclose(new.mean, old.mean @ T.T, rtol=1e-8)
    np.testing.assert_allclose(
        new.potentials.precision, back.T @ np.asarray(old.potentials.precision) @ back, rtol=1e-8
    )
    np.testing.assert_allclose(new.potentials.information, old.potentials.information @ back, rtol=1e-8)


def test_the_running_averages_of_the_emission_are_those_of_the_mapped_states():
    T = turn()
    y, mask, x = DATA.batch.y[:, LEAD:], DATA.batch.mask[:, LEAD:], jnp.asarray(paths())
    turned = refit(emission_moments(y, mask, x)[0]).turned(jnp.asarray(T))
    wanted = emission_moments(y, mask, x @ T.T)[0]
    for name in ("zz", "zy", "yy"):
        np.testing.assert_allclose(getattr(turned.moments, name), getattr(wanted, name), rtol=1e-9, err_msg=name)


@pytest.fixture(scope="module")
def moved() -> tuple[LatentSDE, np.ndarray]:
    """A model moved by its paths, and the turn that was made, read from the inducing inputs."""
    model = made_model()
    turned = gauge_move(model, [DATA.batch], n_transitions=DATA.n_transitions, key=jax.random.key(0))
    T = np.linalg.lstsq(np.asarray(model.dynamics.Z), np.asarray(turned.dynamics.Z), rcond=None)[0].T
    return turned, T


def residuals() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paths, residuals of their increments and steps, one row a transition of a path."""
    x = paths()
    dt = np.broadcast_to(np.asarray(DATA.batch.dt)[:, None, LEAD:], (*x.shape[:2], x.shape[2] - 1)).ravel()
    start = x[:, :, :-1].reshape(-1, 2)
    f = drift_of(realise(made_model()).dynamics, start)[2]
    return x, np.diff(x, axis=2).reshape(-1, 2) - dt[:, None] * f, dt


def test_a_gauge_move_whitens_the_states_and_makes_the_noise_per_unit_of_time_diagonal(moved):
    """With irregular steps, so that the residuals of a step count by their variance per unit of time."""
    x, residual, dt = residuals()
    _, T = moved
    np.testing.assert_allclose(T @ np.cov(x.reshape(-1, 2), rowvar=False) @ T.T, np.eye(2), atol=1e-8)
    noise = T @ ((residual / dt[:, None]).T @ residual / len(dt)) @ T.T
    np.testing.assert_allclose(noise[0, 1], 0.0, atol=1e-8 * np.trace(noise))


def test_a_gauge_move_leaves_the_law_of_the_observations(moved):
    turned, T = moved
    model = made_model()
    noise = np.diag([0.3, 0.1])
    old, new = law_of_y(model, noise), law_of_y(turned, T @ noise @ T.T)
    np.testing.assert_allclose(new[0], old[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(new[1], old[1], rtol=1e-8, atol=1e-10)


def test_the_drift_after_a_gauge_move_is_the_posterior_of_the_mapped_paths_of_the_whole_data_set(moved):
    turned, T = moved
    d = realise(turned).dynamics
    x, _, dt = residuals()
    start = x[:, :, :-1].reshape(-1, 2) @ T.T
    A = drift_of(d, start)[0]  # the kernels lie along the new axes
    dx = np.diff(x, axis=2).reshape(-1, 2) @ T.T
    centred = dx - dt[:, None] * (start @ np.asarray(d.mean.weight).T + np.asarray(d.mean.bias))
    scale = DATA.n_transitions / (len(dt) / S) / S  # every path is one of S
    for i in range(2):
        prec = np.eye(3) + scale * (dt[:, None] * A[:, i]).T @ A[:, i]
        shift = scale * A[:, i].T @ centred[:, i]
        shape = float(PRIOR.shape[i]) + 0.5 * DATA.n_transitions
        prior_noise = np.asarray(PRIOR.rate / PRIOR.shape)  # turned as noise is
        rate = float(PRIOR.shape[i]) * (T[i] ** 2 @ prior_noise) + 0.5 * (
            scale * np.sum(centred[:, i] ** 2 / dt) - shift @ np.linalg.solve(prec, shift)
        )
        for name, wanted in (("prec", prec), ("shift", shift), ("shape", shape), ("rate", rate)):
            np.testing.assert_allclose(getattr(d.q, name)[i], wanted, rtol=1e-7, err_msg=name)
        np.testing.assert_allclose(d.diffusion[i], rate / shape, rtol=1e-7)


def test_change_of_coordinates_alone_maps_the_first_state_and_the_linear_drift():
    T = turn()
    model = Known().model()
    turned = change_coordinates(model, jnp.asarray(T))
    P = np.asarray(turned.initial.second) - np.outer(turned.initial.mean, turned.initial.mean)
    np.testing.assert_allclose(turned.initial.mean, T @ KNOWN.m0, rtol=1e-10)
    np.testing.assert_allclose(P, T @ KNOWN.P0 @ T.T, rtol=1e-5)  # less the ridge that the model adds
    old, new = law_of_y(model, Q), law_of_y(turned, T @ Q @ T.T)
    np.testing.assert_allclose(new[1], old[1], rtol=1e-8, atol=1e-10)
