"""One way to score any forecaster and any free run, so that a model and a baseline stand in the same table.

Notation   R forecast origins, one a test series, after a context of T samples; H = the furthest horizon
           forecaster(context, seed) -> samples [S, H, 1]
Equations  skill = (CRPS of climatology - CRPS) / (CRPS of climatology - CRPS of the oracle): docs of ``scores``
           Where the oracle is nearly perfect skill is near 1 for all: CRPS over the oracle's still tells them apart
           log scores are those of a kernel mixture over the members (``kernel_log_score``); Kalman's is exact

The target is the noise-free observable unless it is asked for what would be observed. A method that cannot tell noise
from signal is at a disadvantage with the first; with the second, all must forecast the noise, too.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from lamperti._errors import ConfigError
from lamperti.data.series import Series
from lamperti.data.systems import Simulated
from lamperti.evaluation import invariants, scores
from lamperti.evaluation._paths import Paths
from lamperti.evaluation.climatology import Climatology
from lamperti.evaluation.kalman import kalman_forecast
from lamperti.evaluation.oracles import DEFINITION, linear_law, particle_forecast
from lamperti.evaluation.state_space import outside_share

Forecaster = Callable[[Series, int], Float[np.ndarray, "S H 1"]]
Target = Literal["clean", "observed"]

# Share of the real sd that a signal must pass the centre by to have changed sides.
MARGIN = 0.1
# An oracle whose CRPS is under this share of climatology's knows the future but for rounding: no scale to measure by.
_KNOWN = 1e-6


@dataclass(frozen=True, eq=False)
class ForecastTask:
    """A simulated test set with one forecast origin a series, and the climatology of the training data."""

    test: Simulated
    context: int
    horizons: tuple[int, ...]
    climatology: Climatology
    target: Target = "clean"

    def __post_init__(self):
        length = min(map(len, self.test.series))
        if not self.horizons or min(self.horizons) < 1 or self.context < 1 or self.context + self.furthest > length:
            raise ConfigError(
                f"a context of {self.context} samples and horizons {self.horizons} do not fit the test series of "
                f"{length} samples. Horizons count samples from 1 on."
            )
        if self.test.clean.shape[-1] != 1:
            raise ConfigError(f"forecasts are scored on one observable, got {self.test.clean.shape[-1]}.")

    @classmethod
    def against(
        cls, train: Simulated, test: Simulated, context: int, horizons: Sequence[int], target: Target = "clean"
    ) -> "ForecastTask":
        """With the climatology of training data, noise-free or not as the target is."""
        values = Climatology.of_values(train.clean) if target == "clean" else Climatology.of_series(train.series)
        return cls(test, context, tuple(horizons), values, target)

    @property
    def furthest(self) -> int:
        return max(self.horizons)

    @property
    def contexts(self) -> list[Series]:
        return [s[: self.context] for s in self.test.series]

    @cached_property
    def truth(self) -> Float[np.ndarray, "R H 1"]:
        values = self.test.clean if self.target == "clean" else np.stack([s.values for s in self.test.series])
        return values[:, self.context : self.context + self.furthest]

    @cached_property
    def climatology_crps(self) -> Float[np.ndarray, "R H 1"]:
        return self.climatology.crps(self.truth)


@dataclass(frozen=True, eq=False)
class OracleScores:
    """What can be reached, origin by origin."""

    crps: Float[np.ndarray, "R H 1"]
    log_score: Float[np.ndarray, "R H 1"]


@dataclass(frozen=True)
class HorizonScores:
    """One row of the table of a forecaster. What needs an oracle is NaN without one. Standard errors (``_se``) take the
    origins (or blocks of them) as independent."""

    horizon: int
    n_origins: int
    crps: float
    crps_over_climatology: float
    coverage_50: float
    coverage_90: float
    log_score: float
    """In nats; lower is better."""
    pit_p_value: float
    crps_se: float = np.nan
    crps_over_climatology_se: float = np.nan
    coverage_50_se: float = np.nan
    coverage_90_se: float = np.nan
    log_score_se: float = np.nan
    skill_fraction: float = np.nan
    skill_fraction_se: float = np.nan
    crps_over_oracle: float = np.nan
    """NaN, too, where the oracle knows the future exactly."""
    crps_over_oracle_se: float = np.nan
    oracle_over_climatology: float = np.nan
    log_score_above_oracle: float = np.nan


@dataclass(frozen=True)
class FreeRunScores:
    """Long-run behaviour beside the real system's; 1 is right for every ratio."""

    escape_share: float
    outside_share: float
    """Share of values outside the range of the real ones: the mass that the state-space cells do not hold."""
    sd_ratio: float
    half_cycle_ratio: float
    half_cycle_ratio_of_two_real_sets: float
    residence_90_ratio: float
    """Ratio of the 90 % quantiles of residence times."""
    switches_per_path: float
    switches_per_path_real: float
    roughness_ratio: float
    ratio_to_floor: Mapping[str, float]


