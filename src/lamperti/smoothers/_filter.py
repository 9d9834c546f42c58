"""Forward passes that give the filtered Gaussian of every step.

Notation   as in _chain.py; potentials in canonical form, precision Lam and information h
Equations  docs/theory.md (13), (18)-(20)
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._typing import Array, Bool, Float, Scalar
from lamperti.interfaces import AffineStep, Gaussian, Potentials
from lamperti.math import small
from lamperti.smoothers._chain import Filtered, predict, unlink, update

MakeStep = Callable[[Float[Array, " D"], Float[Array, "D D"], Scalar], AffineStep]


def _start(initial: Gaussian, potentials: Potentials):
    return update(initial.mean, initial.cov, potentials.precision[0], potentials.information[0])


def filter_steps(steps: AffineStep, initial: Gaussian, potentials: Potentials) -> Filtered:
    """Sequential filter over affine steps that are known beforehand (leading axis: time)."""

    def forward(state, inputs):
        step, precision, information = inputs
        state = update(*predict(step, *state), precision, information)
        return state, state

    first = _start(initial, potentials)
    _, (mean, cov) = jax.lax.scan(forward, first, (steps, potentials.precision[1:], potentials.information[1:]))
    return Filtered(jnp.concatenate([first[0][None], mean]), jnp.concatenate([first[1][None], cov]))


def filter_pushed(
    make_step: MakeStep,
    initial: Gaussian,
    potentials: Potentials,
    dt: Float[Array, " N"],
    link: Bool[Array, " N"],
) -> tuple[Filtered, AffineStep]:
    """Sequential filter whose affine step is made from the filtered Gaussian it starts from."""

    def forward(state, inputs):
        dt_k, link_k, precision, information = inputs
        step = unlink(make_step(state[0], state[1], dt_k), link_k)
        state = update(*predict(step, *state), precision, information)
        return state, (state, step)

    first = _start(initial, potentials)
    inputs = (dt, link, potentials.precision[1:], potentials.information[1:])
    _, ((mean, cov), steps) = jax.lax.scan(forward, first, inputs)
    return Filtered(jnp.concatenate([first[0][None], mean]), jnp.concatenate([first[1][None], cov])), steps


class _Element(eqx.Module):
    """x_k | x_j, e ~ N(A x_j + b, C) and the likelihood exp(-x_j'J x_j/2 + eta'x_j) of what lies between."""

    A: Float[Array, "*k D D"]
    b: Float[Array, "*k D"]
    C: Float[Array, "*k D D"]
    eta: Float[Array, "*k D"]
    J: Float[Array, "*k D D"]


def filter_parallel(steps: AffineStep, initial: Gaussian, potentials: Potentials) -> Filtered:
    """The same filter as an associative scan: depth log T instead of T."""
    mean, cov = _start(initial, potentials)
    zero = jnp.zeros_like(cov)
    first = _Element(zero, mean, cov, jnp.zeros_like(mean), zero)
    rest = _elements(steps, potentials.precision[1:], potentials.information[1:])
    elements = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
    scanned = jax.lax.associative_scan(_combine, elements)
    return Filtered(scanned.b, small.symmetrise(scanned.C))


def _elements(steps: AffineStep, Lam: Float[Array, "N D D"], h: Float[Array, "N D"]) -> _Element:
    inverse, _ = small.inverse_pd(steps.Omega)
    C, _ = small.inverse_pd(inverse + Lam)
    through = jnp.eye(h.shape[-1]) - small.matmul(Lam, C)  # Omega^-1 C
    Psi = small.matmul(through, Lam)  # precision of the potential seen through the noise
    Ft = small.transpose(steps.F)
    back = small.transpose(through)  # C Omega^-1
    return _Element(
        A=small.matmul(back, steps.F),
        b=small.matvec(back, steps.b) + small.matvec(C, h),
        C=C,
        eta=small.matvec(Ft, small.matvec(through, h) - small.matvec(Psi, steps.b)),
        J=small.matmul(Ft, small.matmul(Psi, steps.F)),
    )


def _combine(i: _Element, j: _Element) -> _Element:
    chol = small.cholesky(i.C)
    inner = small.matmul(small.transpose(chol), small.matmul(j.J, chol))
    middle, _ = small.inverse_pd(jnp.eye(i.b.shape[-1]) + inner)
    # M = (I + C_i J_j)^-1 through a symmetric inverse
    M = small.matmul(chol, small.matmul(middle, small.lower_inverse(chol)))
    Mt = small.transpose(M)
    AM = small.matmul(j.A, M)
    At = small.transpose(i.A)
    return _Element(
        A=small.matmul(AM, i.A),
        b=small.matvec(AM, i.b + small.matvec(i.C, j.eta)) + j.b,
        C=small.matmul(small.matmul(AM, i.C), small.transpose(j.A)) + j.C,
        eta=small.matvec(At, small.matvec(Mt, j.eta - small.matvec(j.J, i.b))) + i.eta,
        J=small.matmul(small.matmul(At, small.matmul(Mt, j.J)), i.A) + i.J,
    )
