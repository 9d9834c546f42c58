"""The contract of a smoother: on a linear model it gives the exact chain.

Notation   exact: the joint Gaussian of the whole path (_dense.py)      se: standard error over repeated keys
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.interfaces import AbstractChain, AbstractSmoother, Gaussian, PathSamples, Potentials
from lamperti.testing._dense import DensePath, dense_path
from lamperti.testing._linear import LinearTransition

_REPEATS = 16
_PATHS = 200


class LinearProblem(NamedTuple):
    """A stable linear model, irregular steps, and potentials that are silent or rank-deficient at places."""

    transition: LinearTransition
    initial: Gaussian
    potentials: Potentials
    dt: Float[Array, " N"]

    def exact(self) -> DensePath:
        steps = jax.vmap(self.transition.linearise)(self.potentials.information[:-1], self.dt)
        return dense_path(self.initial, steps, self.potentials)

    def padded(self, n: int) -> tuple["LinearProblem", Bool[Array, " N"]]:
        """The same problem with n unlinked samples behind it, of which potentials say something: it must not count."""
        p, d = self.potentials, self.initial.mean.shape[0]
        longer = Potentials(
            jnp.concatenate([p.precision, jnp.broadcast_to(2.0 * jnp.eye(d), (n, d, d))]),
            jnp.concatenate([p.information, jnp.ones((n, d))]),
        )
        link = jnp.arange(len(self.dt) + n) < len(self.dt)
        return self._replace(potentials=longer, dt=jnp.concatenate([self.dt, jnp.ones(n)])), link


def linear_problem(length: int = 8, dim: int = 2, seed: int = 0) -> LinearProblem:
    """A damped rotation, seen in one random direction at a time, with a gap in the middle."""
    rng = np.random.default_rng(seed)
    skew = np.triu(rng.normal(size=(dim, dim)), 1)
    weight, bias = skew - skew.T - 0.5 * np.eye(dim), rng.normal(size=dim)
    diffusion = rng.uniform(0.3, 1.0, size=dim)
    dt = rng.uniform(0.05, 0.4, size=length - 1)
    start, chol = rng.normal(size=dim), np.tril(rng.normal(size=(dim, dim)) * 0.2) + np.eye(dim)
    x = [start + chol @ rng.normal(size=dim)]
    for step in dt:
        x.append(x[-1] + step * (weight @ x[-1] + bias) + np.sqrt(step * diffusion) * rng.normal(size=dim))

    loading = rng.normal(size=(length, dim))
    strength = rng.uniform(0.5, 4.0, size=length)
    y = np.sum(loading * np.array(x), axis=1) + rng.normal(size=length) / np.sqrt(strength)
    strength[length // 3 : length // 2] = 0.0
    precision = strength[:, None, None] * loading[:, :, None] * loading[:, None, :]
    information = (strength * y)[:, None] * loading
    return LinearProblem(
        LinearTransition(*map(jnp.asarray, (weight, bias, diffusion))),
        Gaussian(jnp.asarray(start), jnp.asarray(chol)),
        Potentials(jnp.asarray(precision), jnp.asarray(information)),
        jnp.asarray(dt),
    )


class _Summary(NamedTuple):
    """What is compared with the exact chain, for one key."""

    mean: Float[Array, "T D"]
    cov: Float[Array, "T D D"]
    log_normaliser: Float[Array, ""]
    entropy: Float[Array, ""]


def check_smoother(smoother: AbstractSmoother, *, rtol: float = 1e-6) -> None:
    """Check that a smoother is exact on a linear model, and that its chain agrees with itself.

    Marginals, the last state, the log-normaliser and the entropy equal those of the joint Gaussian: to ``rtol``
    where the answer does not depend on the key, within five standard errors over keys where it does. Samples
    have the chain's moments and density; a padded tail changes nothing; gradients are finite.
    """
    assert isinstance(smoother, AbstractSmoother), f"{type(smoother).__name__} is not an AbstractSmoother"
    problem = linear_problem()
    exact = problem.exact()
    keys = jax.random.split(jax.random.key(0), _REPEATS)
    found, last, paths, gradients = _run_unpadded(smoother, problem, keys)
    random = bool(np.ptp(found.mean, axis=0).max() > 0)
    _compare(found, exact, random, rtol, "")
    _compare_last(last, exact, random, rtol)
    _check_samples(paths, exact, random)
    finite = all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))
    assert finite, "a gradient through the chain is not finite"

    found, paths = _run_padded(smoother, *problem.padded(3), keys)
    n = len(exact.mean)
    found = found._replace(mean=found.mean[:, :n], cov=found.cov[:, :n])
    _compare(found, exact, random, rtol, " with a padded tail")
    if not random:
        _check_density(np.asarray(paths.x[0, :, :n]), np.asarray(paths.log_q[0]), exact, " with a padded tail")


def _summarise(chain: AbstractChain) -> _Summary:
    marginals = chain.marginals()
    return _Summary(marginals.mean, marginals.cov, chain.log_normaliser(), chain.entropy())


@eqx.filter_jit
def _run_padded(smoother, problem: LinearProblem, link, keys: Array):
    def one(key: PRNGKeyArray):
        chain = _run(smoother, problem, key, link)
        return _summarise(chain), chain.sample(8, key=jax.random.fold_in(key, 1))

    return jax.lax.map(one, keys)


@eqx.filter_jit
def _run_unpadded(smoother, problem: LinearProblem, keys: Array):
    """Values and derivatives in one program, because compiling is what takes the time."""

    def total(parts, key: PRNGKeyArray):
        transition, initial, potentials = parts
        chain = _run(smoother, LinearProblem(transition, initial, potentials, problem.dt), key)
        paths = chain.sample(_PATHS, key=jax.random.fold_in(key, 1))
        value = jnp.sum(paths.x**2) + jnp.sum(paths.log_q) + chain.entropy() + chain.log_normaliser()
        return value, (_summarise(chain), chain.last(), paths)

    def one(key: PRNGKeyArray):
        parts = (problem.transition, problem.initial, problem.potentials)
        gradients, values = jax.grad(total, has_aux=True)(parts, key)
        return *values, gradients

    return jax.lax.map(one, keys)


def _run(smoother, problem: LinearProblem, key: PRNGKeyArray, link=None) -> AbstractChain:
    points = jnp.zeros_like(problem.potentials.information)
    return smoother(*problem, points=points, link=link, key=key)


def _compare(found: _Summary, exact: DensePath, random: bool, rtol: float, where: str) -> None:
    mean, cov = np.asarray(found.mean), np.asarray(found.cov)
    if random:
        cov = cov + _outer(mean - exact.mean)
    pairs = {
        "marginal mean": (mean, exact.mean),
        "marginal covariance": (cov, exact.marginal_cov),
        "log-normaliser": (np.asarray(found.log_normaliser), np.asarray(exact.log_normaliser)),
        "entropy": (np.asarray(found.entropy), np.asarray(exact.entropy)),
    }
    for name, (values, truth) in pairs.items():
        _close(values, truth, random, rtol, f"the {name} is not exact on a linear model{where}")


def _compare_last(last: Gaussian, exact: DensePath, random: bool, rtol: float) -> None:
    mean, chol = np.asarray(last.mean), np.asarray(last.chol)
    cov = chol @ np.swapaxes(chol, -1, -2)
    if random:
        cov = cov + _outer(mean - exact.mean[-1])
    _close(mean, exact.mean[-1], random, rtol, "the mean of the last state is not exact on a linear model")
    _close(cov, exact.marginal_cov[-1], random, rtol, "the covariance of the last state is not exact")


def _outer(away: np.ndarray) -> np.ndarray:
    """A cloud's covariance is around its own mean, whose error it lacks; with this it is around the exact one."""
    return away[..., :, None] * away[..., None, :]


