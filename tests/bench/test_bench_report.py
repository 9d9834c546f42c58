"""The report: targets are judged rightly, and the page holds everything within itself."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import problems_for_tests as tiny
import pytest

import lamperti as lp
from lamperti.bench import runner
from lamperti.bench.cells import Cell, CellResult, Row, picture_path, write_cell
from lamperti.bench.document import Code, Heading, Paragraph, Picture, Table, to_html, to_markdown
from lamperti.bench.jobs import Work
from lamperti.bench.problems import CORE, HORIZONS
from lamperti.bench.report import write_report
from lamperti.bench.summaries import Results, Summary
from lamperti.bench.targets import TARGETS, Verdict, judge, judge_all
from lamperti.cli import main

PNG = bytes.fromhex("89504e470d0a1a0a")


def results(*cells: tuple[Cell, list[Row]]) -> Results:
    return Results.of([CellResult(cell, "done", tuple(rows)) for cell, rows in cells])


def verdict(words: str, found: Results) -> Verdict:
    (target,) = [t for t in TARGETS if t.what.startswith(words)]
    return judge(target, found)


def skills(value: float, systems=CORE, noise: float = 0.1, seeds: int = 3) -> list[tuple[Cell, list[Row]]]:
    rows = [Row("skill_fraction", value, 0.01, h, 100) for h in HORIZONS]
    rows += [Row("oracle_over_climatology", 0.5, horizon=h) for h in HORIZONS]
    return [(Cell(s, noise, "lamperti", seed), rows) for s in systems for seed in range(seeds)]


def test_a_target_is_met_missed_or_not_run():
    words = "skill fraction, h = 1, 5, 10, 20, 10 % noise, each"
    assert verdict(words, results(*skills(0.95))).outcome == "met"
    assert verdict(words, results()).outcome == "not run"
    assert verdict(words, results(*skills(0.95, noise=0.3))).outcome == "not run"
    one_bad = [*skills(0.95, CORE[:-1]), *skills(0.5, CORE[-1:])]
    missed = verdict(words, results(*one_bad))
    assert missed.outcome == "missed"
    assert missed.reached == f"lowest 0.5 ({CORE[-1]} h=1)"


def test_a_third_above_the_oracle_is_missed_although_skill_is_near_one():
    rows = [Row("skill_fraction", 0.996, 0.001, h, 100) for h in HORIZONS]
    rows += [Row("crps_over_oracle", 1.31, 0.02, h, 100) for h in HORIZONS]
    found = results(*((Cell(s, 0.1, "lamperti", 0), rows) for s in CORE))
    assert verdict("skill fraction, h = 1, 5, 10, 20, 10 % noise, each", found).outcome == "met"
    missed = verdict("CRPS over the oracle's, h = 1, 5, 10, 20, 10 % noise, each", found)
    assert missed.outcome == "missed" and missed.reached.startswith("highest 1.31")


def test_part_of_a_run_can_miss_a_target_but_not_meet_it():
    words = "skill fraction, h = 1, 5, 10, 20, 10 % noise, each"
    part = verdict(words, results(*skills(0.95, CORE[:2])))
    assert (part.outcome, part.basis) == ("partly run", "8 of 32")
    assert verdict(words, results(*skills(0.9, CORE[:2]))).outcome == "missed"
    # a median may still change
    (median,) = [t for t in TARGETS if t.goal == "median ≥ 0.97"]
    assert judge(median, results(*skills(0.9, CORE[:2]))).outcome == "partly run"
    assert judge(median, results(*skills(0.9))).outcome == "missed"


def test_the_median_over_seeds_counts():
    cells = [(Cell("ornstein_uhlenbeck", 0.1, "lamperti", s), [Row("eigenvalue_error", v)]) for s, v in
             enumerate((0.05, 0.5, 0.09))]  # fmt: skip
    assert verdict("OU: eigenvalues", results(*cells)).outcome == "met"
    assert verdict("OU: eigenvalues", results(*cells[:2])).outcome == "missed"
    # only the method with pure defaults counts
    told = [(cell._replace(method="lamperti-told"), rows) for cell, rows in cells]
    assert verdict("OU: eigenvalues", results(*told)).outcome == "not run"


def test_one_escaping_path_misses_and_an_infinite_distance_too():
    def free(escaped: float, distance: float) -> Results:
        rows = [Row("escape_share", escaped), Row("floor_ratio spectrum", distance)]
        return results((Cell("lorenz", 0.1, "lamperti", 0), rows))

    assert verdict("share of free-running", free(0.0, 1.0)).outcome == "partly run"
    assert verdict("share of free-running", free(0.03, 1.0)).outcome == "missed"
    assert (
        verdict("D_H, W1 of peaks and of residence times over the floor, each", free(0, math.inf)).outcome == "missed"
    )


def test_baselines_are_compared_by_the_best_of_them():
    def scores(ours: float, best: float) -> list[tuple[Cell, list[Row]]]:
        return [
            (Cell(system, 0.1, method, 0), [Row("crps_over_climatology", value, horizon=h) for h in HORIZONS])
            for system in CORE
            for method, value in (("lamperti", ours), ("ar", best), ("climatology", 1.0))
        ]

    better = results(*scores(0.5, 0.6))
    assert verdict("mean CRPS", better).outcome == "met"
    assert verdict("the same, each", better).outcome == "met"
    worse = results(*scores(0.6, 0.5))
    assert verdict("mean CRPS", worse).outcome == "missed"
    assert verdict("the same, each", worse).reached.startswith("highest 1.2")


def test_calibration_is_pooled_and_watched_system_by_system():
    def coverage(values) -> Results:
        cells = zip(CORE, values, strict=True)
        return results(*((Cell(s, 0.1, "lamperti", 0), [Row("coverage_90", v, horizon=1)]) for s, v in cells))

    wide = coverage([0.9] * 7 + [0.99])
    assert verdict("90 % interval coverage, over", wide).outcome == "met"
    assert verdict("90 % interval coverage, each", wide).outcome == "missed"


def test_every_target_is_judged_from_nothing():
    assert {v.outcome for v in judge_all(results())} == {"not run"}
    assert len(judge_all(results())) == len(TARGETS)


def test_a_summary_shows_the_median_the_error_and_every_seed():
    assert str(Summary(0.95, (0.9, 0.95, 0.97), 0.011)) == "0.950 ± 0.011 (0.900, 0.950, 0.970)"
    assert str(Summary(math.inf, (math.inf,), math.nan)) == "∞"


def test_crps_is_averaged_over_horizons_before_the_median_over_seeds():
    cells = [
        (
            Cell("lorenz", 0.1, "ar", seed),
            [Row("crps_over_climatology", v, horizon=h) for h, v in zip((1, 5), pair, strict=True)],
        )
        for seed, pair in enumerate(((0.1, 0.9), (0.2, 0.2), (0.3, 0.1)))
    ]
    found = results(*cells).mean_crps("ar", 0.1, (1, 5))["lorenz"]
    assert found.median == pytest.approx(0.2)
    assert found.seeds == pytest.approx((0.5, 0.2, 0.2))


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """A run of baselines, one made-up result of the library with pictures, one failure; and its report."""
    folder = tmp_path_factory.mktemp("bench")
    runner.run(tiny.jobs(2), Work(folder, 1.0), {"command": "lamperti bench run", "machine": "m", "version": "0"},
               lambda event: None)  # fmt: skip
    rows = (Row("crps_over_climatology", 0.2, 0.01, 1, 12), Row("skill_fraction", 0.9, 0.02, 1, 12),
            Row("floor_ratio spectrum", 1.5))  # fmt: skip
    cell = Cell("tiny", 0.1, "lamperti", 0)
    write_cell(folder, CellResult(cell, "done", rows, pictures=("forecast", "drift"), minutes=2.5))
    for name in ("forecast", "drift"):
        picture_path(folder, cell, name).write_bytes(PNG + name.encode())
    write_cell(folder, CellResult(Cell("tiny", 0.1, "echo-state", 0), "failed", reason="out | of luck <b>"))
    write_cell(folder, CellResult(Cell("laser", None, "ar", 0), "done", (Row("crps", 3.0, horizon=2),)))
    docs = tmp_path_factory.mktemp("docs") / "benchmarks"
    assert main(["bench", "report", str(folder), "--docs", str(docs)]) == 0
    return docs


def test_the_page_refers_to_every_figure_and_each_is_there(reported):
    page = reported.with_name("benchmarks.md").read_text()
    shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert sorted(shown) == ["benchmarks/figures/tiny-drift.png", "benchmarks/figures/tiny-forecast.png"]
    assert all((reported.parent / path).read_bytes().startswith(PNG) for path in shown)
    assert sorted(p.name for p in (reported / "figures").iterdir()) == ["tiny-drift.png", "tiny-forecast.png"]


def test_the_html_page_holds_its_figures_and_points_nowhere(reported):
    class Links(HTMLParser):
        found: list[str]

        def handle_starttag(self, tag, attrs):
            self.found += [value for name, value in attrs if name in ("src", "href", "srcset") and value]

    text = (reported / "index.html").read_text()
    links = Links()
    links.found = []
    links.feed(text)
    assert len(links.found) == 2
    assert all(link.startswith("data:image/png;base64,") for link in links.found)
    assert not re.search(r"https?://|url\(|@import|<script", text)
    assert "out | of luck &lt;b&gt;" in text


def test_the_page_tells_targets_seeds_failures_and_commands(reported):
    page = reported.with_name("benchmarks.md").read_text()
    for target in TARGETS:
        assert f"| {target.what} | {target.goal} |" in page
    assert "| tiny 10% noise, echo-state, seed 0 | failed | out \\| of luck <b> |" in page
    assert "```sh\nlamperti bench run\n```" in page
    assert re.search(r"\| tiny \|.*\(\d\.\d+, \d\.\d+\)", page), "both seeds of a baseline"
    assert "### laser" in page


def test_the_page_shows_crps_over_the_oracles_for_all_methods(reported):
    page = reported.with_name("benchmarks.md").read_text()
    table = page.split("CRPS over the oracle's, averaged over horizons")[1].split("\n\n")[1]
    header, _, row = table.splitlines()
    assert header == "| system | climatology | persistence | ar |" and row.startswith("| tiny |") and "±" in row
    # the result of the library is of before the ratio was measured: its skill is shown, a table of ratios is not
    assert "lamperti: skill fraction by horizon." in page and "lamperti: CRPS over the oracle's" not in page


def test_every_published_number_leads_to_its_command(reported):
    numbers, runs = (pd.read_csv(reported / name) for name in ("results.csv", "runs.csv"))
    joined = numbers.merge(runs, on="run", validate="many_to_one")
    assert len(joined) == len(numbers) > 10
    of_baselines = joined[joined["method"].isin(["climatology", "persistence"])]  # the others are made up
    assert len(of_baselines) > 5 and set(of_baselines["command"]) == {"lamperti bench run"}
    assert joined.loc[joined["method"] == "lamperti", "minutes"].tolist() == [2.5] * 3
    assert len(runs) < 5
    assert {"system", "noise", "method", "seed", "metric", "horizon", "value", "se", "n"} < set(numbers.columns)


def test_the_command_tells_what_it_wrote_or_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("lamperti.bench.report.write_report", lambda folder, docs: [docs / "index.html"])
    assert main(["bench", "report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"written": [str(tmp_path / "report" / "index.html")]}
    assert main(["bench", "report", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert main(["bench", "report", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err
    with pytest.raises(lp.ConfigError, match="holds no results"):
        write_report(tmp_path, tmp_path / "docs")


def test_blocks_are_written_as_markdown_and_html(tmp_path):
    picture = tmp_path / "a" / "b.png"
    picture.parent.mkdir()
    picture.write_bytes(PNG)
    blocks = [Heading("H", 3), Paragraph("a < b"), Table(("x", ""), (("1", "met"),)), Picture(picture, "c"),
              Code(("run",))]  # fmt: skip
    assert to_markdown(blocks, tmp_path) == (
        "### H\n\na < b\n\n| x |  |\n|---|---|\n| 1 | met |\n\n![c](a/b.png)\n\n*c*\n\n```sh\nrun\n```\n"
    )
    page = to_html(blocks, "T")
    assert "<h3>H</h3>" in page and "<p>a &lt; b</p>" in page and '<td class="met">met</td>' in page
