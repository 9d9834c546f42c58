"""From the results of a run to a page that a reader can judge by: targets first, then tables, then pictures."""

from collections.abc import Sequence
from pathlib import Path

from lamperti._errors import ConfigError
from lamperti.bench.cells import FOLDER, CellResult, picture_path, read_cells
from lamperti.bench.document import Block, Code, Heading, Paragraph, Picture, Table, to_html, to_markdown
from lamperti.bench.methods import LEARNED, METHODS
from lamperti.bench.problems import HORIZONS
from lamperti.bench.recorded import recorded
from lamperti.bench.summaries import Results
from lamperti.bench.table import CSV, RUNS, table_of, to_publish
from lamperti.bench.targets import judge_all
from lamperti.data.files import atomic_write
from lamperti.runs.manifest import (
    MANIFEST,
    claim,
    listed,
    refuse_in_the_way,
    refuse_strangers,
    remove_listed,
    start_manifest,
)

TITLE = "Benchmarks"
HTML, FIGURES = "index.html", "figures"
KIND = "bench-report"  # of the folder, in its manifest
USUAL_NOISE = 0.1

CAPTIONS = {
    "state_space": "true states beside the learned ones, carried over by a smooth map that was fitted to other series",
    "drift": "mean drift where the states have been: true and learned",
    "forecast": "a forecast from data that training has not seen",
    "free_run": "real series, and the model running freely",
    "statistics": "spectra, residence times and peak heights of free runs beside real ones",
    "training": "the bound during training",
    "evolution": "the state space during training",
}

_SCALES = (
    "Skill is a fraction: 0 is climatology, 1 the oracle, someone who knows the true equations and filters the same "
    "observations. Where the oracle is nearly perfect all skills are near 1; CRPS over the oracle's tells them apart: "
    "1 is the limit, 1.3 is 30 % above it, and there is none where the oracle knows the future exactly. Free-run "
    "numbers are distances to the real system over the distance of two real sets, so 1 cannot be told from the truth. "
    "Every entry is the median over seeds (each with its own training data and its own test set), ± the standard error "
    "over forecast origins, then all seeds in brackets. Forecasts are scored on the observable without its noise."
)

_WHOSE = {"climatology": "climatology's", "oracle": "the oracle's"}


def write_report(folder: Path, docs: Path) -> list[Path]:
    """The page beside ``docs`` (``docs.md``), and within ``docs`` the HTML page, the table and the pictures.

    Raises `ConfigError` where the folder holds no results.
    """
    cells = list(read_cells(folder))
    if not cells:
        raise ConfigError(f"{folder / FOLDER} holds no results. Fill it: lamperti bench run --out {folder}.")
    beside = docs.with_name(f"{docs.name}.md")
    docs.mkdir(parents=True, exist_ok=True)
    if listed(docs, KIND) is None:
        refuse_strangers(docs, "a report of the benchmark", docs.iterdir())
        refuse_in_the_way(docs.parent, [beside.name])
    copies = _pictures(folder, cells, docs / FIGURES)
    texts = to_publish(table_of(cells))
    names = [*texts, HTML, *(f"{FIGURES}/{picture.path.name}" for picture, _ in copies)]
    claim(docs, KIND, *names)
    for picture, source in copies:
        picture.path.parent.mkdir(exist_ok=True)
        atomic_write(picture.path, source.read_bytes())
    blocks = page(cells, Results.of(cells), [picture for picture, _ in copies])
    written = {
        **{docs / name: text for name, text in texts.items()},
        docs / HTML: to_html(blocks, TITLE),
        beside: to_markdown(blocks, docs.absolute().parent),
    }
    for path, text in written.items():
        atomic_write(path, text.encode())
    remove_listed(docs, KIND, keep=[MANIFEST, *names])  # pictures of an earlier report would stay for ever otherwise
    start_manifest(docs, KIND, names)
    return list(written)


def page(cells: Sequence[CellResult], results: Results, pictures: Sequence[Picture] = ()) -> list[Block]:
    """The report, block by block."""
    blocks: list[Block] = [Heading(TITLE, 1), Paragraph(_basis(cells)), Paragraph(_SCALES), Heading("Targets")]
    verdicts = judge_all(results)
    rows = tuple((v.what, v.goal, v.reached, v.outcome, v.basis) for v in verdicts)
    blocks.append(Table(("what", "target", "reached", "", "numbers"), rows))
    for noise in results.noises():
        blocks += _level(results, noise)
    blocks += recorded(cells, results)
    if pictures:
        blocks += [Heading("Pictures"), *pictures]
    blocks += _not_done(cells)
    commands = sorted({c.provenance.get("command", "") for c in cells} - {""})
    blocks += [Heading("How these numbers were made"), Paragraph(_sources(cells)), Code(tuple(commands))]
    return blocks


