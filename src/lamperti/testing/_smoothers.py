"""The contract of a smoother: on a linear model it gives the exact chain.

Notation   exact: the joint Gaussian of the whole path (_dense.py)      se: standard error over repeated keys
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lamperti._typing import Array, Bool, Float, PRNGKeyArray
from lamperti.interfaces import AbstractSmoother, Gaussian, Potentials
from lamperti.testing._dense import DensePath, dense_path
from lamperti.testing._linear import LinearTransition

_REPEATS = 24
_PATHS = 2000


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
        """The same problem with n unlinked samples behind it."""
        p, d = self.potentials, self.initial.mean.shape[0]
        longer = Potentials(
            jnp.concatenate([p.precision, jnp.zeros((n, d, d))]),
            jnp.concatenate([p.information, jnp.zeros((n, d))]),
        )
        link = jnp.arange(len(self.dt) + n) < len(self.dt)
        return self._replace(potentials=longer, dt=jnp.concatenate([self.dt, jnp.ones(n)])), link


def linear_problem(length: int = 12, dim: int = 2, seed: int = 0) -> LinearProblem:
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
    """What is compared, for one key."""

    mean: Float[Array, "T D"]
    cov: Float[Array, "T D D"]
    last_mean: Float[Array, " D"]
    last_cov: Float[Array, "D D"]
    log_normaliser: Float[Array, ""]
    entropy: Float[Array, ""]


def check_smoother(smoother: AbstractSmoother, *, rtol: float = 1e-6) -> None:
    """Check that a smoother is exact on a linear model, and that its chain agrees with itself.

    Marginals, the last state, the log-normaliser and the entropy equal those of the joint Gaussian: to ``rtol``
    where the answer does not depend on the key, within five standard errors over keys where it does. Samples
    have the chain's moments; a padded tail changes nothing; gradients are finite.
    """
    assert isinstance(smoother, AbstractSmoother), f"{type(smoother).__name__} is not an AbstractSmoother"
    problem = linear_problem()
    keys = jax.random.split(jax.random.key(0), _REPEATS)
    link = jnp.ones(problem.dt.shape, dtype=bool)
    summaries = _summarise(smoother, problem, link, keys)
    random = any(np.ptp(a, axis=0).max() > 0 for a in jax.tree.map(np.asarray, summaries))
    exact = _exact_summary(problem.exact())
    _compare(summaries, exact, random, rtol, "")

    longer, link = problem.padded(3)
    padded = _summarise(smoother, longer, link, keys)
    n = len(problem.dt) + 1
    # The last state of a padded chain is padding, so it is not compared.
    padded = padded._replace(
        mean=padded.mean[:, :n], cov=padded.cov[:, :n], last_mean=summaries.last_mean, last_cov=summaries.last_cov
    )
    _compare(padded, exact, random, rtol, " with a padded tail")

    _check_samples(smoother, problem, random)
    _check_gradients(smoother, problem)


@eqx.filter_jit
def _summarise(smoother, problem: LinearProblem, link, keys: Array) -> _Summary:
    def one(key: PRNGKeyArray) -> _Summary:
        chain = _run(smoother, problem, key, link)
        m, last = chain.marginals(), chain.last()
        return _Summary(m.mean, m.cov, last.mean, last.cov, chain.log_normaliser(), chain.entropy())

    return jax.lax.map(one, keys)


def _run(smoother, problem: LinearProblem, key: PRNGKeyArray, link=None):
    transition, initial, potentials, dt = problem
    points = jnp.zeros_like(potentials.information)
    return smoother(transition, initial, potentials, dt, points=points, link=link, key=key)


def _exact_summary(exact: DensePath) -> _Summary:
    cov = exact.marginal_cov
    return _Summary(exact.mean, cov, exact.mean[-1], cov[-1], exact.log_normaliser, exact.entropy)  # pyright: ignore


def _compare(found: _Summary, exact: _Summary, random: bool, rtol: float, where: str) -> None:
    if random:
        # A cloud's covariance is around its own mean, whose error would be missing; taken around the exact mean
        # the second moment has no such bias.
        found = found._replace(
            cov=found.cov + _outer(found.mean - exact.mean),
            last_cov=found.last_cov + _outer(found.last_mean - exact.last_mean),
        )
    for name, values, truth in zip(_Summary._fields, found, exact, strict=True):
        values, truth = np.asarray(values), np.asarray(truth)
        label = f"{name} is not exact on a linear model{where}"
        if random:
            _within_errors(values, truth, label)
        else:
            scale = np.abs(truth).max()
            np.testing.assert_allclose(values[0], truth, rtol=rtol, atol=rtol * scale, err_msg=label)


def _outer(a: Array) -> Array:
    return a[..., :, None] * a[..., None, :]


def _within_errors(values: np.ndarray, truth: np.ndarray, label: str) -> None:
    """Compare the mean over the leading axis with the truth, at five standard errors."""
    error = np.abs(values.mean(axis=0) - truth)
    se = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    worst = np.max(error / np.maximum(se, 1e-300))
    assert worst < 5.0, f"{label}: {worst:.1f} standard errors away (largest error {error.max():.3g})"


def _check_samples(smoother: AbstractSmoother, problem: LinearProblem, random: bool) -> None:
    @eqx.filter_jit
    def draw(key: PRNGKeyArray):
        key_chain, key_sample = jax.random.split(key)
        return _run(smoother, problem, key_chain).sample(_PATHS, key=key_sample)

    exact = problem.exact()
    keys = jax.random.split(jax.random.key(1), 8 if random else 1)
    draws = [draw(key) for key in keys]
    x, log_q = np.stack([p.x for p in draws]), np.stack([p.log_q for p in draws])
    assert x.shape[1:] == (_PATHS, *exact.mean.shape), f"sample(n) has shape {x.shape[1:]}, not [n, T, D]"
    assert log_q.shape[1:] == (_PATHS,), f"log_q has shape {log_q.shape[1:]}, not [n]"
    if random:
        # Paths of one cloud share its error, so clouds, not paths, are the independent units.
        _within_errors(x.mean(axis=1), exact.mean, "the mean of samples is not that of the chain")
        return
    density = exact.log_density(x[0])
    np.testing.assert_allclose(
        log_q[0], density, rtol=1e-8, atol=1e-8, err_msg="log_q is not the log-density of the samples"
    )
    away = x[0] - exact.mean
    _within_errors(away, np.zeros_like(exact.mean), "the mean of samples is not that of the chain")
    # Neighbours are checked jointly: independent draws from the marginals would pass otherwise.
    products = away[:, :-1, :, None] * away[:, 1:, None, :]
    truth = np.stack([exact.cov[t, :, t + 1] for t in range(len(exact.mean) - 1)])
    _within_errors(products, truth, "the covariance of neighbours is not that of the chain")
    _within_errors(-log_q[0], np.asarray(exact.entropy), "log_q does not average to minus the entropy")


def _check_gradients(smoother: AbstractSmoother, problem: LinearProblem) -> None:
    @eqx.filter_jit
    @eqx.filter_grad
    def slope(parts):
        transition, initial, potentials = parts
        chain = _run(smoother, LinearProblem(transition, initial, potentials, problem.dt), jax.random.key(2))
        paths = chain.sample(2, key=jax.random.key(3))
        return jnp.sum(paths.x**2) + jnp.sum(paths.log_q) + chain.entropy() + chain.log_normaliser()

    gradient = slope((problem.transition, problem.initial, problem.potentials))
    finite = all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert finite, "a gradient through the chain is not finite"
