"""The part of the report on recordings, simulated and real: first all beside simple methods, then one by one."""

from collections.abc import Sequence

from lamperti.bench.beside import Beside, beside_best
from lamperti.bench.cells import CellResult
from lamperti.bench.document import Block, Heading, Paragraph, Table
from lamperti.bench.methods import METHODS
from lamperti.bench.problems import STAND_INS
from lamperti.bench.rules import METHOD
from lamperti.bench.summaries import Results

_HEADER = (
    "recording", "mean CRPS over the best simple method's", "best simple method", "at each horizon",
    "coverage of 90 % intervals", "diverging forecasts", "what the fit says of itself",
)  # fmt: skip
_WORDS = (
    f"{METHOD} beside the best simple method of each recording: below 1 is better. The mean is over horizons, of CRPS "
    "over climatology's; at each horizon the method that is best there is taken. A forecast diverges if any of its "
    "sampled futures leaves three times the range of the training samples."
)


def recorded(cells: Sequence[CellResult], results: Results) -> list[Block]:
    """Blocks of all recordings; none where there are none."""
    present = results.recordings()
    groups = {
        "Simulated recordings": [name for name in present if name in STAND_INS],
        "Real recordings": [name for name in present if name not in STAND_INS],
    }
    blocks: list[Block] = []
    for title, names in groups.items():
        if names:
            blocks += [Heading(title), *_summary(names, cells, results)]
            blocks += [block for name in names for block in _one(name, results)]
    return blocks


def _summary(names: Sequence[str], cells: Sequence[CellResult], results: Results) -> list[Block]:
    beside = beside_best(results)
    coverage = {key: one.median for key, one in results.values("coverage_90", METHOD).items()}
    diverging = {name: str(one) for (name, _), one in results.values("diverging_share", METHOD).items()}
    verdicts = {c.cell.system: c.verdict for c in reversed(cells) if c.verdict and c.cell.method == METHOD}
    rows = []
    for name in names:
        if name in beside:
            covered = {h: value for (system, h), value in coverage.items() if system == name and h is not None}
            rows.append(
                (*_beside(name, beside[name]), _at_each(covered), diverging.get(name, "–"), verdicts.get(name, "–"))
            )
    return [Paragraph(_WORDS), Table(_HEADER, tuple(rows))] if rows else []


def _beside(name: str, one: Beside) -> tuple[str, ...]:
    return name, f"{one.mean:.3f}", one.best, _at_each(one.at)


def _at_each(values) -> str:
    return ", ".join(f"h = {h}: {value:.3g}" for h, value in sorted(values.items())) or "–"


def _one(system: str, results: Results) -> list[Block]:
    methods = [m for m in METHODS if any((c.system, c.method) == (system, m) for c, _ in results.entries)]
    rows = []
    for metric in results.metrics():
        found = {m: {h: one for (s, h), one in results.values(metric, m).items() if s == system} for m in methods}
        for horizon in dict.fromkeys(h for column in found.values() for h in column):
            label = metric if horizon is None else f"{metric}, h = {horizon}"
            rows.append((label, *(str(column.get(horizon, "–")) for column in found.values())))
    return [Heading(system, 3), Table(("", *methods), tuple(rows))]
