"""The contract of a kernel.

Notation   z: points [M, D], the first two equal      x: the first N of them
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

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
    z = jnp.asarray(rng.normal(size=(7, dim)))
    z = z.at[1].set(z[0])
    kernel = realise(kernel)
    parameters = trainable(kernel)

    values, gradient = _evaluate(kernel, parameters, z[:4], z)
    _check_values(values)
    _check_finite(values)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)), (
        "the gradient of a parameter is not finite"
    )
    assert eqx.tree_equal(realise(parameters), kernel, rtol=_TOLERANCE), "realise(trainable(kernel)) is not the kernel"


class _Values(eqx.Module):
    """Everything that the checks look at; computed in one program, which is much quicker than one by one."""

    pairs: Float[Array, "M M"]
    gram: Float[Array, "N M"]
    diagonal: Float[Array, " M"]
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
        pairs=jax.vmap(pairwise)(z),
        gram=kernel.gram(x, z),
        diagonal=kernel.diagonal(z),
        first={name: jax.jacfwd(way)(x[0]) for name, way in ways.items()},
        second={name: jax.jacrev(jax.jacfwd(way))(x[0]) for name, way in ways.items()},
    )
    return values, eqx.filter_grad(lambda p: jnp.sum(realise(p).gram(x, z)))(parameters)


def _check_values(values: _Values) -> None:
    pairs, n = np.asarray(values.pairs), len(values.gram)
    scale = np.abs(pairs).max()

    def agree(got: ArrayLike, expected: ArrayLike, message: str) -> None:
        np.testing.assert_allclose(got, expected, _TOLERANCE, _TOLERANCE * scale, err_msg=message)

    agree(values.gram, pairs[:n], "gram disagrees with __call__")
    agree(values.diagonal, np.diag(pairs), "diagonal disagrees with __call__")
    agree(pairs, pairs.T, "the kernel is not symmetric")
    eigenvalues = np.linalg.eigvalsh(pairs)
    assert eigenvalues[0] > -_TOLERANCE * scale, (
        f"the kernel is not positive semi-definite: its matrix has the eigenvalues {eigenvalues}"
    )


def _check_finite(values: _Values) -> None:
    for order, derivatives in {"first": values.first, "second": values.second}.items():
        for name, derivative in derivatives.items():
            assert np.all(np.isfinite(derivative)), (
                f"the {order} derivative of {name} is not finite where two points coincide"
            )
