"""Axis letters used in every signature.

T (or N) time, D latent, P observed, M inducing inputs, S samples, B batch, K particles or points.
"""

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Scalar = Float[Array, ""]

__all__ = ["Array", "Bool", "Float", "Int", "PRNGKeyArray", "Scalar"]
