"""A verdict in words: what is wrong first, then where the model helps."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from lamperti.data.durations import in_words
from lamperti.diagnostics.simple_methods import AR, CLIMATOLOGY, NEIGHBOURS, PERSISTENCE, SEASON
from lamperti.results import FitResult

SPOKEN = {
    CLIMATOLOGY: "the long-run distribution of the data (climatology)",
    PERSISTENCE: "the last value (persistence)",
    SEASON: "the last season (seasonal naive)",
    AR: "linear autoregression",
    NEIGHBOURS: "nearest neighbours",
}
_FEW_ROWS = 1000


class Findings(NamedTuple):
    """What a verdict is made of; the outcomes are (steps ahead, outcome, decided by), nearest first."""

    unseen: int = 0
    origins: int = 0
    runaways: float = 0.0
    escapes: float = 0.0
    step: float = 1.0
    unit: str = ""
    """Of time, in which ``step`` is given; steps are counted where it is not known."""
    outcomes: tuple[tuple[int, str, str], ...] = ()
    unlike: tuple[str, ...] = ()
    """In what free-running paths differ from the data."""


def sentence_of(found: Findings) -> str:
    """One sentence, what is most serious first."""
    parts = list(_dangers(found))
    if found.outcomes:
        order = ("worse", "better", "as good")
        runs = _runs(found.outcomes)
        said = [_said(found, outcome, runs) for outcome in order if any(run[0][1] == outcome for run in runs)]
        parts += said
        ending = ", in forecasts of data that training has not seen"
    else:
        parts.append(_too_little(found))
        ending = ""
    text = "; ".join(parts)
    if found.unlike:
        ending += f"; but left to itself, the model has other {_listed(found.unlike)} than the data"
    return f"{text[0].upper()}{text[1:]}{ending}."


def advice_on(found: Findings, season: int | None, result: FitResult) -> tuple[str, ...]:
    """What to try, where something is better or wrong; each once."""
    return tuple(dict.fromkeys(_advice(found, season, result)))


def _dangers(found: Findings) -> Iterator[str]:
    if found.runaways:
        yield f"forecasts run away: {found.runaways:.0%} of the futures leave three times the range of the data"
    if found.escapes:
        yield f"left to itself, the model leaves three times the range of the data in {found.escapes:.0%} of paths"


def _too_little(found: Findings) -> str:
    if not found.origins:
        return "unknown: too little data was held out to compare forecasts with simple methods"
    return (
        f"unknown: too little data was held out to compare forecasts with simple methods ({found.unseen} samples, of "
        "which no four stretches are apart)"
    )


def _runs(outcomes: Sequence[tuple[int, str, str]]) -> list[list[tuple[int, str, str]]]:
    """Neighbouring horizons of the same outcome."""
    return [list(group) for _, group in groupby(outcomes, key=lambda one: one[1])]


def _said(found: Findings, outcome: str, runs: list[list[tuple[int, str, str]]]) -> str:
    mine = [run for run in runs if run[0][1] == outcome]
    where = _listed([_range(found, run) for run in mine])
    rivals = _listed([SPOKEN[name] for name in dict.fromkeys(one[2] for run in mine for one in run)])
    if outcome == "better":
        return f"better than every simple method {where}"
    return f"{outcome} {'than' if outcome == 'worse' else 'as'} {rivals} {where}"


def _range(found: Findings, run: list[tuple[int, str, str]]) -> str:
    first, last = run[0][0], run[-1][0]
    end = _ahead(found, last)
    if first == last:
        return f"{end} ahead"
    if first == found.outcomes[0][0]:
        return f"up to {end} ahead"
    begin = _ahead(found, first) if found.unit else str(first)
    unit = end.partition(" ")[2]
    return f"from {begin.removesuffix(f' {unit}') if unit else begin} to {end} ahead"


def _ahead(found: Findings, steps: int) -> str:
    return in_words(steps * found.step, found.unit, 3) if found.unit else f"{steps} step{'s' * (steps > 1)}"


def _advice(found: Findings, season: int | None, result: FitResult) -> Iterator[str]:
    if found.runaways or found.escapes:
        yield "Take a trend out of the data before training (detrend), or train longer."
    lost = {against for _, outcome, against in found.outcomes if outcome == "worse"}
    window = result.config.model.window or 1
    if lost and result.history.status in ("max_minutes", "max_iterations"):
        yield "Train longer: training was stopped before it came to rest."
    if SEASON in lost and season:
        longer = "" if window >= season else f" with a window of a season (window={season}; it is {window} now),"
        yield f"The data repeats every {season} samples:{longer} or with the season taken out, the model may do better."
    if PERSISTENCE in lost:
        yield "Steps are short beside the motion: keep every second or fifth sample (decimate), or use a longer window."
    if AR in lost:
        yield "A linear model does it: use autoregression there, or try latent_dim one larger or one smaller."
    if NEIGHBOURS in lost:
        yield f"Try latent_dim={result.model.latent_dim + 1}, a longer window, or more inducing inputs (n_inducing)."
    if CLIMATOLOGY in lost:
        yield "Do not forecast that far ahead with this model: the long-run distribution of the data is better there."
    if lost and result.trained_on is not None and result.trained_on.n_rows < _FEW_ROWS:
        yield f"More data helps most: training had {result.trained_on.n_rows} samples."


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
