"""The contract checks pass what is right and refuse what is wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamperti.emissions import LinearGaussian
from lamperti.emissions.linear_gaussian import emission_moments, refit
from lamperti.encoders import ConvGRU, HankelSkip, WindowMLP
from lamperti.interfaces import (
    AbstractEmission,
    AbstractEncoder,
    AbstractSmoother,
    AbstractTransition,
    Encoding,
    Potentials,
)
from lamperti.smoothers import Linearised
from lamperti.testing import LinearTransition, check_emission, check_encoder, check_smoother, check_transition

N_CHANNELS, DIM, WINDOW = 2, 3, 6


def skip():
    rng = np.random.default_rng(0)
    return HankelSkip(
        offset=jnp.asarray(rng.normal(size=WINDOW * N_CHANNELS)),
        projection=jnp.asarray(rng.normal(size=(4, WINDOW * N_CHANNELS))),
        weight=jnp.asarray(rng.normal(size=(DIM, 4))),
        gauge=jnp.asarray(np.eye(DIM) + 0.2 * rng.normal(size=(DIM, DIM))),
        window=WINDOW,
    )


def emission():
    """Fitted to data, so that its running averages belong to it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 1, 300, DIM))
    y = x[:, 0] @ rng.normal(size=(DIM, N_CHANNELS)) + 0.3 + 0.5 * rng.normal(size=(1, 300, N_CHANNELS))
    moments, _ = emission_moments(jnp.asarray(y), jnp.ones(y.shape, dtype=bool), jnp.asarray(x))
    return refit(moments)


@pytest.mark.parametrize(
    "encoder",
    [WindowMLP(skip(), key=jax.random.key(0)), ConvGRU(skip(), N_CHANNELS, lag=2, delays=3, key=jax.random.key(0))],
    ids=["window mlp", "conv gru"],
)
def test_encoders_keep_their_contract(encoder):
    check_encoder(encoder, N_CHANNELS)


def test_the_recurrent_part_of_every_state_ends_at_its_own_sample():
    """Without the skip, so that only the convolution and the recurrent network speak; they need fewer samples before
    the first state than the skip's window does."""
    made = ConvGRU(skip(), N_CHANNELS, lag=1, delays=1, key=jax.random.key(0))
    head = eqx.nn.MLP(64, DIM, 8, 1, key=jax.random.key(1))
    made = eqx.tree_at(lambda e: (e.mean_head, e.skip.weight), made, (head, jnp.zeros_like(made.skip.weight)))
    n = 4
    y = jax.random.normal(jax.random.key(2), (made.lead + n, N_CHANNELS))
    mask, dt = jnp.ones(y.shape, dtype=bool), jnp.ones(len(y) - 1)
    slope = np.abs(jax.jit(jax.jacobian(lambda y: made(y, mask, dt).mean))(y)).sum(axis=(1, 3))  # [state, sample]
    for k in range(n):
        assert slope[k, made.lead + k] > 0, f"state {k} does not see its own sample"
        assert not slope[k, made.lead + k + 1 :].any(), f"state {k} sees the future"


def test_the_linear_emission_keeps_its_contract():
    check_emission(emission(), DIM, N_CHANNELS)


class _Talkative(AbstractEncoder):
    """Claims to know what it has not seen."""

    lead: int = 0

    def turned(self, T):
        raise NotImplementedError

    def __call__(self, y, mask, dt):
        precision = jnp.broadcast_to(jnp.eye(y.shape[1]), (*y.shape, y.shape[1]))
        return Encoding(y, Potentials(precision, y), jnp.ones(y.shape[0], dtype=bool))


class _OffCentre(AbstractEncoder):
    """Its potentials point elsewhere than its mean."""

    lead: int = 0

    def turned(self, T):
        raise NotImplementedError

    def __call__(self, y, mask, dt):
        known = jnp.any(mask, axis=1)
        precision = jnp.broadcast_to(jnp.eye(y.shape[1]), (*y.shape, y.shape[1]))
        return Encoding(y, Potentials(precision, 2.0 * y).masked(known), known)


def test_an_encoder_that_knows_the_unseen_is_refused():
    with pytest.raises(AssertionError, match="has not seen"):
        check_encoder(_Talkative(), N_CHANNELS)


def test_an_encoder_off_its_mean_is_refused():
    with pytest.raises(AssertionError, match="not centred on mean"):
        check_encoder(_OffCentre(), N_CHANNELS)


class _Deaf(AbstractSmoother):
    """Ignores every other potential."""

    def __call__(self, transition, initial, potentials, dt, *, points, link=None, key):
        keep = jnp.arange(points.shape[0]) % 2 == 0
        return Linearised()(transition, initial, potentials.masked(keep), dt, points=points, link=link, key=key)


def test_a_smoother_that_ignores_data_is_refused():
    with pytest.raises(AssertionError, match="not exact on a linear model"):
        check_smoother(_Deaf())


class _Scaled(AbstractEmission):
    """Potentials that count the data more than once."""

    inner: LinearGaussian
    weight: jax.Array

    def potentials(self, y, mask):
        p = self.inner.potentials(y, mask)
        return Potentials(self.weight * p.precision, self.weight * p.information)

    def log_density(self, y, mask, x):
        return self.inner.log_density(y, mask, x)

    def updated(self, y, mask, x, rate):
        return _Scaled(self.inner.updated(y, mask, x, rate), self.weight)

    def turned(self, T):
        return _Scaled(self.inner.turned(T), self.weight)

    def mean(self, x):
        return self.inner.mean(x)

    def sample(self, x, *, key):
        return self.inner.sample(x, key=key)


@pytest.mark.parametrize(
    ("weight", "message"),
    [(1.5, "not the likelihood"), (np.nan, "not zero")],
    ids=["too sure", "not a number"],
)
def test_an_emission_with_wrong_potentials_is_refused(weight, message):
    with pytest.raises(AssertionError, match=message):
        check_emission(_Scaled(emission(), jnp.asarray(weight)), DIM, N_CHANNELS)


class _TooSharp(AbstractTransition):
    """Its density is that of half its variance."""

    inner: LinearTransition

    def mean(self, x, dt):
        return self.inner.mean(x, dt)

    def variance(self, x, dt):
        return self.inner.variance(x, dt)

    def linearise(self, x, dt):
        return self.inner.linearise(x, dt)

    def expected_log_density(self, x, x_next, dt):
        return 2.0 * self.inner.expected_log_density(x, x_next, dt)

    def pusher(self):
        return self.inner.pusher()


def test_a_transition_whose_density_is_not_its_own_is_refused():
    with pytest.raises(AssertionError, match="parabola"):
        check_transition(_TooSharp(LinearTransition(-jnp.eye(2), jnp.zeros(2), jnp.ones(2))), 2)
