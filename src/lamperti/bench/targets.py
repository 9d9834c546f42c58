"""What the project set out to reach, and whether a run reached it.

A target picks labelled numbers from the results (each a median over training seeds of the library with its defaults)
and a rule says what they must be. It is met or missed when all the numbers that it speaks of are there; a rule about
*each* number is missed as soon as one breaks it.
"""

from functools import partial

import numpy as np

from lamperti.bench.methods import BASELINES
from lamperti.bench.problems import CORE, HORIZONS, PROBLEMS
from lamperti.bench.recorded_targets import RECORDED
from lamperti.bench.rules import (
    METHOD,
    Picked,
    Target,
    Verdict,
    at_least,
    at_most,
    below_one_at_least,
    between,
    judge,
    mean_between,
    median_at_least,
    median_at_most,
    metric,
)
from lamperti.bench.summaries import Results

NEAR = (1, 5, 10, 20)
ATTRACTORS = ("rossler", "lorenz", "van_der_pol", "double_well", "fitzhugh_nagumo")
_HAS_SKILL = 0.95
"""An oracle whose CRPS is above this share of climatology's has nothing to forecast."""


def judge_all(results: Results) -> list[Verdict]:
    return [judge(target, results) for target in TARGETS]


def far_where_possible(results: Results) -> Picked:
    """Skill at the furthest horizon, where the oracle has any."""
    limits = results.values("oracle_over_climatology", METHOD, 0.1, (50,))
    found = results.values("skill_fraction", METHOD, 0.1, (50,))
    return {s: v.median for (s, h), v in found.items() if s in CORE and limits[s, h].median < _HAS_SKILL}


def coverage_by_system(results: Results) -> Picked:
    """Coverage of 90 % intervals, averaged over horizons."""
    found: dict[str, list[float]] = {}
    for (system, _), one in results.values("coverage_90", METHOD, 0.1, HORIZONS).items():
        if system in CORE:
            found.setdefault(system, []).append(one.median)
    return {system: float(np.mean(values)) for system, values in found.items()}


def over_best_baseline(results: Results) -> Picked:
    """Mean CRPS over horizons, over that of the best baseline of each system."""
    ours = results.mean_crps(METHOD, 0.1, HORIZONS)
    theirs = [results.mean_crps(name, 0.1, HORIZONS) for name in BASELINES]
    found = {}
    for system, one in ours.items():
        others = [t[system].median for t in theirs if system in t]
        if system in CORE and others:
            found[system] = one.median / min(others)
    return found


_core = partial(metric, systems=CORE)
_SKILL = "skill fraction, h = 1, 5, 10, 20"
_BESIDE_ORACLE = "CRPS over the oracle's, h = 1, 5, 10, 20"
_INVARIANTS = tuple(f"floor_ratio {name}" for name in ("spectrum", "peak heights", "residence times"))
_POPULATIONS = ("lotka_volterra", "lotka_volterra_1khz")
_HIDDEN = sum(PROBLEMS[name].latent_dim - 1 for name in CORE)

TARGETS = (
    Target(f"{_SKILL}, 10 % noise, each", "≥ 0.93", _core("skill_fraction", horizons=NEAR), at_least(0.93), 32),
    Target(
        f"{_SKILL}, 10 % noise", "median ≥ 0.97", _core("skill_fraction", horizons=NEAR), median_at_least(0.97), 32
    ),
    # skill is near 1 for all where the oracle is nearly perfect
    Target(
        f"{_BESIDE_ORACLE}, 10 % noise, each", "≤ 1.15", _core("crps_over_oracle", horizons=NEAR), at_most(1.15), 32
    ),
    Target(
        f"{_BESIDE_ORACLE}, 10 % noise", "median ≤ 1.05", _core("crps_over_oracle", horizons=NEAR),
        median_at_most(1.05), 32,
    ),
    # systems where the oracle itself has no skill are not counted, so fewer than eight are needed
    Target("the same, h = 50 where the oracle has skill", "median ≥ 0.90", far_where_possible, median_at_least(0.9), 6),
    Target(
        f"{_SKILL}, no noise", "median ≥ 0.93", _core("skill_fraction", noise=0.0, horizons=NEAR),
        median_at_least(0.93), 32,
    ),
    Target(
        f"{_SKILL}, 30 % noise", "median ≥ 0.93", _core("skill_fraction", noise=0.3, horizons=NEAR),
        median_at_least(0.93), 32,
    ),
    Target("90 % interval coverage, over systems", "0.87–0.93", coverage_by_system, mean_between(0.87, 0.93), 8),
    Target("90 % interval coverage, each system", "0.80–0.98", coverage_by_system, between(0.80, 0.98), 8),
    Target(
        "D_H, W1 of peaks and of residence times over the floor, each", "≤ 2",
        metric(*_INVARIANTS, systems=ATTRACTORS), at_most(2.0), 15,
    ),
    Target(
        "D_H, W1 of peaks and of residence times over the floor", "median ≤ 1.3",
        metric(*_INVARIANTS, systems=ATTRACTORS), median_at_most(1.3), 15,
    ),
    Target("share of free-running paths that escape", "0", metric("escape_share", systems=ATTRACTORS), at_most(0.0), 5),
    Target(
        "Lorenz: mean and 90 % quantile of lobe residence over the truth", "within 10 %",
        metric("half_cycle_ratio", "residence_90_ratio", systems=("lorenz",)), between(0.9, 1.1), 2,
    ),
    Target(
        "Lotka-Volterra: sd of peak heights in 0.3 s over the truth", "within 20 %",
        metric("peak_sd_ratio", systems=_POPULATIONS), between(0.8, 1.2), 1,
    ),
    # as the paper prints it, without noise
    Target(
        "excited oscillator: relative RMSE of 300 samples from 200", "≤ 5 %",
        metric("relative_rmse", systems=("excited_oscillator",), noise=0.0), at_most(0.05), 1,
    ),
    Target(
        "excited oscillator: learned diffusion over the increments' variance", "≤ 1 %",
        metric("diffusion_share", systems=("excited_oscillator",), noise=0.0), at_most(0.01), 1,
    ),
    Target(
        "OU: eigenvalues of the drift, relative error", "within 10 %",
        metric("eigenvalue_error", systems=("ornstein_uhlenbeck",)), at_most(0.1), 1,
    ),
    Target(
        "OU: diffusion, as variance of one step over the truth", "within 10 %",
        metric("one_step_variance_ratio", systems=("ornstein_uhlenbeck",)), between(0.9, 1.1), 1,
    ),
    Target(
        "kernel R² of hidden coordinates over the oracle's", "≥ 0.95", _core("hidden_r2_over_oracle "), at_least(0.95),
        _HIDDEN,
    ),
    Target(
        "mean CRPS over horizons 1–50 over the best baseline's: better", "on ≥ 6 of 8 systems", over_best_baseline,
        below_one_at_least(6), 8,
    ),
    Target("the same, each", "≤ 1.05", over_best_baseline, at_most(1.05), 8),
    Target("mocap-35: test MSE", "≤ 8", metric("test_mse", systems=("mocap",), noise=None), at_most(8.0), 1),
    *RECORDED,
)  # fmt: skip