def score_forecasts(
    task: ForecastTask, forecaster: Forecaster, oracle: OracleScores | None = None
) -> tuple[HorizonScores, ...]:
    """Let a forecaster loose on every origin; one row a horizon of the task.

    The forecaster gets a context and a seed of its own and gives at least 39 members over at least the furthest
    horizon; a member that blew up makes the score infinite, and is not left out.
    """
    ensembles = [np.asarray(forecaster(c, i))[:, : task.furthest] for i, c in enumerate(task.contexts)]
    expected = (task.furthest, 1)
    for found in ensembles:
        if found.ndim != 3 or found.shape[1:] != expected:
            raise ConfigError(f"a forecaster must give samples [S, {task.furthest}, 1], got {found.shape}.")
    return score_ensembles(np.stack(ensembles), task.truth, task.climatology_crps, task.horizons, oracle)


def score_ensembles(
    samples: Float[np.ndarray, "R S H 1"],
    truth: Float[np.ndarray, "R H 1"],
    climatology_crps: Float[np.ndarray, "R H 1"],
    horizons: Sequence[int],
    oracle: OracleScores | None = None,
    *,
    block: int = 1,
) -> tuple[HorizonScores, ...]:
    """One row a horizon for forecasts that were made already.

    ``block``: origins in order of time of which so many in a row overlap; standard errors are then those of the means
    of blocks. PIT values are tested as if they were independent all the same.
    """
    at = np.array(horizons) - 1
    samples, truth, climatology = samples[:, :, at], truth[:, at], climatology_crps[:, at]
    crps, logs = scores.crps(samples, truth), scores.kernel_log_score(samples, truth)
    means = {
        "crps": scores.horizon_mean(crps, block),
        "coverage_50": scores.horizon_mean(scores.covered(samples, truth, 0.5), block),
        "coverage_90": scores.horizon_mean(scores.covered(samples, truth, 0.9), block),
        "log_score": scores.horizon_mean(logs, block),
    }
    columns = {name: one.mean for name, one in means.items()} | {f"{name}_se": one.se for name, one in means.items()}
    columns["pit_p_value"] = scores.pit_uniformity(scores.pit(samples, truth)).p_value
    beside_climatology = scores.ratio(crps, climatology, block)
    columns["crps_over_climatology"] = beside_climatology.mean
    columns["crps_over_climatology_se"] = beside_climatology.se
    if oracle is not None:
        best = oracle.crps[:, at]
        skill, beside_oracle = scores.skill(climatology, crps, best, block), scores.ratio(crps, best, block)
        columns["skill_fraction"], columns["skill_fraction_se"] = skill.mean, skill.se
        columns["oracle_over_climatology"] = best.mean(axis=0) / climatology.mean(axis=0)
        errs = columns["oracle_over_climatology"] > _KNOWN
        columns["crps_over_oracle"] = np.where(errs, beside_oracle.mean, np.nan)
        columns["crps_over_oracle_se"] = np.where(errs, beside_oracle.se, np.nan)
        columns["log_score_above_oracle"] = logs.mean(axis=0) - oracle.log_score[:, at].mean(axis=0)
    return tuple(
        HorizonScores(h, len(truth), **{name: float(column[i, 0]) for name, column in columns.items()})
        for i, h in enumerate(horizons)
    )


