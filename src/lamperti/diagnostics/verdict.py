"""Is the model worth using? Its forecasts of unseen data beside those of simple methods, with their errors.

Notation   CRPS in sds of each channel, averaged over channels; d: paired difference, model less simple method
A method is better at a horizon where d is further from zero than two standard errors over blocks of origins
(`evaluation.paired`), and by more than 1 %; where neither of the horizons beside it says so, three standard errors,
because several are looked at. The model is worse where a simple method is better than it; better where it is better
than the best of them; as good elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from lamperti._shown import html_table, html_text
from lamperti.data.series import Series
from lamperti.diagnostics.long_run import Likeness, likeness
from lamperti.diagnostics.origins import UnseenForecasts, forecast_unseen
from lamperti.diagnostics.simple_methods import SimpleScores, simple_scores
from lamperti.diagnostics.verdict_words import Findings, advice_on, sentence_of
from lamperti.evaluation import invariants
from lamperti.evaluation.paired import Mean, block_mean, blocks_of
from lamperti.results import FitResult

Kind = Literal["better", "as good", "worse", "mixed", "unknown"]
Outcome = Literal["better", "as good", "worse"]
MODEL = "model"

_HORIZONS = (1, 2, 3, 5, 10, 20, 50, 100)
_LEAST_BLOCKS = 4
_LEAST_ORIGINS = 6
_ERRORS, _ERRORS_ALONE = 2.0, 3.0
_MATTERS = 0.01  # of a score: a smaller difference is none, however sure
_BROKEN = 1e6  # sds: the score of a forecast that left the range of numbers
_FEW_RUNAWAYS = 0.01  # share of the futures
_MOST_CHANNELS = 8
PATHS = 8


@dataclass(frozen=True)
class Score:
    """Mean CRPS over origins, in sds of the data, and its standard error."""

    mean: float
    se: float


@dataclass(frozen=True)
class HorizonVerdict:
    """One row of the table."""

    steps: int
    time: float
    origins: int
    outcome: Outcome
    against: str
    """The simple method that it was decided by."""
    scores: Mapping[str, Score]
    """By method; "model" is the fitted one."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """What to think of a fitted model, the most important first."""

    sentence: str
    """One plain sentence."""
    kind: Kind
    table: tuple[HorizonVerdict, ...] = ()
    advice: tuple[str, ...] = ()
    """What to try where a simple method is better."""
    notes: tuple[str, ...] = ()
    """What was left out, and what the scores are of."""
    origins: int = 0
    unit: str = ""
    """Of the times in the table; empty where they count steps."""
    runaways: float = 0.0
    """Share of the forecast futures that leave three times the range of the data."""
    escapes: float = 0.0
    """Share of the free-running paths that do."""

    def __repr__(self) -> str:
        return f"Verdict({self.kind}: {self.sentence})"

    def _repr_html_(self) -> str:
        header, *rows = self.short_rows() or [()]
        notes = html_text("\n".join((*self.notes, *self.advice))) if self.notes or self.advice else ""
        return html_table(self.sentence, rows, header) + notes

    @property
    def methods(self) -> tuple[str, ...]:
        """Columns of the table."""
        return tuple(self.table[0].scores) if self.table else ()

    def rows(self) -> list[tuple[str, ...]]:
        """The table as text, with its header: mean ± standard error of every method."""
        if not self.table:
            return []
        return [
            (self._ahead, *self.methods, "verdict"),
            *((self._time(row), *map(_cell, row.scores.values()), row.outcome) for row in self.table),
        ]

    def short_rows(self) -> list[tuple[str, ...]]:
        """The same with the simple method alone that decides."""
        if not self.table:
            return []
        return [
            (self._ahead, MODEL, "best simple method", "", "verdict"),
            *(
                (self._time(row), _cell(row.scores[MODEL]), _cell(row.scores[row.against]), row.against, row.outcome)
                for row in self.table
            ),
        ]

    @property
    def _ahead(self) -> str:
        return f"ahead ({self.unit})" if self.unit else "steps ahead"

    def _time(self, row: HorizonVerdict) -> str:
        return f"{row.time:.4g}" if self.unit else str(row.steps)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        plain = {name: getattr(self, name) for name in ("sentence", "kind", "origins", "unit", "runaways", "escapes")}
        lists = {"advice": list(self.advice), "notes": list(self.notes)}
        return plain | lists | {"table": [asdict(row) for row in self.table]}


def _cell(score: Score) -> str:
    return f"{score.mean:.3g} ± {score.se:.1g}" if np.isfinite(score.mean) else "–"


def judge(
    result: FitResult,
    data: Sequence[Series] | None = None,
    *,
    training: Sequence[Series] = (),
    n_origins: int = 24,
    n_samples: int = 200,
    seed: int = 0,
) -> Verdict:
    """Judge a fitted model on data that it has not seen.

    **Arguments**

    - `data`: series; by default those of the fit, of which the held-out part is used.
    - `training`: the series of the fit, where `data` is other data and the result was read from a file.

    **Returns** a `Verdict`; where nothing can be said, its kind is "unknown", and the sentence says why.
    """
    series = list(result.data if data is None else data)
    if not series:
        return Verdict(
            "Unknown: the model was read from a file, which does not hold the data; forecasts were not compared.",
            "unknown",
        )
    found = forecast_unseen(result, series, training=training, n_origins=n_origins, n_samples=n_samples, seed=seed)
    alike, _ = likeness(result, series, n_paths=PATHS, seed=seed)
    return verdict_on(found, result, alike)


def verdict_on(found: UnseenForecasts | None, result: FitResult, alike: Sequence[Likeness] = ()) -> Verdict:
    """The verdict on forecasts that were made already, and on free-running paths beside the data."""
    # Of data with a trend, free-running paths leave the range: they follow it.
    escapes = max((one.escape_share for one in alike if result.config.model.bounded is not False), default=0.0)
    staying = [one for one in alike if result.config.model.bounded is not False and not one.escape_share]
    unlike = ("values",) * any(one.other_values for one in staying)
    unlike += ("spectrum",) * any(one.other_spectrum for one in staying)
    if found is None:
        return Verdict(sentence_of(Findings(escapes=escapes, unlike=unlike)), "unknown", escapes=escapes)
    channels = np.unique(np.linspace(0, len(result.names) - 1, _MOST_CHANNELS).round().astype(int)).tolist()
    horizons = judged_horizons(found)
    runaways = _runaways(found)
    seen = Findings(
        unseen=found.division.n_unseen, origins=len(found.truth), runaways=runaways, escapes=escapes,
        step=result.step, unit=result.step_unit, outcomes=(), unlike=unlike,
    )  # fmt: skip
    notes = list(filter(None, [found.division.remark]))
    if not horizons:
        return Verdict(
            sentence_of(seen), "unknown", notes=tuple(notes), origins=len(found.truth), runaways=runaways,
            escapes=escapes,
        )  # fmt: skip
    simple = simple_scores(found, horizons, channels)
    table = _table(found, simple, horizons, channels, result)
    seen = seen._replace(outcomes=tuple((row.steps, row.outcome, row.against) for row in table))
    if len(channels) < len(result.names):
        notes.append(f"Scores are of {len(channels)} of the {len(result.names)} channels.")
    notes += simple.notes
    return Verdict(
        sentence=sentence_of(seen),
        kind=_kind([row.outcome for row in table]),
        table=table,
        advice=advice_on(seen, simple.season, result),
        notes=tuple(notes),
        origins=len(found.truth),
        unit=result.step_unit,
        runaways=runaways,
        escapes=escapes,
    )


def judged_horizons(found: UnseenForecasts) -> list[int]:
    """Horizons at which enough origins are far enough apart."""
    furthest = found.truth.shape[1]
    chosen = []
    for h in sorted({*_HORIZONS, furthest}):
        if h <= furthest:
            known = ~np.isnan(found.truth[:, h - 1]).all(axis=1)
            blocks = len(np.unique(_blocks(found, h)[known]))
            if known.sum() >= _LEAST_ORIGINS and blocks >= _LEAST_BLOCKS:
                chosen.append(h)
    return chosen


def _blocks(found: UnseenForecasts, h: int) -> np.ndarray:
    return blocks_of(found.place[:, 0], found.place[:, 1], h)


def _table(
    found: UnseenForecasts, simple: SimpleScores, horizons: list[int], channels: list[int], result: FitResult
) -> tuple[HorizonVerdict, ...]:
    scale = result.scaler.spread[channels]
    own = _capped(found.crps[:, np.array(horizons) - 1][..., channels] / scale)
    others = {name: _capped(score / scale) for name, score in simple.crps.items()}
    rows, alone = [], []
    for k, h in enumerate(horizons):
        block = _blocks(found, h)
        scores = {MODEL: block_mean(_over_channels(own[:, k]), block)}
        scores |= {name: block_mean(_over_channels(other[:, k]), block) for name, other in others.items()}
        paired = {name: block_mean(_over_channels(own[:, k] - other[:, k]), block) for name, other in others.items()}
        usable = {name: d for name, d in paired.items() if d.n >= _LEAST_ORIGINS and d.blocks >= _LEAST_BLOCKS}
        if usable:
            large = {name: abs(d.mean) > _MATTERS * scores[name].mean for name, d in usable.items()}
            outcome, against = _outcome(usable, large, _ERRORS)
            alone.append(_outcome(usable, large, _ERRORS_ALONE))
            means = {name: Score(s.mean, s.se) for name, s in scores.items()}
            rows.append(HorizonVerdict(h, h * result.step, scores[MODEL].n, outcome, against, means))
    beside = [{row.outcome for row in (*rows[max(k - 1, 0) : k], *rows[k + 1 : k + 2])} for k in range(len(rows))]
    return tuple(
        row if not near or row.outcome in near else replace(row, outcome=by_itself[0], against=by_itself[1])
        for row, near, by_itself in zip(rows, beside, alone, strict=True)
    )


def _outcome(paired: Mapping[str, Mean], large: Mapping[str, bool], errors: float) -> tuple[Outcome, str]:
    """What the differences say, and the method that decides."""
    # by the difference and not the score, for a method may know fewer origins than another
    best = max(paired, key=lambda name: paired[name].mean)
    sure = {name: large[name] and d.beyond(errors) for name, d in paired.items()}
    losing = [name for name, d in paired.items() if sure[name] and d.mean > 0]
    if losing:
        return "worse", max(losing, key=lambda name: paired[name].mean)
    return ("better" if sure[best] else "as good"), best


def _over_channels(score: Float[np.ndarray, "R P"]) -> Float[np.ndarray, " R"]:
    known = np.isfinite(score)
    count = known.sum(axis=1)
    return np.where(known, score, 0.0).sum(axis=1) / np.where(count, count, np.nan)


def _capped(score: np.ndarray) -> np.ndarray:
    return np.minimum(score, _BROKEN)  # NaN stays NaN


def _runaways(found: UnseenForecasts) -> float:
    """Share of the futures that are not finite or leave three times the range of the data."""
    shares = []
    for p in range(found.truth.shape[2]):
        values = np.concatenate([one.values[one.mask[:, p], p] for one in (*found.series, *found.division.known)])
        if len(values):
            shares.append(invariants.escape_share(found.samples[..., p].reshape(-1, found.samples.shape[2]), values))
    share = max(shares, default=0.0)
    lost = not np.isfinite(found.samples).all()
    return share if lost or share > _FEW_RUNAWAYS else 0.0


def _kind(outcomes: Sequence[Outcome]) -> Kind:
    if not outcomes:
        return "unknown"
    better, worse = "better" in outcomes, "worse" in outcomes
    return "mixed" if better and worse else "worse" if worse else "better" if better else "as good"
