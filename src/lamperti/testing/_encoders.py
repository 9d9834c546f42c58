"""The contract of an encoder: L samples in, L - lead Gaussian potentials out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti.interfaces import AbstractEncoder, Encoding

_STATES = 6


def check_encoder(encoder: AbstractEncoder, n_channels: int) -> None:
    """Check the shapes, the silence and the derivatives of an encoder of series with ``n_channels`` channels.

    The potentials are positive semi-definite, centred on ``mean`` where the encoder knows something, and say
    nothing where it does not; a series of which nothing was seen is not known anywhere. One state is enough.
    ``turned`` gives the same potentials in other coordinates.
    """
    assert isinstance(encoder, AbstractEncoder), f"{type(encoder).__name__} is not an AbstractEncoder"
    assert encoder.lead >= 0, f"lead is {encoder.lead}; it counts samples, so it cannot be negative"
    rng = np.random.default_rng(0)
    length = encoder.lead + _STATES
    y = jnp.asarray(rng.normal(size=(length, n_channels)))
    dt = jnp.asarray(rng.uniform(0.5, 1.5, size=length - 1))
    everything = jnp.ones(y.shape, dtype=bool)
    partly = jnp.asarray(rng.random(y.shape) < 0.6)

    for mask in (everything, partly, ~everything):
        found = encoder(y, mask, dt)
        _check_encoding(found, _STATES)
        compiled = eqx.filter_jit(lambda e, *args: e(*args))(encoder, y, mask, dt)
        np.testing.assert_allclose(compiled.mean, found.mean, rtol=1e-8, atol=1e-10, err_msg="compiled means differ")
    assert np.all(encoder(y, everything, dt).known), "a series without gaps is not known everywhere"
    assert not np.any(encoder(y, ~everything, dt).known), "the encoder claims to know a series it has not seen"
    first = encoder.lead + 1
    _check_encoding(encoder(y[:first], everything[:first], dt[: first - 1]), 1)
    _check_turned(encoder, y, partly, dt)
    _check_gradient(encoder, y, partly, dt)


def _check_encoding(found: Encoding, n: int) -> None:
    d = found.mean.shape[-1]
    L, h = np.asarray(found.potentials.precision), np.asarray(found.potentials.information)
    shapes = (found.mean.shape, L.shape, h.shape, found.known.shape)
    assert shapes == ((n, d), (n, d, d), (n, d), (n,)), f"lead + {n} samples give arrays of shapes {shapes}"
    assert np.all(np.isfinite(found.mean)), "means are not finite"
    assert np.all(np.isfinite(L)) and np.all(np.isfinite(h)), "potentials are not finite"
    np.testing.assert_allclose(L, np.swapaxes(L, 1, 2), rtol=1e-8, err_msg="a precision is not symmetric")
    known = np.asarray(found.known)
    lowest = np.linalg.eigvalsh(L)[:, 0]
    assert np.all(lowest[known] > 0), f"a precision is not positive definite: its lowest eigenvalues are {lowest}"
    assert not L[~known].any() and not h[~known].any(), "potentials speak where known is False"
    centre = np.einsum("tij,tj->ti", L, found.mean)
    np.testing.assert_allclose(
        h[known], centre[known], rtol=1e-6, atol=1e-8, err_msg="potentials are not centred on mean"
    )


def _check_turned(encoder: AbstractEncoder, y: jax.Array, mask: jax.Array, dt: jax.Array) -> None:
    before = encoder(y, mask, dt)
    d = before.mean.shape[1]
    T = np.eye(d) + 0.3 * np.random.default_rng(1).normal(size=(d, d))
    after, back = encoder.turned(jnp.asarray(T))(y, mask, dt), np.linalg.inv(T)
    pairs = {
        "mean": (after.mean, np.asarray(before.mean) @ T.T),
        "precision": (after.potentials.precision, back.T @ np.asarray(before.potentials.precision) @ back),
        "information": (after.potentials.information, np.asarray(before.potentials.information) @ back),
    }
    for name, (found, expected) in pairs.items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            found, expected, rtol=1e-6, atol=1e-8 * scale, err_msg=f"turned(T) does not turn the {name}"
        )


def _check_gradient(encoder: AbstractEncoder, y: jax.Array, mask: jax.Array, dt: jax.Array) -> None:
    def total(e: AbstractEncoder) -> jax.Array:
        found = e(y, mask, dt)
        return jnp.sum(found.mean**2) + found.potentials.log_value(jnp.ones_like(found.mean))

    leaves = jax.tree.leaves(eqx.filter_grad(total)(encoder))
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves), "the gradient of a parameter is not finite"