def oracle_scores(
    task: ForecastTask, folder: Path | None = None, *, n_particles: int = 2000, seed: int = 3
) -> OracleScores:
    """Scores of someone who knows the equations: exact Kalman where they are linear, a particle filter otherwise.

    They depend on the test set alone; with a ``folder`` they are computed once and kept there.
    """
    if folder is None:
        return _oracle_scores(task, n_particles, seed)
    path = folder / f"oracle-{task.test.system.name}-{_digest(task, n_particles, seed)}.npz"
    if not path.exists():
        found = _oracle_scores(task, n_particles, seed)
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, crps=found.crps.astype(np.float32), log_score=found.log_score.astype(np.float32))
        partial.replace(path)  # whole or not at all, should two processes want it at once
    with np.load(path, allow_pickle=False) as kept:
        return OracleScores(kept["crps"].astype(float), kept["log_score"].astype(float))


def score_free_run(paths: Paths, real: Sequence[Paths]) -> FreeRunScores:
    """Free-running paths [N, T] beside at least two independent sets of real ones, as many and as long.

    The first real set is what all are compared with; the others give the floors.
    """
    if len(real) < 2:
        raise ConfigError(f"a floor needs two independent real sets, got {len(real)}. Simulate another.")
    a, others = real[0], list(real[1:])
    centre, margin = float(a.mean()), MARGIN * float(a.std())
    ours, *theirs = (invariants.residence(p, centre, margin) for p in (paths, *real))
    pooled = invariants.residence(np.concatenate(real), centre, margin)
    switches = [float(invariants.lobe_switches(p, centre, margin).mean()) for p in (paths, a)]
    return FreeRunScores(
        escape_share=invariants.escape_share(paths, a),
        outside_share=outside_share(paths, a),
        sd_ratio=float(paths.std() / np.mean([r.std() for r in real])),
        half_cycle_ratio=ours.mean / pooled.mean,
        half_cycle_ratio_of_two_real_sets=theirs[0].mean / theirs[1].mean,
        residence_90_ratio=ours.quantile_90 / pooled.quantile_90,
        switches_per_path=switches[0],
        switches_per_path_real=switches[1],
        roughness_ratio=float(np.diff(paths, n=2, axis=1).var() / np.diff(a, n=2, axis=1).var()),
        ratio_to_floor={
            name: float(invariants.ratio_to_floor(distance, paths, a, others))
            for name, distance in invariants.DISTANCES.items()
        },
    )


def _oracle_scores(task: ForecastTask, n_particles: int, seed: int) -> OracleScores:
    system, dt = task.test.system, task.test.series[0].dt
    contexts = np.stack([c.values[:, 0] for c in task.contexts])
    noise_sd = float(np.ravel(task.test.noise_sd)[0])
    added = noise_sd if task.target == "observed" else 0.0
    if system.matrix is None:
        samples = particle_forecast(system, contexts, dt, noise_sd, task.furthest, n_particles=n_particles, seed=seed)
        samples = samples + added * np.random.default_rng([seed, 1]).standard_normal(samples.shape)
        return OracleScores(scores.crps(samples, task.truth), scores.kernel_log_score(samples, task.truth))
    law = linear_law(system, dt)
    exact = kalman_forecast(*law[:3], noise_sd**2, contexts, task.furthest, initial_cov=law.initial_cov)
    sd = np.hypot(exact.sd, added)
    return OracleScores(
        scores.gaussian_crps(exact.mean, sd, task.truth), scores.gaussian_log_score(exact.mean, sd, task.truth)
    )


def _digest(task: ForecastTask, n_particles: int, seed: int) -> str:
    """A name for everything that the oracle's scores depend on."""
    system = task.test.system
    words = (
        f"{DEFINITION} {sorted(system.parameters.items())} {task.test.series[0].dt} {n_particles} {seed} {task.target}"
    )
    hashed = hashlib.sha256(words.encode())
    for array in (task.truth, *(c.values for c in task.contexts), np.ravel(task.test.noise_sd)):
        hashed.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return hashed.hexdigest()[:12]
