"""Simulation-based calibration: the truth is as likely to have one rank among posterior draws as any other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chisquare

from small_models import SEPARATE, fixed_path, small_dynamics, statistics_of

N_SIMULATIONS = 600
N_DRAWS = 99
N_BINS = 20


def test_posterior_of_drift_and_precision_is_calibrated():
    dynamics = small_dynamics(SEPARATE, 5, jitter=1e-6)
    prior = eqx.tree_at(lambda d: d.q, dynamics, dynamics.prior)
    x, _, dt = fixed_path(20)
    test_point = jnp.asarray([0.5, 0.2])

    def quantities(draws):
        """Drift at the test point and diffusion, one row a draw."""
        at = jnp.broadcast_to(test_point, draws.diffusion.shape)
        return jnp.concatenate([draws(at), draws.diffusion], axis=1)

    def ranks(key):
        """One simulation: truth from the prior, increments at fixed inputs, posterior, ranks."""
        key_truth, key_noise, key_draws = jax.random.split(key, 3)
        truth = prior.draw(1, key=key_truth)
        noise = jnp.sqrt(dt[:, None] * truth.diffusion) * jax.random.normal(key_noise, x.shape)
        dx = dt[:, None] * jax.vmap(lambda point: truth(point[None])[0])(x) + noise
        fitted, _ = prior.natural_step(statistics_of(prior, x, dx, dt), jnp.asarray(1.0))
        return jnp.sum(quantities(fitted.draw(N_DRAWS, key=key_draws)) < quantities(truth), axis=0)

    keys = jax.random.split(jax.random.key(0), N_SIMULATIONS)
    found = np.asarray(jax.jit(lambda k: jax.lax.map(ranks, k))(keys))
    for name, column in zip(("f_1", "f_2", "g_1", "g_2"), found.T, strict=True):
        counts = np.bincount(column * N_BINS // (N_DRAWS + 1), minlength=N_BINS)
        p = chisquare(counts).pvalue
        assert p > 1e-4, f"ranks of {name} are not uniform (p = {p:.1e}): {counts}"
