"""The contract of an emission.

Notation   log p(y | x) = log psi(x) + c(y): potentials are the likelihood up to what no state enters
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.interfaces import AbstractEmission

_DRAWS = 4000


def check_emission(emission: AbstractEmission, dim: int, n_channels: int, *, exact: bool = True) -> None:
    """Check an emission from ``dim`` latent coordinates to ``n_channels`` channels.

    Hidden values change nothing, and a sample of which nothing was seen says nothing; samples scatter around
    ``mean``; with ``exact`` (a likelihood that is Gaussian in x) the potentials are the likelihood itself.
    ``turned`` says the same in other coordinates; ``updated`` with rate one does not fit its data worse.
    """
    assert isinstance(emission, AbstractEmission), f"{type(emission).__name__} is not an AbstractEmission"
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(6, dim)))
    y = emission.sample(x, key=jax.random.key(0))
    assert y.shape == (6, n_channels), f"sample has shape {y.shape}, not [T, P]"
    mask = jnp.asarray(rng.random(y.shape) < 0.6).at[0].set(True).at[1].set(False)

    _check_mask(emission, x, y, mask)
    if exact:
        _check_likelihood(emission, x, y, mask)
    _check_samples(emission, x)
    _check_turned(emission, x, y, mask)
    _check_updated(emission, dim)
    gradient = jax.grad(lambda a: emission.log_density(y, mask, a))(x)
    assert np.all(np.isfinite(gradient)), "the gradient of log_density is not finite"


def _check_mask(emission: AbstractEmission, x: jax.Array, y: jax.Array, mask: jax.Array) -> None:
    spoilt = jnp.where(mask, y, 1e3)
    seen, other = emission.potentials(y, mask), emission.potentials(spoilt, mask)
    for name in ("precision", "information"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(seen, name), err_msg=f"hidden values change the {name}"
        )
        assert not np.any(getattr(seen, name)[1]), f"the {name} of a sample that was not seen is not zero"
    np.testing.assert_allclose(
        emission.log_density(spoilt, mask, x),
        emission.log_density(y, mask, x),
        err_msg="hidden values change log_density",
    )
    nothing = float(emission.log_density(y, jnp.zeros_like(mask), x))
    assert nothing == 0.0, f"log_density of nothing is {nothing}, not 0"


def _check_likelihood(emission: AbstractEmission, x: jax.Array, y: jax.Array, mask: jax.Array) -> None:
    potentials = emission.potentials(y, mask)
    other = x[::-1] + 0.5
    change = emission.log_density(y, mask, other) - emission.log_density(y, mask, x)
    np.testing.assert_allclose(
        potentials.log_value(other) - potentials.log_value(x), change, rtol=1e-8, atol=1e-8,
        err_msg="potentials are not the likelihood as a function of x",
    )  # fmt: skip


def _check_turned(emission: AbstractEmission, x: jax.Array, y: jax.Array, mask: jax.Array) -> None:
    d = x.shape[1]
    T = jnp.asarray(np.eye(d) + 0.3 * np.random.default_rng(1).normal(size=(d, d)))
    turned = emission.turned(T)
    # A ridge of the refit does not turn with the coordinates; hence the loose tolerance.
    np.testing.assert_allclose(
        turned.mean(x @ T.T), emission.mean(x), rtol=1e-5, atol=1e-6, err_msg="turned(T) changes mean at T x"
    )
    np.testing.assert_allclose(
        turned.log_density(y, mask, x @ T.T), emission.log_density(y, mask, x), rtol=1e-5,
        err_msg="turned(T) changes log_density at T x",
    )  # fmt: skip


def _check_updated(emission: AbstractEmission, dim: int) -> None:
    x = jax.random.normal(jax.random.key(2), (64, dim))
    y = emission.sample(x, key=jax.random.key(3))
    mask = jnp.ones(y.shape, dtype=bool)
    updated = emission.updated(y[None], mask[None], x[None, None], jnp.asarray(1.0))
    before, after = (float(e.log_density(y, mask, x)) for e in (emission, updated))
    # The slack is for a ridge or a floor of the refit.
    assert after >= before - 1e-4 * abs(before), (
        f"updated(rate=1) fits its own data worse: log-density {after:g} after {before:g}"
    )


def _check_samples(emission: AbstractEmission, x: jax.Array) -> None:
    mean = np.asarray(emission.mean(x))
    many = jnp.broadcast_to(x, (_DRAWS, *x.shape))
    np.testing.assert_allclose(emission.mean(many)[0], mean, rtol=1e-8, err_msg="mean depends on the leading axes")
    draws = np.asarray(eqx.filter_jit(lambda e: e.sample(many, key=jax.random.key(1)))(emission))
    se = draws.std(axis=0, ddof=1) / np.sqrt(_DRAWS)
    worst = np.max(np.abs(draws.mean(axis=0) - mean) / np.maximum(se, 1e-300))
    assert worst < 5.0, f"samples do not scatter around mean: {worst:.1f} standard errors away"