def _basis(cells: Sequence[CellResult]) -> str:
    done = [c for c in cells if c.status == "done"]
    seeds = sorted({c.cell.seed for c in done if c.cell.method in LEARNED})
    minutes = sorted({c.minutes for c in done if c.minutes is not None})
    trained = f" Library fits of {_words(f'{m:g}' for m in minutes)} minutes; seeds {_words(seeds)}." if minutes else ""
    return (
        f"{len(done)} results: {len({c.cell.system for c in done})} systems, {len({c.cell.method for c in done})} "
        f"methods.{trained} One row a number, with its seed, is in {CSV}; its column run leads to command, version and "
        f"machine in {RUNS}."
    )


def _sources(cells: Sequence[CellResult]) -> str:
    machines = sorted({f"{c.provenance.get('machine')}, version {c.provenance.get('version')}" for c in cells})
    return f"On {_words(machines)}. The same command with another seed count adds seeds; what is there is kept."


def _words(items) -> str:
    return ", ".join(map(str, items))


def _level(results: Results, noise: float) -> list[Block]:
    blocks: list[Block] = [Heading(f"Observation noise of {noise:.0%}")]
    present = [m for m in METHODS if m in results.methods()]
    for over in ("climatology", "oracle"):
        crps = {m: found for m in present if (found := results.mean_crps(m, noise, HORIZONS, over))}
        systems = list(dict.fromkeys(system for found in crps.values() for system in found))
        rows = tuple((s, *(str(found[s]) if s in found else "–" for found in crps.values())) for s in systems)
        words = f"CRPS over {_WHOSE[over]}, averaged over horizons 1, 5, 10, 20 and 50; lower is better."
        if rows:  # results of before the ratio to the oracle have none
            blocks += [Paragraph(words), Table(("system", *crps), rows)]
    for method in (m for m in LEARNED if results.values("crps_over_climatology", m, noise)):
        for metric, words in (
            ("skill_fraction", "skill fraction by horizon"),
            ("crps_over_oracle", "CRPS over the oracle's by horizon"),
            ("coverage_90", "coverage of 90 % intervals by horizon"),
        ):
            blocks += _by_horizon(results, metric, method, noise, f"{method}: {words}.")
        blocks += _by_metric(results, method, noise)
    return blocks


def _by_horizon(results: Results, metric: str, method: str, noise: float, words: str) -> list[Block]:
    found = results.values(metric, method, noise, HORIZONS)
    if not found:
        return []
    systems = list(dict.fromkeys(system for system, _ in found))
    rows = tuple((s, *(str(found[s, h]) if (s, h) in found else "–" for h in HORIZONS)) for s in systems)
    return [Paragraph(words), Table(("system", *(f"h = {h}" for h in HORIZONS)), rows)]


def _by_metric(results: Results, method: str, noise: float) -> list[Block]:
    """Everything that has no horizon, or one of its own: a row a metric, a column a system."""
    names = sorted(results.metrics(method), key=lambda name: (not name.startswith("floor_ratio"), name))
    columns: dict[str, dict[str, str]] = {}
    for name in names:
        for (system, horizon), one in results.values(name, method, noise).items():
            if horizon not in HORIZONS:
                columns.setdefault(system, {})[name] = str(one)
    if not columns:
        return []
    shown = [n for n in names if any(n in column for column in columns.values())]
    rows = tuple((n, *(column.get(n, "–") for column in columns.values())) for n in shown)
    words = (
        f"{method}: free runs, embedding, equation and cost; floor_ratio is the distance over the real-vs-real floor."
    )
    return [Paragraph(words), Table(("", *columns), rows)]


def _not_done(cells: Sequence[CellResult]) -> list[Block]:
    rows = [(str(c.cell), c.status, c.reason) for c in cells if c.status != "done"]
    rows += [(str(c.cell), "noted", note) for c in cells for note in c.notes]
    return [Heading("What was not measured"), Table(("cell", "", "why"), tuple(rows))] if rows else []


def _pictures(folder: Path, cells: Sequence[CellResult], place: Path) -> list[tuple[Picture, Path]]:
    """Pictures of the library's first seed, at one noise level a system: the usual one where it was run. Each with the
    file that it is a copy of."""
    chosen: dict[str, CellResult] = {}
    for result in cells:
        if result.pictures and result.cell.method == "lamperti" and result.cell.seed == 0:
            system = result.cell.system
            if system not in chosen or result.cell.noise == USUAL_NOISE:
                chosen[system] = result
    return [
        (
            Picture(
                (place / f"{result.cell.system}-{name}.png").absolute(), f"{result.cell}: {CAPTIONS.get(name, name)}"
            ),
            picture_path(folder, result.cell, name),
        )
        for result in chosen.values()
        for name in result.pictures
    ]
