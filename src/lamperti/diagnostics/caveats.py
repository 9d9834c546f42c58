"""What a reader should know before trusting a fit: each caveat is a finding beyond a threshold, in plain words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lamperti.data.starts import MOST_DIMENSIONS
from lamperti.diagnostics.held_out import ForecastCheck
from lamperti.diagnostics.long_run import WRONG_SPECTRUM
from lamperti.train.history import History

if TYPE_CHECKING:
    from lamperti.diagnostics.diagnose import Diagnostics
    from lamperti.diagnostics.long_run import Likeness

_FEW_SAMPLES = 300
_SURE = 0.001  # p-values below are evidence, given that the effect is also large enough to matter
_CORRELATED = 0.1
_WRONG_SPREAD = 0.15  # of residuals' sd from 1
_TAILS = 1.0  # excess kurtosis or squared skewness
_COVERAGE_OFF = 0.08
_NOT_UNIFORM = 0.01
_OFF_CENTRE = 0.1  # of the mean PIT from a half
_LISTED = 3  # channels that are named
_STILL_RISING = 0.02  # nats a transition over the last quarter
_UNKNOWN_DRIFT = 0.5
_ROUGH = 2.0
_WRONG_SD = 1.35
_CUT_SHORT = {"interrupted": "interrupted (Ctrl-C)", "terminated": "asked to end (SIGTERM) before it was done"}


@dataclass(frozen=True)
class Caveat:
    """A warning: a word for machines, a sentence for people."""

    code: str
    text: str


def caveats(found: "Diagnostics") -> tuple[Caveat, ...]:
    """Everything worth a warning, the most serious first."""
    groups = (_verdict(found), _law(found), _long_run(found), _forecasts(found), _residuals(found), _equation(found))
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


def _verdict(found: "Diagnostics") -> Iterator[Caveat]:
    verdict = found.verdict
    if verdict.runaways:
        yield Caveat(
            "forecasts diverge",
            f"Forecasts run away: {verdict.runaways:.0%} of the futures leave three times the range of the data.",
        )
    worse = [row for row in verdict.table if row.outcome == "worse"]
    if worse:
        methods = _listed(list(dict.fromkeys(row.against for row in worse)))
        ahead = ", ".join(f"{row.time:.3g}" if verdict.unit else str(row.steps) for row in worse)
        tip = f" {verdict.advice[0]}" if verdict.advice else ""
        unit = verdict.unit or "steps"
        yield Caveat(
            "worse than a simple method",
            f"A simple method ({methods}) forecasts better than the model {ahead} {unit} ahead.{tip}",
        )


def _law(found: "Diagnostics") -> Iterator[Caveat]:
    """Data without a law that stays: what the model says of the long run is then of the recording."""
    moving = [channel.sentence for channel in found.stationarity.channels if not channel.stationary]
    if moving:
        yield Caveat(
            "not stationary",
            f"{' '.join(moving[:_LISTED])} Fixed points, exponents and free-running paths then describe this recording "
            "and not the system.",
        )


def _long_run(found: "Diagnostics") -> Iterator[Caveat]:
    """Of many channels, the worst is named."""
    several = len(found.likeness) > 1
    escaping = [one for one in found.likeness if one.escape_share > 0]
    for one in sorted(escaping, key=lambda one: -one.escape_share)[:1]:
        where = f" in {one.channel}" if several else ""
        yield Caveat(
            "escapes",
            f"Left to itself, the model leaves the range of the data in {one.escape_share:.0%} of paths{where}: "
            "do not trust long simulations.",
        )
    staying = [one for one in found.likeness if one.escape_share == 0]
    for code, size, text in (
        ("amplitude", lambda one: _factor(one.sd_ratio) / _WRONG_SD, _amplitude),
        ("roughness", lambda one: _factor(one.roughness_ratio) / _ROUGH, _roughness),
        ("spectrum", lambda one: one.spectrum_distance / WRONG_SPECTRUM, _spectrum),
    ):
        wrong = sorted((one for one in staying if size(one) > 1), key=size)
        if wrong:
            others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            yield Caveat(code, f"{text(wrong[-1], f' in {wrong[-1].channel}{others}' if several else '')}.")


def _factor(ratio: float) -> float:
    return max(ratio, 1 / ratio) if ratio > 0 else np.inf


def _amplitude(one: "Likeness", where: str) -> str:
    return f"Free-running paths vary {one.sd_ratio:.2g} times as much as the data{where}"


def _roughness(one: "Likeness", where: str) -> str:
    kind = "rougher" if one.roughness_ratio > 1 else "smoother"
    return f"Free-running paths are {_factor(one.roughness_ratio):.2g} times {kind} than the data{where}"


def _spectrum(one: "Likeness", where: str) -> str:
    distance = f"Hellinger distance {one.spectrum_distance:.2f} of 1"
    return f"Free-running paths have another spectrum than the data{where} ({distance})"


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
    yield from _intervals(found, check)
    odd = [row for row in found.calibration if row.p_uniform * len(found.calibration) < _NOT_UNIFORM]
    if odd:
        row = min(odd, key=lambda row: row.p_uniform)
        side = "too low" if row.mean_pit > 0.5 else "too high"
        how = f"on average they are {side}" if abs(row.mean_pit - 0.5) > _OFF_CENTRE else "their spread is wrong"
        yield Caveat(
            "not calibrated",
            f"{row.steps} step{'s' * (row.steps > 1)} ahead, what happens does not fall evenly among the futures "
            f"(PIT, Kolmogorov-Smirnov p = {row.p_uniform:.1g}): {how}.",
        )
    first = check.crps[0] / check.climatology[0]
    poor = [name for name, ratio in zip(check.names, first, strict=True) if ratio >= 1]
    if poor:
        more = f" and {len(poor) - _LISTED} more channels" if len(poor) > _LISTED else ""
        yield Caveat(
            "no skill",
            f"One step ahead, forecasts of {_listed(poor[:_LISTED])}{more} are no better than the long-run "
            "distribution.",
        )


def _intervals(found: "Diagnostics", check: ForecastCheck) -> Iterator[Caveat]:
    covered = check.average_coverage(0.9)
    narrow = [row for row in found.calibration if row.coverage < 0.9 - max(_COVERAGE_OFF, row.coverage_margin)]
    # Origins overlap and horizons hang together: the error of the mean is that of the origins alone, at best.
    margin = max(_COVERAGE_OFF, 2 * np.sqrt(0.09 / check.origins))
    if covered < 0.9 - margin or len(narrow) == len(found.calibration) > 0:
        yield Caveat(
            "too narrow", f"Forecast intervals are too narrow: those of 90 % hold {covered:.0%} of the values."
        )
    elif narrow:
        steps, lowest = [str(row.steps) for row in narrow], min(row.coverage for row in narrow)
        unit = "step" if steps == ["1"] else "steps"
        yield Caveat(
            "too narrow",
            f"Forecast intervals are too narrow {_listed(steps)} {unit} ahead: those of 90 % hold as few as "
            f"{lowest:.0%} of the values there.",
        )
    if covered > 0.9 + _COVERAGE_OFF:
        yield Caveat("too wide", f"Forecast intervals are too wide: those of 90 % hold {covered:.0%} of values.")


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
    elif found.exponent_claim == "open":
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
    coarse = sum(p.too_coarse for p in found.fixed_points)
    if coarse:
        yield Caveat(
            "sampling too coarse",
            f"At {coarse} of {len(found.fixed_points)} fixed points the motion passes the point within one step: its "
            "rates cannot be told. Sample more often.",
        )
    if found.extrapolated > 0.1:
        yield Caveat(
            "extrapolated drift",
            f"At {found.extrapolated:.0%} of the states that the data went through, the drift is less certain than "
            "it is large.",
        )


def _data(found: "Diagnostics") -> Iterator[Caveat]:
    if found.learned_from < _FEW_SAMPLES:
        text = f"The training data has {found.learned_from} samples: with so few, expect the model to be vague."
        yield Caveat("few samples", text)
    dim, suggested = found.dimension, found.suggested_dimension
    if dim == MOST_DIMENSIONS and suggested == dim:
        yield Caveat(
            "dimension at the end",
            f"The latent dimension, {dim}, is at the end of what is tried without being asked: more coordinates may be "
            f"better. Compare with latent_dim={dim + 1}.",
        )
    elif suggested not in (None, dim) and max(suggested, dim) <= MOST_DIMENSIONS:  # more: a linear model
        yield Caveat(
            "dimension",
            f"The latent dimension is {dim}; predictions of this data suggest {suggested}. "
            f"Compare with latent_dim={suggested}.",
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
