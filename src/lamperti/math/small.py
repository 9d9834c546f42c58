"""Linear algebra of small matrices, unrolled.

Notation   a: [..., D, D] symmetric positive definite      l: [..., D, D] lower triangular

D is the latent dimension, a handful. LAPACK calls on a batch of such matrices cost more in overhead than in
arithmetic, and batched triangular solves can deadlock the two-core CPU client (docs/adr/0004). Loops over D are
unrolled in Python, so a whole filter step becomes a few fused element-wise programs. Linear models may have more
coordinates; from thirteen on a compiled loop goes over columns, for unrolled programs take minutes to compile.
"""

import jax
import jax.numpy as jnp

from lamperti._typing import Array, Float

_UNROLLED = 12  # coordinates at most


def matmul(a: Float[Array, "*b I K"], b: Float[Array, "*c K J"]) -> Float[Array, "*d I J"]:
    """a @ b as a fused multiply and sum: half the time of a batched dot at D = 2, and never a library call."""
    return jnp.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)


def matvec(a: Float[Array, "*b I K"], v: Float[Array, "*c K"]) -> Float[Array, "*d I"]:
    """a @ v as a fused multiply and sum."""
    return jnp.sum(a * v[..., None, :], axis=-1)


def transpose(a: Float[Array, "*b I J"]) -> Float[Array, "*b J I"]:
    return jnp.swapaxes(a, -1, -2)


def symmetrise(a: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    return 0.5 * (a + transpose(a))


def cholesky(a: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    """Lower Cholesky factor, entry by entry; NaN where ``a`` is not positive definite."""
    d = a.shape[-1]
    if d > _UNROLLED:
        return _looped_cholesky(a)
    l: list[list] = [[0.0] * d for _ in range(d)]
    for j in range(d):
        pivot = jnp.sqrt(a[..., j, j] - sum(l[j][k] ** 2 for k in range(j)))
        l[j][j] = pivot
        for i in range(j + 1, d):
            l[i][j] = (a[..., i, j] - sum(l[i][k] * l[j][k] for k in range(j))) / pivot
    return _assemble(l)


def lower_inverse(l: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    """Inverse of a lower triangular matrix by forward substitution, entry by entry."""
    d = l.shape[-1]
    if d > _UNROLLED:
        return _looped_lower_inverse(l)
    m: list[list] = [[0.0] * d for _ in range(d)]
    for j in range(d):
        m[j][j] = 1.0 / l[..., j, j]
        for i in range(j + 1, d):
            m[i][j] = -sum(l[..., i, k] * m[k][j] for k in range(j, i)) / l[..., i, i]
    return _assemble(m)


def _looped_cholesky(a: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    below = jnp.tri(a.shape[-1], dtype=bool)

    def column(left: Float[Array, "*b D D"], j: Array) -> tuple[Float[Array, "*b D D"], Float[Array, "*b D"]]:
        """A column of the factor, and what it leaves of the matrix."""
        found = jnp.where(below[:, j], left[..., :, j] / jnp.sqrt(left[..., j, j])[..., None], 0.0)
        return left - found[..., :, None] * found[..., None, :], found

    return jnp.moveaxis(jax.lax.scan(column, a, jnp.arange(a.shape[-1]))[1], 0, -1)


def _looped_lower_inverse(l: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    unit = jnp.eye(l.shape[-1])

    def row(done: Float[Array, "*b D D"], i: Array) -> tuple[Float[Array, "*b D D"], None]:
        """With one row more; those that are still to come are zero."""
        found = (unit[i] - jnp.sum(l[..., i, :, None] * done, axis=-2)) / l[..., i, i][..., None]
        return done.at[..., i, :].set(found), None

    return jax.lax.scan(row, jnp.zeros_like(l), jnp.arange(l.shape[-1]))[0]


def _assemble(lower: list[list]) -> Float[Array, "*b D D"]:
    d = len(lower)
    zero = jnp.zeros_like(lower[0][0])
    rows = [jnp.stack([lower[i][j] if j <= i else zero for j in range(d)], axis=-1) for i in range(d)]
    return jnp.stack(rows, axis=-2)


def diagonal(a: Float[Array, "*b D D"]) -> Float[Array, "*b D"]:
    return jnp.stack([a[..., i, i] for i in range(a.shape[-1])], axis=-1)


def inverse_pd(a: Float[Array, "*b D D"]) -> tuple[Float[Array, "*b D D"], Float[Array, "*b"]]:
    """Inverse and log-determinant of a positive definite matrix."""
    l = cholesky(a)
    m = lower_inverse(l)
    return matmul(transpose(m), m), 2.0 * jnp.sum(jnp.log(diagonal(l)), axis=-1)
