"""Expectations of kernels under a Gaussian input, in closed form.

Notation   x ~ N(m, P)      z_a, z_b: rows of Z [M, D]
           bump: v exp(-(x - z)' Lam^-1 (x - z) / 2), Lam = diag(lengthscale^2)
           affine: c + s_a' x, the sum of the constant and linear terms, s_a = variances * z_a
           first_a = E k(x, z_a)      gradient_a = E dk(x, z_a)/dx      second_ab = E k(x, z_a) k(x, z_b)
Equations  (1) E bump = v |I + Lam^-1 P|^(-1/2) exp(-(z - m)' (P + Lam)^-1 (z - m) / 2)
           (2) E grad f = d(E f)/dm, hence E grad bump = (P + Lam)^-1 (z - m) E bump
           (3) E f(x) (c + s'x) = E f (c + s'm) + (E grad f)' P s                                (Stein)
           (4) bump1(x, z_a) bump2(x, z_b) = bump of centre C (Lam1^-1 z_a + Lam2^-1 z_b) and Lam = C,
               C^-1 = Lam1^-1 + Lam2^-1, times exp(-(z_a - z_b)' (Lam1 + Lam2)^-1 (z_a - z_b) / 2); then (1)

What depends on the kernel and Z only is worked out by ``prepare``, outside the scan over time that calls
``moments``. D x D algebra is unrolled; every M x M matrix is one matrix product and one exponential.
"""

import functools
import itertools
from abc import abstractmethod
from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp

from lamperti._errors import CapabilityError
from lamperti._typing import Array, Float, Scalar
from lamperti.interfaces import AbstractKernel
from lamperti.kernels._base import Mapped, Scaled, Sum
from lamperti.kernels._stationary import squared_distances
from lamperti.kernels.constant import Constant
from lamperti.kernels.linear import Linear
from lamperti.kernels.squared_exponential import SquaredExponential
from lamperti.math.small import inverse_pd, matmul, matvec, transpose


class KernelMoments(eqx.Module):
    """Moments of k(x, Z) for a Gaussian x; ``cov @ gradient.T`` is Cov(x, k(x, Z))."""

    first: Float[Array, " M"]
    gradient: Float[Array, "M D"]
    second: Float[Array, "M M"]


class _Bump(eqx.Module):
    """A squared-exponential term at every z."""

    z: Float[Array, "M D"]
    squared_lengthscale: Float[Array, " D"]
    variance: Scalar

    def moments(
        self, mean: Float[Array, " D"], cov: Float[Array, "D D"]
    ) -> tuple[Float[Array, " M"], Float[Array, "M D"]]:
        lam = self.squared_lengthscale
        inverse, logdet = inverse_pd(cov + jnp.diag(lam))
        away = self.z - mean
        pull = away @ inverse
        log_shrink = -0.5 * (logdet - jnp.sum(jnp.log(lam)))
        first = self.variance * jnp.exp(log_shrink - 0.5 * jnp.sum(pull * away, axis=1))
        return first, pull * first[:, None]


