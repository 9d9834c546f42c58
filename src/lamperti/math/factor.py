"""Factorisation of a large positive definite matrix, with derivatives made of matrix products only.

Notation   K = L L'      Phi(A): lower triangle of A with its diagonal halved

``jnp.linalg.cholesky`` differentiates through triangular solves, which can deadlock the two-core CPU client when
they are batched (docs/adr/0004). With L^-1 at hand the derivatives need none:
dL = L Phi(L^-1 dK L^-T),  dL^-1 = -L^-1 dL L^-1.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from lamperti._typing import Array, Float, Scalar


class Factor(eqx.Module):
    """L and L^-1 of K = L L'. The inverse is kept on purpose: see the module's note."""

    chol: Float[Array, "M M"]
    chol_inv: Float[Array, "M M"]

    @property
    def log_det(self) -> Scalar:
        """log |K|."""
        return 2.0 * jnp.sum(jnp.log(jnp.diagonal(self.chol)))

    @property
    def inverse(self) -> Float[Array, "M M"]:
        """K^-1."""
        return self.chol_inv.T @ self.chol_inv


def factorise(K: Float[Array, "M M"]) -> Factor:
    """Cholesky factor of K and its inverse; NaN when K is not positive definite."""
    return Factor(*_factorise(K))


@jax.custom_jvp
def _factorise(K):
    chol = jnp.linalg.cholesky(K)
    chol_inv = solve_triangular(chol, jnp.eye(K.shape[-1], dtype=K.dtype), lower=True)
    return chol, chol_inv


@_factorise.defjvp
def _factorise_jvp(primals, tangents):
    (K,), (dK,) = primals, tangents
    chol, chol_inv = _factorise(K)
    inner = jnp.tril(chol_inv @ (0.5 * (dK + dK.T)) @ chol_inv.T)
    inner = inner - 0.5 * jnp.diag(jnp.diagonal(inner))
    dchol = chol @ inner
    return (chol, chol_inv), (dchol, -chol_inv @ dchol @ chol_inv)
