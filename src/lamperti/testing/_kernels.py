"""The contract of a kernel.

Notation   x: points [N, D], two of them equal      z: points [M, D], some of them also in x
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._params import PositiveParam, realise
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import trainable


def check_kernel(kernel: AbstractKernel, dim: int) -> None:
    """Check that a kernel on ``dim`` coordinates keeps the promises that the library relies on.

    ``gram`` and ``diagonal`` agree with ``__call__``; the kernel is symmetric and its matrices are positive
    semi-definite; derivatives up to the second are finite where two points coincide; it can be compiled,
    and trained. Raises AssertionError, naming the promise that is broken.
    """
    assert isinstance(kernel, AbstractKernel), f"{type(kernel).__name__} is not an AbstractKernel"
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(7, dim)))
    x = x.at[1].set(x[0])
    z = jnp.concatenate([x[:3], jnp.asarray(rng.normal(size=(2, dim)))])

    _check_matrices(kernel, x, z)
    _check_positive(kernel, x)
    _check_derivatives(kernel, x, z)
    _check_training(kernel, x, z)


def _check_matrices(kernel: AbstractKernel, x: jax.Array, z: jax.Array) -> None:
    pairs = np.array([[float(kernel(a, b)) for b in z] for a in x])
    scale = np.abs(pairs).max()
    assert kernel(x[0], z[0]).shape == (), "a kernel of two points is a scalar"
    # The matrix-product form of squared distances is good to about eps, and a kink takes its square root.
    close = {"rtol": 1e-7, "atol": 1e-7 * scale}
    np.testing.assert_allclose(kernel.gram(x, z), pairs, **close, err_msg="gram disagrees with __call__")
    np.testing.assert_allclose(kernel.gram(z, x), pairs.T, **close, err_msg="the kernel is not symmetric")
    compiled = eqx.filter_jit(lambda k, a, b: k.gram(a, b))(kernel, x, z)
    np.testing.assert_allclose(compiled, pairs, **close, err_msg="compiled gram disagrees with __call__")
    diagonal = [float(kernel(a, a)) for a in x]
    np.testing.assert_allclose(
        kernel.diagonal(x), diagonal, **close, err_msg="diagonal disagrees with __call__"
    )


def _check_positive(kernel: AbstractKernel, x: jax.Array) -> None:
    eigenvalues = np.linalg.eigvalsh(np.asarray(kernel.gram(x, x)))
    assert eigenvalues[0] > -1e-7 * max(eigenvalues[-1], 1e-300), (
        f"gram(x, x) is not positive semi-definite: its eigenvalues are {eigenvalues}"
    )


def _check_derivatives(kernel: AbstractKernel, x: jax.Array, z: jax.Array) -> None:
    """At x[0], which is also z[0] and z[1]: drifts are linearised there, and differentiated again."""

    def row(point: jax.Array) -> jax.Array:
        return kernel.gram(point[None], z)[0]

    def pairwise(point: jax.Array) -> jax.Array:
        return jax.vmap(lambda b: kernel(point, b))(z)

    for name, values in {"gram": row, "__call__": pairwise}.items():
        first = jax.jacfwd(values)(x[0])
        assert np.all(np.isfinite(first)), f"d {name} / dx is not finite where two points coincide"
        second = jax.grad(lambda point, f=values: jnp.sum(jax.jacfwd(f)(point) ** 2))(x[0])
        assert np.all(np.isfinite(second)), (
            f"second derivatives of {name} are not finite at coincident points"
        )


def _check_training(kernel: AbstractKernel, x: jax.Array, z: jax.Array) -> None:
    parameters = trainable(kernel)
    again = realise(parameters)
    assert jax.tree.structure(again) == jax.tree.structure(realise(kernel)), (
        "realise(trainable(kernel)) is built differently from the kernel"
    )
    np.testing.assert_allclose(
        again.gram(x, z), realise(kernel).gram(x, z), rtol=1e-6, err_msg="trainable changes the kernel"
    )
    gradient = eqx.filter_grad(lambda p: jnp.sum(realise(p).gram(x, x)))(parameters)
    leaves = [leaf.raw for leaf in jax.tree.leaves(gradient, is_leaf=_is_param) if _is_param(leaf)]
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves), "the gradient of a parameter is not finite"


def _is_param(leaf: object) -> bool:
    return isinstance(leaf, PositiveParam)
