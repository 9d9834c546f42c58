"""Systematic resampling and effective sample size.

Notation   log_w: unnormalised log-weights [K]
"""

import jax
import jax.numpy as jnp

from lamperti._typing import Array, Float, Int, PRNGKeyArray, Scalar


def effective_sample_size(log_w: Float[Array, " K"]) -> Scalar:
    """1 / sum of squared normalised weights."""
    w = jax.nn.softmax(log_w)
    return 1.0 / jnp.sum(w**2)


def systematic(log_w: Float[Array, " K"], *, key: PRNGKeyArray, n: int | None = None) -> Int[Array, " n"]:
    """Indices of n draws with one uniform: particle i is taken floor or ceil of n w_i times."""
    n = log_w.shape[0] if n is None else n
    cumulative = jnp.cumsum(jax.nn.softmax(log_w))
    ticks = (jnp.arange(n) + jax.random.uniform(key)) / n
    return jnp.minimum(jnp.searchsorted(cumulative, ticks), log_w.shape[0] - 1)
