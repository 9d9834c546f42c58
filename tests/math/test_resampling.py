"""Systematic resampling and independent draws."""

import jax
import jax.numpy as jnp
import numpy as np

from lamperti.math.resampling import effective_sample_size, pick, systematic


def test_every_particle_is_taken_floor_or_ceiling_of_its_share():
    log_w = jnp.asarray(np.random.default_rng(0).normal(size=30))
    share = 50 * np.asarray(jax.nn.softmax(log_w))
    for seed in range(20):
        counts = np.bincount(systematic(log_w, uniform=jax.random.uniform(jax.random.key(seed)), n=50), minlength=30)
        assert counts.sum() == 50
        assert np.all((counts == np.floor(share)) | (counts == np.ceil(share)))


def test_resampling_is_unbiased():
    log_w = jnp.asarray([0.0, -1.0, -2.5, -0.3])
    w = np.asarray(jax.nn.softmax(log_w))
    draw = jax.jit(jax.vmap(lambda u: jnp.bincount(systematic(log_w, uniform=u, n=3), length=4)))
    counts = np.asarray(draw(jax.random.uniform(jax.random.key(0), (4000,))))
    se = counts.std(axis=0) / np.sqrt(len(counts))
    assert np.all(np.abs(counts.mean(axis=0) - 3 * w) < 5 * se)


def test_a_particle_without_weight_is_never_taken():
    log_w = jnp.asarray([-jnp.inf, 0.0, -jnp.inf, 0.0, -jnp.inf])
    for seed in range(20):
        assert set(np.asarray(systematic(log_w, uniform=jax.random.uniform(jax.random.key(seed)), n=7))) <= {1, 3}


def test_effective_sample_size_counts_equal_weights_and_forgets_scale():
    np.testing.assert_allclose(effective_sample_size(jnp.full(8, -700.0)), 8.0)
    np.testing.assert_allclose(effective_sample_size(jnp.asarray([5.0, -jnp.inf, -jnp.inf])), 1.0)


def test_independent_draws_have_the_probabilities_of_the_weights():
    logits = jnp.asarray([-jnp.inf, 0.0, -1.0, 3.0, -jnp.inf]) + 500.0
    n = 20_000
    uniform = jax.random.uniform(jax.random.key(0), (n,)).at[0].set(0.0)
    share = np.bincount(pick(jnp.broadcast_to(logits, (n, 5)), uniform=uniform), minlength=5) / n
    p = np.asarray(jax.nn.softmax(logits))
    assert np.all(np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n))
