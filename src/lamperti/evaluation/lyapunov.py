"""Do neighbouring paths part? The largest Lyapunov exponent of a stochastic differential equation.

Notation   x: paths [K, D]   e: separation of a second copy, driven by the same noise [K, D]
Equations  lam = lim 1/t log |e(t)|/|e(0)|, summed over Euler steps, after each of which |e| is brought back to eps

A positive exponent is chaos, a negative one means that the noise, not the start, decides where a path goes. The
exponent per unit of time does not depend on the coordinates.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lamperti._errors import ConfigError
from lamperti.data.systems import System

Field = Callable[[Float[np.ndarray, "K D"]], np.ndarray]

# Relative to the spread of the starts: far above rounding, far below the size of any fold.
SEPARATION = 1e-7


@dataclass(frozen=True)
class Exponent:
    """Largest Lyapunov exponent per unit of time, its standard error over paths, and that of every path."""

    mean: float
    se: float
    paths: Float[np.ndarray, " K"]


def largest_exponent(
    drift: Field,
    gain: Field,
    starts: Float[np.ndarray, "K D"],
    step: float,
    n_steps: int,
    *,
    burn_in: int = 0,
    project: Callable[[np.ndarray], np.ndarray] | None = None,
    seed: int = 0,
) -> Exponent:
    """Largest exponent of dx = drift(x) dt + gain(x) dW, by Euler-Maruyama.

    Args:
        drift: points [K, D] to [K, D]. For a learned equation, ``lambda x: result.drift(x)[0]``.
        gain: points [K, D] to gains [K, D] or matrices [K, D, D]: the square root of the diffusion.
        starts: at least two states, on the attractor or followed by a burn-in.
        step: Euler step. A learned equation is defined at the sample interval of its data.
        n_steps: steps that count, after ``burn_in`` steps that do not and let the separation find its direction.
        project: applied to the states after every step, as in ``System``.

    A path that leaves the range of floats has exponent infinity.
    """
    if starts.ndim != 2 or len(starts) < 2 or n_steps < 1 or not step > 0:
        raise ConfigError(
            f"an exponent with its error needs starts [K, D] with K >= 2, n_steps >= 1 and step > 0; got "
            f"{starts.shape}, {n_steps} and {step}."
        )
    rng = np.random.default_rng(seed)
    eps = SEPARATION * max(float(starts.std(axis=0).max()), np.finfo(float).tiny)
    n_paths, dim = starts.shape
    direction = rng.standard_normal(starts.shape)
    both = np.concatenate([starts, starts + eps * direction / np.linalg.norm(direction, axis=1, keepdims=True)])
    gained = np.zeros(n_paths)
    with np.errstate(over="ignore", invalid="ignore"):  # a path that blows up is reported as such
        for k in range(burn_in + n_steps):
            noise = np.tile(rng.standard_normal((n_paths, dim)), (2, 1))
            spread = gain(both)
            kick = spread * noise if spread.ndim == 2 else np.einsum("kij,kj->ki", spread, noise)
            both = both + step * drift(both) + np.sqrt(step) * kick
            if project is not None:
                both = project(both)
            x, apart = both[:n_paths], both[n_paths:] - both[:n_paths]
            size = np.linalg.norm(apart, axis=1)
            if k >= burn_in:
                gained += np.log(np.maximum(size, np.finfo(float).tiny) / eps)
            both[n_paths:] = x + apart * (eps / np.maximum(size, np.finfo(float).tiny))[:, None]
    rates = np.where(np.isfinite(both[:n_paths]).all(axis=1), gained / (n_steps * step), np.inf)
    if not np.isfinite(rates).all():
        return Exponent(np.inf, np.inf, rates)
    return Exponent(float(rates.mean()), float(rates.std(ddof=1) / np.sqrt(n_paths)), rates)


def exponent_of_system(
    system: System, starts: Float[np.ndarray, "K D"], duration: float, *, step: float | None = None, seed: int = 0
) -> Exponent:
    """Largest exponent of a system whose equation is known, over ``duration`` after a tenth of it as burn-in."""
    fine = system.max_step if step is None else step
    if not np.isfinite(fine):
        raise ConfigError(f"{system.name} is stepped exactly and names no Euler step. Pass one, e.g. step=0.01.")
    n_steps = int(np.ceil(duration / fine))
    return largest_exponent(
        system.drift,
        system.diffusion,
        starts,
        fine,
        n_steps,
        burn_in=n_steps // 10,
        project=system.project,
        seed=seed,
    )
