"""The contract of a kernel.

Notation   x: points [N, D], the first two equal      z: points [M, D], the first three also in x
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._params import realise
from lamperti._typing import Array, Float
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import trainable

# The matrix-product form of squared distances is good to about eps, and a kink at 0 takes its square root.
_TOLERANCE = 1e-7


def check_kernel(kernel: AbstractKernel, dim: int) -> None:
    """Check that a kernel on ``dim`` coordinates keeps the promises that the library relies on.

    It can be compiled; ``gram`` and ``diagonal`` agree with ``__call__``; it is symmetric, with positive
    semi-definite matrices; derivatives up to the second are finite where points coincide, since drifts are
    linearised there and then differentiated; ``trainable`` and ``realise`` give it back, and its parameters
    have gradients. Raises AssertionError, naming the promise that is broken.
    """
    assert isinstance(kernel, AbstractKernel), f"{type(kernel).__name__} is not an AbstractKernel"
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(7, dim)))
    x = x.at[1].set(x[0])
    z = jnp.concatenate([x[:3], jnp.asarray(rng.normal(size=(2, dim)))])
    kernel = realise(kernel)

    values, gradient = _evaluate(kernel, trainable(kernel), x, z)
    _check_values(values)
    _check_finite(values)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)), (
        "the gradient of a parameter is not finite"
    )
    assert jax.tree.structure(realise(trainable(kernel))) == jax.tree.structure(kernel), (
        "realise(trainable(kernel)) is built differently from the kernel"
    )


class _Values(eqx.Module):
    """Everything that the checks look at; computed in one program, which is much quicker than one by one."""

    pair: Array
    pairs: Float[Array, "N M"]
    gram: Float[Array, "N M"]
    gram_swapped: Float[Array, "M N"]
    gram_trained: Float[Array, "N M"]
    gram_self: Float[Array, "N N"]
    diagonal: Float[Array, " N"]
    diagonal_pairs: Float[Array, " N"]
    first: dict[str, Array]
    second: dict[str, Array]


@eqx.filter_jit
def _evaluate(
    kernel: AbstractKernel, parameters: AbstractKernel, x: Float[Array, "N D"], z: Float[Array, "M D"]
) -> tuple[_Values, AbstractKernel]:
    def row(point: Float[Array, " D"]) -> Float[Array, " M"]:
        return kernel.gram(point[None], z)[0]

    def pairwise(point: Float[Array, " D"]) -> Float[Array, " M"]:
        return jax.vmap(lambda b: kernel(point, b))(z)

    ways = {"gram": row, "__call__": pairwise}
    values = _Values(
        pair=kernel(x[0], z[0]),
        pairs=jax.vmap(pairwise)(x),
        gram=kernel.gram(x, z),
        gram_swapped=kernel.gram(z, x),
        gram_trained=realise(parameters).gram(x, z),
        gram_self=kernel.gram(x, x),
        diagonal=kernel.diagonal(x),
        diagonal_pairs=jax.vmap(lambda a: kernel(a, a))(x),
        first={name: jax.jacfwd(way)(x[0]) for name, way in ways.items()},
        second={name: jax.jacrev(jax.jacfwd(way))(x[0]) for name, way in ways.items()},
    )
    return values, eqx.filter_grad(lambda p: jnp.sum(realise(p).gram(x, x)))(parameters)


def _check_values(values: _Values) -> None:
    assert values.pair.shape == (), "a kernel of two points is a scalar"
    scale = float(np.abs(values.pairs).max())

    def agree(got: Array, expected: Array, message: str) -> None:
        np.testing.assert_allclose(got, expected, _TOLERANCE, _TOLERANCE * scale, err_msg=message)

    agree(values.gram, values.pairs, "gram disagrees with __call__")
    agree(values.gram_swapped, values.pairs.T, "the kernel is not symmetric")
    agree(values.diagonal, values.diagonal_pairs, "diagonal disagrees with __call__")
    agree(values.gram_trained, values.gram, "trainable changes the kernel")
    eigenvalues = np.linalg.eigvalsh(np.asarray(values.gram_self))
    assert eigenvalues[0] > -_TOLERANCE * scale, (
        f"gram(x, x) is not positive semi-definite: its eigenvalues are {eigenvalues}"
    )


def _check_finite(values: _Values) -> None:
    for order, derivatives in {"first": values.first, "second": values.second}.items():
        for name, derivative in derivatives.items():
            assert np.all(np.isfinite(derivative)), (
                f"the {order} derivative of {name} is not finite where two points coincide"
            )
