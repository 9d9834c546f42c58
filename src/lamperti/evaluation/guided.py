"""Particles that are led to the next observation, for filters where it is exact or nearly so.

Notation   x: clouds of states [R, K, D]   y: next observation of each cloud [R], of row'x + N(0, noise_var)
           the interval to y is n fine steps x_{j+1} = mean(x_j) + B(x_j) z_j, z_j standard normal (``FineSteps``)
           mu_j: the same steps without noise from the cloud's mean   c_j: gradient of row'mu_n with respect to mu_j
           V_j: variance of y given x_j, noise linearised about mu
Equations  y given x_j and z_j is taken as N(e_j + u_j'z_j, V_{j+1}), where u_j = B(x_j)'c_{j+1} and
           e_j = row'mu_n + c_{j+1}'(mean(x_j) - mu_{j+1}). With r_j = y - e_j and S_j = u_j'u_j + V_{j+1} the proposal
           is the law of z_j given y: z_j = z + u_j (r_j - u_j'z - sqrt(V_{j+1}) w)/S_j, z and w standard normal
           weight = prod_j N(r_j; 0, S_j) / prod_{j<n-1} N(r_j - u_j'z_j; 0, V_{j+1})

The weight is exact whatever the linearisation is worth: it is the law of the z_j over that of their proposal, times the
likelihood of y, which is the denominator that is missing at j = n-1. For a linear system all of it but N(r_0; 0, S_0) =
p(y | x_0) cancels. Without observation noise the last step that feels y meets it exactly: where the observable itself
is kicked that is step n-1, and where only its speed is (dx = v dt) it is step n-2, after which nothing is open.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from lamperti.data.systems import System
from lamperti.data.systems._simulate import FineSteps

# Of a difference quotient; a linear mean has its gradient to ten digits.
_NUDGE = 1e-6
# Particles moved at once: few enough to stay in the processor's cache over all fine steps.
_AT_ONCE = 8192

Move = Callable[
    [Float[np.ndarray, "R K D"], Float[np.ndarray, " R"], float, np.random.Generator],
    tuple[Float[np.ndarray, "R K D"], Float[np.ndarray, "R K"]],
]


def guided_move(system: System, dt: float, tolerance: float, substeps: int | None = None) -> Move:
    """The map (x, y, noise_var, rng) -> states at the next sample, led to y, and log weights: p(y | x) on average.

    ``tolerance``: how far rounding may leave a path from an observation that it can no longer be led to. A path that
    ends further off has no weight at all (log weight -inf).
    """
    fine = system.fine_steps(dt, substeps)
    row = system.observe(np.eye(system.dimension))[:, 0]

    def move(x: np.ndarray, y: np.ndarray, noise_var: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        size = max(1, _AT_ONCE // x.shape[1])
        groups = [slice(i, i + size) for i in range(0, len(x), size)]
        parts = [_lead(fine, row, x[g], y[g], noise_var, tolerance, rng) for g in groups]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    return move


def _lead(
    fine: FineSteps,
    row: Float[np.ndarray, " D"],
    x: Float[np.ndarray, "R K D"],
    y: Float[np.ndarray, " R"],
    noise_var: float,
    tolerance: float,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "R K D"], Float[np.ndarray, "R K"]]:
    shape, n_particles = x.shape, x.shape[1]
    mu, c, V = _linearise(fine, x.mean(axis=1), row, noise_var)
    ahead = y - mu[-1] @ row
    x, log_w = x.reshape(-1, shape[2]), np.zeros(shape[0] * n_particles)
    for j in range(fine.n):
        mean, gain = fine.mean(x), fine.gain(x)
        along, variance = np.repeat(c[j + 1], n_particles, axis=0), np.repeat(V[j + 1], n_particles)
        u = fine.felt(gain, along)
        S = _dot(u, u) + variance
        r = np.repeat(ahead + _dot(c[j + 1], mu[j + 1]), n_particles) - _dot(along, mean)
        log_w += _log_density(r, S, tolerance)
        z = rng.standard_normal(x.shape)
        loose = np.sqrt(variance) * rng.standard_normal(len(x))
        z += np.divide(r - _dot(u, z) - loose, S, out=np.zeros_like(S), where=S > 0)[:, None] * u
        if j < fine.n - 1:
            log_w -= _log_density(r - _dot(u, z), variance, np.inf)
        x = fine.settle(mean + fine.kick(gain, z))
    return x.reshape(shape), log_w.reshape(shape[:2])


def _linearise(
    fine: FineSteps, x: Float[np.ndarray, "R D"], row: Float[np.ndarray, " D"], noise_var: float
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """mu_0..mu_n, c_1..c_n and V_1..V_n (entries 0 of the last two are not used)."""
    mu = [x]
    for _ in range(fine.n):
        mu.append(fine.settle(fine.mean(mu[-1])))
    c = [np.broadcast_to(row, x.shape)] * (fine.n + 1)
    V = [np.full(len(x), noise_var)] * (fine.n + 1)
    for j in range(fine.n - 1, 0, -1):
        u = fine.felt(fine.gain(mu[j]), c[j + 1])
        V[j] = V[j + 1] + _dot(u, u)
        c[j] = _pull_back(fine, mu[j], mu[j + 1], c[j + 1])
    return mu, c, V


def _pull_back(
    fine: FineSteps, x: Float[np.ndarray, "R D"], after: Float[np.ndarray, "R D"], c: Float[np.ndarray, "R D"]
) -> Float[np.ndarray, "R D"]:
    """Gradient of c'step(x) by difference quotients; ``after`` is step(x)."""
    n, dim = x.shape
    nudge = _NUDGE * np.maximum(1.0, np.abs(x))
    nudged = x + nudge.T[:, :, None] * np.eye(dim)[:, None, :]  # one coordinate at a time: [D, R, D]
    moved = fine.settle(fine.mean(nudged.reshape(dim * n, dim))).reshape(dim, n, dim)
    return np.einsum("ird,rd->ri", moved - after, c) / nudge


def _dot(a: Float[np.ndarray, "K D"], b: Float[np.ndarray, "K D"]) -> Float[np.ndarray, " K"]:
    return np.einsum("kd,kd->k", a, b)


def _log_density(
    error: Float[np.ndarray, " K"], variance: Float[np.ndarray, " K"], tolerance: float
) -> Float[np.ndarray, " K"]:
    """log N(error; 0, variance); without variance 0 where the error is within tolerance, -inf elsewhere."""
    certain = variance <= 0
    safe = np.where(certain, 1.0, variance)
    density = -0.5 * (np.log(2 * np.pi * safe) + error**2 / safe)
    return np.where(certain, np.where(np.abs(error) <= tolerance, 0.0, -np.inf), density)
