"""The evidence lower bound against exact answers."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.oracles import kalman

import lamperti as lp
from lamperti._typing import Array, Bool, Float
from lamperti.dynamics.initial import InitialState
from lamperti.dynamics.mean import LinearMean
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.emissions.linear_gaussian import EmissionMoments, LinearGaussian
from lamperti.interfaces import AbstractEncoder, Encoding, Potentials
from lamperti.kernels import SquaredExponential
from lamperti.math.normal_gamma import prior, weights
from lamperti.model import LatentSDE, Segment
from lamperti.objective import elbo
from lamperti.smoothers import Linearised, MomentMatching, SigmaPoint

D, T = 2, 14
WEIGHT, BIAS = np.array([[-0.3, 0.8], [-0.8, -0.2]]), np.array([0.1, -0.05])
DIFFUSION = np.array([0.2, 0.1])
SURE = 1e12  # shape of a Gamma that is a point


class Given(AbstractEncoder):
    """Potentials that were made beforehand; zero ones say nothing."""

    potentials: Potentials

    @property
    def lead(self) -> int:
        return 0

    def turned(self, T: Float[Array, "D D"]) -> "Given":
        raise AssertionError("not needed here")

    def __call__(self, y: Float[Array, "L P"], mask: Bool[Array, "L P"], dt: Float[Array, " N"]) -> Encoding:
        return Encoding(jnp.zeros((T, D)), self.potentials, jnp.ones(T, dtype=bool))


def silent() -> Given:
    return Given(Potentials(jnp.zeros((T, D, D)), jnp.zeros((T, D))))


def linear_data(seed: int) -> kalman.LinearModel:
    rng = np.random.default_rng(seed)
    dt = rng.uniform(0.3, 1.5, size=T - 1)
    observed = rng.uniform(size=(T, 1)) > 0.25
    return kalman.simulate(WEIGHT, BIAS, DIFFUSION, dt, np.array([[1.0, 0.3]]), np.array([0.2]), np.array([0.05]),
                           observed, rng)  # fmt: skip


def linear_model(data: kalman.LinearModel, smoother=None, diffusion_step="natural") -> LatentSDE:
    """The data's own model: a fixed linear drift, its Gaussian process shrunk to nothing, its precision known."""
    Z = jnp.asarray(np.random.default_rng(0).normal(size=(3, D)))
    known = prior(jnp.full(D, SURE), jnp.asarray(SURE * DIFFUSION), 3)
    second = data.P0 + np.outer(data.m0, data.m0) - 1e-6 * np.eye(D)  # InitialState adds this ridge
    empty = EmissionMoments(jnp.zeros((1, D + 1, D + 1)), jnp.zeros((1, D + 1)), jnp.zeros(1))
    return LatentSDE(
        encoder=silent(),
        dynamics=SparseGPDynamics(
            kernels=(SquaredExponential([1.0, 1.0], 1.0),),
            amplitude=jnp.full(D, 1e-8),
            Z=Z,
            mean=LinearMean(jnp.asarray(WEIGHT), jnp.asarray(BIAS)),
            diffusion=jnp.asarray(DIFFUSION),
            q=known,
            prior=known,
            jitter=jnp.asarray(1e-9),
            axes=jnp.eye(D),
            diffusion_step=diffusion_step,
        ),
        emission=LinearGaussian(jnp.asarray(data.H), jnp.asarray(data.c), jnp.asarray(data.r), empty),
        initial=InitialState(jnp.asarray(data.m0), jnp.asarray(second)),
        smoother=Linearised() if smoother is None else smoother,
    )


def as_batch(*data: kalman.LinearModel) -> Segment:
    steps = np.stack([np.diagonal(m.Q, axis1=1, axis2=2)[:, 0] / DIFFUSION[0] for m in data])
    return Segment(
        jnp.asarray(np.stack([m.y for m in data])),
        jnp.asarray(np.stack([m.mask for m in data])),
        jnp.asarray(steps),
        jnp.ones((len(data), T - 1), dtype=bool),
    )


@eqx.filter_jit
def bound_terms(model: LatentSDE, batch: Segment, key, n_samples: int):
    n = jnp.sum(batch.link).astype(float)
    return elbo(model, batch, weights=weights(model.dynamics.q), n_samples=n_samples, n_transitions=n, key=key)[0]