class _BumpPair(eqx.Module):
    """The product of two squared-exponential terms, equation (4)."""

    z: Float[Array, "M D"]
    share_left: Float[Array, " D"]
    share_right: Float[Array, " D"]
    width: Float[Array, " D"]
    log_scale: Float[Array, "M M"]

    def __init__(self, left: _Bump, right: _Bump):
        lam = left.squared_lengthscale + right.squared_lengthscale
        self.z = left.z
        self.share_left = right.squared_lengthscale / lam
        self.share_right = left.squared_lengthscale / lam
        self.width = self.share_left * left.squared_lengthscale
        scaled = left.z / jnp.sqrt(lam)
        log_norm = jnp.log(left.variance * right.variance) + 0.5 * jnp.sum(jnp.log(self.width))
        self.log_scale = log_norm - 0.5 * squared_distances(scaled, scaled)

    def second(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> Float[Array, "M M"]:
        inverse, logdet = inverse_pd(cov + jnp.diag(self.width))
        # The centre of the product, seen from m, is u_a + w_b since the shares add up to one. Half the
        # quadratic form, u'Aw + u'Au/2 + w'Aw/2, is one matrix product of rows (Au, u'Au/2, 1) and
        # (w, 1, w'Aw/2): up to twice as fast as adding the separable terms afterwards.
        away = self.z - mean
        u, w = self.share_left * away, self.share_right * away
        pull = u @ inverse
        half_u = 0.5 * jnp.sum(pull * u, axis=1, keepdims=True)
        half_w = 0.5 * jnp.sum((w @ inverse) * w, axis=1, keepdims=True) + 0.5 * logdet
        one = jnp.ones_like(half_u)
        energy = jnp.concatenate([pull, half_u, one], axis=1) @ jnp.concatenate([w, one, half_w], axis=1).T
        return jnp.exp(self.log_scale - energy)


class _Affine(eqx.Module):
    """The constant and linear terms together: intercept + slope_a' x."""

    intercept: Scalar
    slope: Float[Array, "M D"]


class _TermMoments(eqx.Module):
    """First moments and gradients, of the bumps together and of the affine part."""

    bump_first: Float[Array, " M"]
    bump_gradient: Float[Array, "M D"]
    affine_first: Float[Array, " M"]
    affine_gradient: Float[Array, "M D"]

    @property
    def first(self) -> Float[Array, " M"]:
        return self.bump_first + self.affine_first

    @property
    def gradient(self) -> Float[Array, "M D"]:
        return self.bump_gradient + self.affine_gradient


class _Terms(eqx.Module):
    """A kernel at Z, taken apart."""

    bumps: tuple[_Bump, ...]
    affine: _Affine
    has_affine: bool = eqx.field(static=True)

    def __init__(self, kernel: AbstractKernel, z: Float[Array, "M D"]):
        require_expectations(kernel)
        if isinstance(kernel, Mapped):
            raise CapabilityError("Mapped kernels have closed-form expectations alone, not beside another kernel.")
        one = jnp.ones((), z.dtype)
        bumps, intercept, slope = [], 0.0 * one, jnp.zeros_like(z)
        self.has_affine = False
        for term, scale in _scaled_terms(kernel, one):
            if isinstance(term, SquaredExponential):
                lam = jnp.broadcast_to(term.lengthscale**2, z.shape[1:])
                bumps.append(_Bump(z, lam, scale * term.variance))
            elif isinstance(term, Linear):
                slope += scale * term.variances * z
                self.has_affine = True
            elif isinstance(term, Constant):
                intercept += scale * term.variance
                self.has_affine = True
        self.bumps = tuple(bumps)
        self.affine = _Affine(intercept, slope)

    def moments(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> _TermMoments:
        slope = self.affine.slope
        bump_first, bump_gradient = jnp.zeros_like(slope[:, 0]), jnp.zeros_like(slope)
        for bump in self.bumps:
            first, gradient = bump.moments(mean, cov)
            bump_first, bump_gradient = bump_first + first, bump_gradient + gradient
        return _TermMoments(bump_first, bump_gradient, self.affine.intercept + slope @ mean, slope)


def _scaled_terms(kernel: AbstractKernel, scale: Scalar) -> Iterator[tuple[AbstractKernel, Scalar]]:
    """The terms of a sum, with the factors of the scalings around each."""
    if isinstance(kernel, Sum):
        yield from _scaled_terms(kernel.left, scale)
        yield from _scaled_terms(kernel.right, scale)
    elif isinstance(kernel, Scaled):
        yield from _scaled_terms(kernel.kernel, scale * kernel.variance)
    else:
        yield kernel, scale


def _affine_second(left: _TermMoments, right: _TermMoments, cov: Float[Array, "D D"]) -> Float[Array, "M M"]:
    """The products of E k k' in which at least one factor is affine: equation (3), as one matrix product."""
    rows = [left.bump_first[:, None], left.affine_first[:, None]]
    rows += [left.bump_gradient @ cov, left.affine_gradient @ cov]
    columns = [right.affine_first[:, None], right.first[:, None], right.affine_gradient, right.gradient]
    return jnp.concatenate(rows, axis=1) @ jnp.concatenate(columns, axis=1).T


class AbstractPrepared(eqx.Module):
    """A kernel and its inducing inputs, ready for many Gaussians; made by ``prepare``."""

    @abstractmethod
    def moments(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> KernelMoments:
        """First moment, mean gradient and second moment of k(x, Z) for x ~ N(mean, cov)."""


class PreparedKernel(AbstractPrepared):
    """A sum of terms with closed forms."""

    _terms: _Terms
    _pairs: tuple[_BumpPair, ...]
    _cross_pairs: tuple[_BumpPair, ...]

    def __init__(self, kernel: AbstractKernel, z: Float[Array, "M D"]):
        self._terms = _Terms(kernel, z)
        bumps = self._terms.bumps
        self._pairs = tuple(_BumpPair(bump, bump) for bump in bumps)
        self._cross_pairs = tuple(_BumpPair(a, b) for a, b in itertools.combinations(bumps, 2))

    def moments(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> KernelMoments:
        terms = self._terms.moments(mean, cov)
        parts = [pair.second(mean, cov) for pair in self._pairs]
        for pair in self._cross_pairs:
            block = pair.second(mean, cov)
            parts.append(block + block.T)
        if self._terms.has_affine:
            parts.append(_affine_second(terms, terms, cov))
        return KernelMoments(terms.first, terms.gradient, functools.reduce(jnp.add, parts))


class _PreparedMapped(AbstractPrepared):
    """A kernel that sees other coordinates: a Gaussian is one there as well."""

    _inner: AbstractPrepared
    _axes: Float[Array, "D D"]

    def moments(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> KernelMoments:
        axes = self._axes
        inner = self._inner.moments(matvec(axes, mean), matmul(matmul(axes, cov), transpose(axes)))
        return KernelMoments(inner.first, inner.gradient @ axes, inner.second)


class PreparedCross(eqx.Module):
    """Two kernels on the same inducing inputs, ready for many Gaussians; made by ``prepare_cross``."""

    _left: _Terms
    _right: _Terms
    _pairs: tuple[_BumpPair, ...]

    def __init__(self, left: AbstractKernel, right: AbstractKernel, z: Float[Array, "M D"]):
        self._left, self._right = _Terms(left, z), _Terms(right, z)
        self._pairs = tuple(_BumpPair(a, b) for a, b in itertools.product(self._left.bumps, self._right.bumps))

    def second(self, mean: Float[Array, " D"], cov: Float[Array, "D D"]) -> Float[Array, "M M"]:
        """E left(x, z_a) right(x, z_b) for x ~ N(mean, cov)."""
        parts = [pair.second(mean, cov) for pair in self._pairs]
        if self._left.has_affine or self._right.has_affine:
            left, right = self._left.moments(mean, cov), self._right.moments(mean, cov)
            parts.append(_affine_second(left, right, cov))
        return functools.reduce(jnp.add, parts)


def prepare(kernel: AbstractKernel, z: Float[Array, "M D"]) -> AbstractPrepared:
    """Work out what no Gaussian enters. Raises CapabilityError for a kernel without closed forms."""
    if isinstance(kernel, Mapped):
        return _PreparedMapped(prepare(kernel.kernel, z @ kernel.axes.T), kernel.axes)
    return PreparedKernel(kernel, z)


def prepare_cross(left: AbstractKernel, right: AbstractKernel, z: Float[Array, "M D"]) -> PreparedCross:
    """As ``prepare``, for E left(x, z_a) right(x, z_b): coordinates of a drift with their own kernels."""
    return PreparedCross(left, right, z)


def expectations(
    kernel: AbstractKernel, mean: Float[Array, " D"], cov: Float[Array, "D D"], z: Float[Array, "M D"]
) -> KernelMoments:
    """Moments of k(x, Z) for one Gaussian x ~ N(mean, cov); with many, ``prepare`` once.

    Raises CapabilityError for a kernel without closed-form expectations.

    >>> moments = expectations(SquaredExponential(1.0), jnp.zeros(1), jnp.eye(1), jnp.zeros((1, 1)))
    >>> round(float(moments.first[0]) ** -2, 6)
    2.0
    """
    return prepare(kernel, z).moments(mean, cov)


def has_expectations(kernel: AbstractKernel) -> bool:
    """True for squared exponential, linear and constant kernels and for their scaled sums, mapped or not."""
    return _without_expectations(kernel) is None


def require_expectations(kernel: AbstractKernel) -> None:
    """Raise CapabilityError, naming the part that is in the way, unless ``has_expectations(kernel)``."""
    name = _without_expectations(kernel)
    if name is not None:
        raise CapabilityError(
            f"MomentMatching needs closed-form kernel expectations, which {name} does not have. "
            "Use Linearised() or SigmaPoint()."
        )


def _without_expectations(kernel: AbstractKernel) -> str | None:
    if isinstance(kernel, Mapped):
        return _without_expectations_unmapped(kernel.kernel)
    return _without_expectations_unmapped(kernel)


def _without_expectations_unmapped(kernel: AbstractKernel) -> str | None:
    """Inside a sum no part may be mapped: the terms must share their coordinates."""
    if isinstance(kernel, Sum):
        return _without_expectations_unmapped(kernel.left) or _without_expectations_unmapped(kernel.right)
    if isinstance(kernel, Scaled):
        return _without_expectations_unmapped(kernel.kernel)
    if isinstance(kernel, SquaredExponential | Linear | Constant):
        return None
    return type(kernel).__name__