def _close(values: np.ndarray, truth: np.ndarray, random: bool, rtol: float, label: str) -> None:
    if random:
        _within_errors(values, truth, label)
    else:
        np.testing.assert_allclose(values[0], truth, rtol=rtol, atol=rtol * np.abs(truth).max(), err_msg=label)


def _within_errors(values: np.ndarray, truth: np.ndarray, label: str) -> None:
    """Compare the mean over the leading axis with the truth, at five standard errors."""
    error = np.abs(values.mean(axis=0) - truth)
    se = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    worst = np.max(error / np.maximum(se, 1e-300))
    assert worst < 5.0, f"{label}: {worst:.1f} standard errors away (largest error {error.max():.3g})"


def _check_samples(paths: PathSamples, exact: DensePath, random: bool) -> None:
    x, log_q = np.asarray(paths.x), np.asarray(paths.log_q)
    assert x.shape[1:] == (_PATHS, *exact.mean.shape), f"sample(n) has shape {x.shape[1:]}, not [n, T, D]"
    assert log_q.shape[1:] == (_PATHS,), f"log_q has shape {log_q.shape[1:]}, not [n]"
    if random:
        # Paths of one cloud share its error, so clouds, not paths, are the independent units.
        _within_errors(x.mean(axis=1), exact.mean, "the mean of samples is not that of the chain")
        return
    _check_density(x[0], log_q[0], exact, "")
    away = x.reshape(-1, *exact.mean.shape) - exact.mean
    _within_errors(away, np.zeros_like(exact.mean), "the mean of samples is not that of the chain")
    # Neighbours are checked jointly: independent draws from the marginals would pass otherwise.
    products = away[:, :-1, :, None] * away[:, 1:, None, :]
    truth = np.stack([exact.cov[t, :, t + 1] for t in range(len(exact.mean) - 1)])
    _within_errors(products, truth, "the covariance of neighbours is not that of the chain")
    _within_errors(-log_q.ravel(), np.asarray(exact.entropy), "log_q does not average to minus the entropy")


def _check_density(x: np.ndarray, log_q: np.ndarray, exact: DensePath, where: str) -> None:
    np.testing.assert_allclose(
        log_q, exact.log_density(x), rtol=1e-8, atol=1e-8,
        err_msg=f"log_q is not the log-density of the samples{where}",
    )  # fmt: skip