@pytest.mark.parametrize("smoother", [Linearised(), Linearised("associative"), SigmaPoint(), MomentMatching()])
def test_bound_of_the_optimal_chain_is_the_kalman_log_likelihood(smoother):
    data = linear_data(1)
    exact = kalman.smooth(data).log_likelihood
    terms = bound_terms(linear_model(data, smoother), as_batch(data), jax.random.key(0), 3)
    assert float(terms.kl) == pytest.approx(0.0, abs=1e-6)
    assert float(terms.data) == pytest.approx(exact, rel=1e-6)


def test_bound_never_exceeds_the_kalman_log_likelihood_for_200_random_chains():
    data = linear_data(2)
    exact = kalman.smooth(data).log_likelihood
    model = dataclasses.replace(linear_model(data), told_by="emission*encoder")
    batch = as_batch(data)
    rng = np.random.default_rng(3)
    half = rng.normal(size=(200, T, D, D))
    precision = half @ np.swapaxes(half, 2, 3)
    information = rng.normal(size=(200, T, D))

    @jax.jit
    def repeats(precision, information, key):
        random = eqx.tree_at(lambda m: m.encoder, model, Given(Potentials(precision, information)))
        return jax.vmap(lambda k: bound_terms(random, batch, k, 50).data)(jax.random.split(key, 8))

    keys = jax.random.split(jax.random.key(4), 200)
    values = np.array([repeats(p, i, k) for p, i, k in zip(precision, information, keys, strict=True)])
    standard_error = values.std(axis=1, ddof=1) / np.sqrt(8)
    assert (values.mean(axis=1) <= exact + 5 * standard_error).all()
    assert values.mean() < exact - 1.0  # random chains are bad ones: the test has something to see


def test_bound_does_not_depend_on_the_order_of_the_series_nor_on_batching():
    one, two = linear_data(5), linear_data(6)
    together = bound_terms(linear_model(one), as_batch(one, two), jax.random.key(0), 2).data
    swapped = bound_terms(linear_model(one), as_batch(two, one), jax.random.key(0), 2).data
    # At the optimal chain the bound is free of sampling noise, so the sums must agree exactly.
    single = [bound_terms(linear_model(one), as_batch(m), jax.random.key(7), 2).data for m in (one,)]
    other = kalman.smooth(two._replace(m0=one.m0, P0=one.P0)).log_likelihood
    assert float(together) == pytest.approx(float(swapped), rel=1e-9)
    assert float(together) == pytest.approx(float(single[0]) + other, rel=1e-6)


def test_who_tells_the_chain_of_the_states():
    """By default the encoder at the first state, the emission at all; the paper's encoder alone; or both."""
    data = linear_data(9)
    batch = jax.tree.map(lambda a: a[0], as_batch(data))
    rng = np.random.default_rng(4)
    guess = Potentials(jnp.asarray(rng.normal(size=(T, D, D))), jnp.asarray(rng.normal(size=(T, D))))
    model = eqx.tree_at(lambda m: m.encoder, linear_model(data), Given(guess))
    emitted = model.emission.potentials(batch.y, batch.mask)

    def told(by):
        return dataclasses.replace(model, told_by=by).potentials(batch)[1]

    assert eqx.tree_equal(told("encoder"), guess)
    assert eqx.tree_equal(told("emission*encoder"), guess * emitted)
    parts = (jax.tree.leaves(p) for p in (told("emission"), guess * emitted, emitted))
    for default, first, rest in zip(*parts, strict=True):
        np.testing.assert_array_equal(default[0], first[0])
        np.testing.assert_array_equal(default[1:], rest[1:])
    assert model.told_by == lp.ModelConfig().potentials == "emission"


def test_gradient_of_the_bound_equals_central_differences():
    data = linear_data(8)
    batch = as_batch(data)
    model = linear_model(data, diffusion_step="scale-free")

    def value(amount):
        mean = LinearMean(model.dynamics.mean.weight + amount * 0.1, model.dynamics.mean.bias + amount)
        shifted = eqx.tree_at(
            lambda m: (m.dynamics.mean, m.dynamics.diffusion, m.emission.noise),
            model,
            (mean, model.dynamics.diffusion * (1 + amount), model.emission.noise * (1 + amount)),
        )
        return bound_terms(shifted, batch, jax.random.key(1), 3).data

    h = 1e-5
    slope = (value(h) - value(-h)) / (2 * h)
    assert float(jax.grad(value)(0.0)) == pytest.approx(float(slope), rel=1e-4)
