"""What the learned equation does when it is left alone: chaos, and likeness to the data.

Notation   real: stretches of one channel without gaps [N, T]      model: free-running paths of it [n, T]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy import signal

from lamperti import api
from lamperti._compile import compiled
from lamperti._typing import Array
from lamperti.data.series import Series
from lamperti.dynamics.sparse_gp import DriftDraws
from lamperti.evaluation import invariants
from lamperti.evaluation.lyapunov import Exponent, largest_exponent
from lamperti.forecasting import draw_drifts
from lamperti.results import FitResult, Simulation

_LONGEST = 2048
_LEAST = 20
_FAR, _TWICE = 0.15, 2.0  # sds, and times the distance of the halves of the data
WRONG_SPECTRUM = 0.3
_PROMINENCE = 0.25  # of the sd: what counts as a maximum


@dataclass(frozen=True, eq=False)
class Likeness:
    """Free-running paths of one channel beside the real ones; 1 is right for every ratio."""

    channel: str
    real: Float[np.ndarray, "N T"]
    model: Float[np.ndarray, "n T"]
    step: float
    frequency: Float[np.ndarray, " F"]
    """Cycles per unit of time."""
    real_spectrum: Float[np.ndarray, " F"]
    model_spectrum: Float[np.ndarray, " F"]
    real_maxima: Float[np.ndarray, "a 2"]
    """Each maximum and the next one: the return map."""
    model_maxima: Float[np.ndarray, "b 2"]
    sd_ratio: float
    roughness_ratio: float
    value_distance: float
    """Wasserstein distance of the values, in sds of the real ones."""
    spectrum_distance: float
    """Hellinger, from 0 to 1."""
    escape_share: float
    """Share of paths that leave a box of three times the range of the data."""
    halves_distance: float
    """Of the values of the first and the last half of the real ones, as ``value_distance``."""

    @property
    def other_values(self) -> bool:
        """Whether paths have values that are further from the data than its own halves are from each other, twice."""
        return bool(self.value_distance > max(_FAR, _TWICE * self.halves_distance))

    @property
    def other_spectrum(self) -> bool:
        return self.spectrum_distance > WRONG_SPECTRUM


def lyapunov(result: FitResult, *, n_paths: int = 32, n_steps: int = 1500, seed: int = 0) -> Exponent:
    """Largest Lyapunov exponent of the mean drift with its noise, per ``result.step_unit``."""
    unit = result.step
    rng = np.random.default_rng(seed)
    starts = result.states[rng.integers(len(result.states), size=n_paths)]
    central = draw_drifts(result.model, n=2 * n_paths, uncertain=False, key=jax.random.key(0))
    return largest_exponent(
        lambda x: np.asarray(_drift(central, x)) / unit,
        lambda x: np.sqrt(np.asarray(_noise(central, x)) / unit),
        starts,
        unit,
        n_steps,
        burn_in=n_steps // 5,
        seed=seed,
    )


@compiled
def _drift(draws: DriftDraws, x: Array) -> Array:
    return draws(x)


@compiled
def _noise(draws: DriftDraws, x: Array) -> Array:
    return draws.noise(x)


def likeness(
    result: FitResult, series: Sequence[Series], *, n_paths: int = 16, seed: int = 0
) -> tuple[tuple[Likeness, ...], Simulation]:
    """Every channel of free-running paths beside real stretches of the same length; and the paths themselves.

    A channel whose longest stretch without gaps has fewer than 20 samples is left out.
    """
    cut = [stretches([s.values[:, p] for s in series]) for p in range(len(result.names))]
    longest = max([real.shape[1] for real in cut], default=_LEAST)
    paths = api.simulate(result, n_steps=max(longest, _LEAST), n_paths=n_paths, seed=seed)
    found = [
        _compare(result.names[p], real, paths.samples[:, : real.shape[1], p], result.step)
        for p, real in enumerate(cut)
        if real.shape[1] >= _LEAST and real.std() > 0
    ]
    return tuple(found), paths


def stretches(channel: Sequence[Float[np.ndarray, " _T"]]) -> Float[np.ndarray, "N T"]:
    """Runs without missing values, cut to the one length that keeps most of them (the longer of two that tie)."""
    runs = []
    for values in channel:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isfinite(values).astype(int), [0]])))
        runs += [values[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    lengths = sorted({min(len(run), _LONGEST) for run in runs}, reverse=True)
    if not lengths:
        return np.zeros((0, 0))
    kept = [length * sum(len(run) // length for run in runs) for length in lengths]
    # Short runs keep every sample and say nothing of slow motion: only lengths near the longest compete.
    best = max((k, n) for k, n in zip(kept, lengths, strict=True) if n >= lengths[0] / 2)[1]
    return np.stack([run[i * best : (i + 1) * best] for run in runs for i in range(len(run) // best)])


def _compare(name: str, real: np.ndarray, model: np.ndarray, step: float) -> Likeness:
    n = real.shape[1]
    sigma = max(1.0, n / 100)
    finite = model[np.isfinite(model).all(axis=1)]
    escape = invariants.escape_share(model, real)
    frequency = np.fft.rfftfreq(n, step)
    blank = np.full(len(frequency), np.nan)
    prominence = _PROMINENCE * float(real.std())
    half = real.size // 2
    first, last = real.reshape(1, -1)[:, :half], real.reshape(1, -1)[:, -half:]
    return Likeness(
        channel=name,
        real=real,
        model=model,
        step=step,
        frequency=frequency,
        real_spectrum=invariants.power_spectrum(real, sigma),
        model_spectrum=invariants.power_spectrum(finite, sigma) if len(finite) else blank,
        real_maxima=_return_map(real, prominence),
        model_maxima=_return_map(finite, prominence),
        sd_ratio=float(finite.std() / real.std()) if len(finite) else np.inf,
        roughness_ratio=float(np.diff(finite, n=2).var() / np.diff(real, n=2).var()) if len(finite) else np.inf,
        value_distance=invariants.value_distance(model, real),
        spectrum_distance=invariants.spectrum_distance(model, real, sigma),
        escape_share=escape,
        halves_distance=invariants.value_distance(first, last),
    )


def _return_map(paths: Float[np.ndarray, "_N _T"], prominence: float) -> Float[np.ndarray, "k 2"]:
    pairs = [np.zeros((0, 2))]
    for path in paths:
        heights = path[signal.find_peaks(path, prominence=prominence)[0]]
        pairs.append(np.stack([heights[:-1], heights[1:]], axis=1))
    return np.concatenate(pairs)
