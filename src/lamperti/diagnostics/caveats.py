"""What a reader should know before trusting a fit: each caveat is a finding beyond a threshold, in plain words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lamperti.train.history import History

if TYPE_CHECKING:
    from lamperti.diagnostics.diagnose import Diagnostics

_FEW_SAMPLES = 300
_SURE = 0.001  # p-values below are evidence, given that the effect is also large enough to matter
_CORRELATED = 0.1
_WRONG_SPREAD = 0.15  # of residuals' sd from 1
_TAILS = 1.0  # excess kurtosis or squared skewness
_COVERAGE_OFF = 0.08
_STILL_RISING = 0.02  # nats a transition over the last quarter
_UNKNOWN_DRIFT = 0.5
_ROUGH = 2.0
_WRONG_SD = 1.35
_WRONG_SPECTRUM = 0.3
_CUT_SHORT = {"interrupted": "interrupted (Ctrl-C)", "terminated": "asked to end (SIGTERM) before it was done"}


@dataclass(frozen=True)
class Caveat:
    """A warning: a word for machines, a sentence for people."""

    code: str
    text: str


def caveats(found: "Diagnostics") -> tuple[Caveat, ...]:
    """Everything worth a warning, the most serious first."""
    groups = (_long_run(found), _forecasts(found), _residuals(found), _equation(found))
    kept = [caveat for group in groups for caveat in group]
    return (*kept, *of_training(found.history, calibrates=found.calibrates), *_data(found))


def of_training(history: History, *, calibrates: bool = True) -> Iterator[Caveat]:
    """What the course of training itself raises. ``calibrates``: whether its end would have calibrated the noises."""
    if history.status in _CUT_SHORT:
        noises = " Noises and drift were not calibrated: spreads may be off." if calibrates else ""
        yield Caveat(
            history.status, f"Training was {_CUT_SHORT[history.status]}; the best state until then was kept.{noises}"
        )
    scores = np.array([r.validation for r in history.records if r.validation is not None], dtype=float)
    quarter = max(len(scores) // 4, 1)
    if history.status in ("max_minutes", "max_iterations") and len(scores) >= 2 * quarter:
        gain = np.nanmax(scores[-quarter:]) - np.nanmax(scores[:-quarter])
        if gain > _STILL_RISING:
            limit = "the clock" if history.status == "max_minutes" else "the number of iterations"
            yield Caveat(
                "still rising",
                f"Training was stopped by {limit} while the validation score was still rising (by {gain:.2g} nats a "
                "transition over the last quarter). Train longer.",
            )
    refused = history.counts().get("refused step", 0)
    if history.rollbacks:
        yield Caveat(
            "rollbacks", f"Training became unstable and went back to an earlier state {history.rollbacks} times."
        )
    elif refused:
        yield Caveat("refused steps", f"{refused} training steps were refused because they were not finite.")


def _long_run(found: "Diagnostics") -> Iterator[Caveat]:
    for one in found.likeness:
        where = f" in {one.channel}" if len(found.likeness) > 1 else ""
        if one.escape_share > 0:
            yield Caveat(
                "escapes",
                f"Left to itself, the model leaves the range of the data in {one.escape_share:.0%} of paths{where}: "
                "do not trust long simulations.",
            )
            continue
        if not 1 / _WRONG_SD < one.sd_ratio < _WRONG_SD:
            yield Caveat("amplitude", f"Free-running paths vary {one.sd_ratio:.2g} times as much as the data{where}.")
        if not 1 / _ROUGH < one.roughness_ratio < _ROUGH:
            kind = "rougher" if one.roughness_ratio > 1 else "smoother"
            ratio = max(one.roughness_ratio, 1 / one.roughness_ratio)
            yield Caveat("roughness", f"Free-running paths are {ratio:.2g} times {kind} than the data{where}.")
        if one.spectrum_distance > _WRONG_SPECTRUM:
            yield Caveat(
                "spectrum",
                f"Free-running paths have another spectrum than the data{where} (Hellinger distance "
                f"{one.spectrum_distance:.2f} of 1).",
            )


def _forecasts(found: "Diagnostics") -> Iterator[Caveat]:
    check = found.forecasts
    if check is None:
        yield Caveat(
            "no held-out data",
            "Too little data was held out to check forecasts on: how far they can be trusted is open.",
        )
        return
    for remark in check.remarks:
        yield Caveat("forecast warning", f"Forecasts warned: {remark}")
    if not check.furthest:
        yield Caveat("too few values", check.why_not())
    covered = check.average_coverage(0.9)
    # Origins overlap and horizons hang together: the error of the mean is that of the origins alone, at best.
    margin = max(_COVERAGE_OFF, 2 * np.sqrt(0.09 / check.origins))
    if covered < 0.9 - margin:
        yield Caveat(
            "too narrow", f"Forecast intervals are too narrow: those of 90 % hold {covered:.0%} of the values."
        )
    if covered > 0.9 + _COVERAGE_OFF:
        yield Caveat("too wide", f"Forecast intervals are too wide: those of 90 % hold {covered:.0%} of values.")
    first = check.crps[0] / check.climatology[0]
    for name, ratio in zip(check.names, first, strict=True):
        if ratio >= 1:
            yield Caveat(
                "no skill", f"One step ahead, forecasts of {name} are no better than its long-run distribution."
            )


def _residuals(found: "Diagnostics") -> Iterator[Caveat]:
    if found.residuals is None:
        return
    for kind, group in (
        ("increments of", found.residuals.increments),
        ("one-step errors of", found.residuals.one_step),
    ):
        loose = [w.name for w in group if w.p_white < _SURE and np.abs(w.autocorrelation).max() > _CORRELATED]
        if loose:
            yield Caveat(
                "not white",
                f"The {kind} {_listed(loose)} are correlated over time: something that moves the system is missing "
                "from the model (a dimension, an input), or training has not ended.",
            )
        tailed = [w.name for w in group if w.p_normal < _SURE and _tails(w.skewness, w.excess_kurtosis) > _TAILS]
        if tailed:
            yield Caveat(
                "not normal", f"The {kind} {_listed(tailed)} are not normal: expect more surprises than intervals say."
            )
    off = [f"{w.name} ({w.sd:.2f})" for w in found.residuals.one_step if abs(np.log(w.sd)) > _WRONG_SPREAD]
    if off:
        yield Caveat(
            "spread of errors",
            f"One-step errors are not of the size that the model says (sd over the sd expected): {_listed(off)}.",
        )


def _tails(skewness: float, excess: float) -> float:
    return max(skewness**2, abs(excess))


def _equation(found: "Diagnostics") -> Iterator[Caveat]:
    e = found.lyapunov
    if not np.isfinite(e.mean):
        yield Caveat("no exponent", "No Lyapunov exponent can be given: paths of the mean drift run away.")
    elif abs(e.mean) < 2 * e.se:
        yield Caveat(
            "sign of the exponent",
            f"Whether the system is chaotic is open: the largest Lyapunov exponent is {e.mean:.2g} ± {e.se:.1g}.",
        )
    unknown = sum(p.uncertainty > _UNKNOWN_DRIFT for p in found.fixed_points)
    if unknown:
        yield Caveat(
            "unsure fixed points",
            f"{unknown} of {len(found.fixed_points)} fixed points lie where the drift is mostly extrapolated.",
        )
    if found.extrapolated > 0.1:
        yield Caveat(
            "extrapolated drift",
            f"At {found.extrapolated:.0%} of the states that the data went through, the drift is less certain than "
            "it is large.",
        )


def _data(found: "Diagnostics") -> Iterator[Caveat]:
    if found.samples < _FEW_SAMPLES:
        yield Caveat("few samples", f"The data has {found.samples} samples: with so few, expect the model to be vague.")
    dim, suggested = found.dimension, found.suggested_dimension
    if suggested is not None:
        verdict = (
            "is what the rule of thumb gives" if dim == suggested else f"differs from the rule of thumb ({suggested})"
        )
        yield Caveat("dimension", f"The latent dimension, {dim}, {verdict}; other dimensions were not compared here.")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
