"""What the documents say is true: names exist, equations exist, links lead somewhere, examples run."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

import lamperti as lp
from lamperti.testing import __all__ as checks

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lamperti"
THEORY = ROOT / "docs" / "theory.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

REFERENCE = re.compile(r"docs/theory\.md((?:,?\s*\(\d+\)(?:-\(\d+\))?)+)")
RANGE = re.compile(r"\((\d+)\)(?:-\((\d+)\))?")


def text_of(*pages: Path) -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def defined_equations() -> list[int]:
    return [int(n) for n in re.findall(r"\\tag\{(\d+)\}", text_of(THEORY))]


def referred_equations() -> dict[int, str]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        for reference in REFERENCE.findall(path.read_text(encoding="utf-8")):
            for first, last in RANGE.findall(reference):
                found |= {n: path.name for n in range(int(first), int(last or first) + 1)}
    return found


def modules_with_doctests() -> list[str]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]
    return [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in paths]


@pytest.mark.parametrize("name", lp.__all__)
def test_public_name_is_documented(name):
    public = getattr(lp, name)
    assert inspect.getdoc(public), f"lamperti.{name} has no docstring"
    pages = text_of(*PAGES)
    assert re.search(rf"(?<!\w){name}(?!\w)", pages), f"lamperti.{name} is in no page of the documentation"


def test_the_readmes_lines_for_an_own_recording_run(tmp_path, monkeypatch):
    (block,) = re.findall(r"^```py\n(.*?)^```", text_of(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    y = lfilter([1.0], [1.0, -0.9], np.random.default_rng(0).normal(size=600))
    (tmp_path / "recording.csv").write_text("time x\n" + "".join(f"{0.01 * t:.2f} {v:.5f}\n" for t, v in enumerate(y)))
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    exec(compile(re.sub(r"(\d)00\b", r"\g<1>0", block), "README.md", "exec"), space)
    assert space["forecast"].samples.shape[1] == 20 and "ahead" in space["result"].verdict.sentence


def test_every_contract_check_is_explained_to_contributors():
    page = text_of(ROOT / "CONTRIBUTING.md")
    assert [name for name in checks if name.startswith("check_") and name not in page] == []


def test_every_option_says_what_it_does_or_is_plain():
    plain = {"seed", "max_iterations", "start_iterations", "validate_every", "smoother"}
    for config in (lp.ModelConfig, lp.FitConfig):
        silent = {name for name, field in config.model_fields.items() if not field.description}
        assert silent <= plain


def test_equations_are_numbered_from_one_without_gaps():
    numbers = defined_equations()
    assert numbers == list(range(1, len(numbers) + 1))


def test_equations_that_the_code_refers_to_exist():
    referred = referred_equations()
    assert referred, "no reference to docs/theory.md was found: has the way they are written changed?"
    missing = {n: where for n, where in referred.items() if n not in defined_equations()}
    assert missing == {}


def test_every_numbered_equation_is_used_by_the_code():
    assert sorted(referred_equations()) == defined_equations()


def test_decisions_that_the_code_refers_to_exist():
    numbers = {n for path in SOURCE.rglob("*.py") for n in re.findall(r"docs/adr/(\d{4})", path.read_text("utf-8"))}
    assert numbers
    assert {n for n in numbers if not list((ROOT / "docs" / "adr").glob(f"{n}-*.md"))} == set()


def test_every_direct_dependency_has_its_reason():
    text = text_of(ROOT / "pyproject.toml")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed
    reasons = text_of(ROOT / "docs" / "adr" / "0003-dependencies.md")
    names = re.findall(r'"([\w-]+)', listed.group(1))
    assert names
    assert [name for name in names if name not in reasons] == []


def test_constraints_are_names_and_versions_only():
    lines = [line for line in text_of(ROOT / "constraints.txt").splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!]+", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path) if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", modules_with_doctests())
def test_examples_in_docstrings_are_right(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_the_readme_example_runs(tmp_path, monkeypatch):
    (example,) = python_blocks(ROOT / "README.md")
    # The same lines with less data and three iterations: what is tested is that they run, not what they learn.
    # Nothing is held out, which saves the compilation of the validation score.
    quick, replaced = re.subn(r"max_iterations=\d+", "max_iterations=3, batch_size=2, validation_fraction=0.0", example)
    assert replaced == 1
    quick, replaced = re.subn(r"n_series=\d+", "n_series=3", quick)
    assert replaced == 1
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    exec(compile(quick, "README.md", "exec"), space)

    forecast, states, paths = space["forecast"], space["states"], space["paths"]
    assert forecast.samples.shape == (256, 100, 1)
    assert (space["lower"] <= space["upper"]).all()
    assert states.mean.shape == (400, 3)
    assert states.cov.shape == (400, 3, 3)
    assert space["drift"].shape == space["drift_sd"].shape == (400, 3)
    assert paths.samples.shape == (4, 2000, 1)
    loaded = lp.load("lorenz.safetensors")
    assert (loaded.drift(states.mean)[0] == space["drift"]).all()


def test_the_kernel_of_the_contributors_page_passes_its_check():
    (example,) = python_blocks(ROOT / "CONTRIBUTING.md")
    exec(compile(example, "CONTRIBUTING.md", "exec"), {})


def test_the_example_on_data_runs():
    (example,) = python_blocks(ROOT / "docs" / "data.md")
    exec(compile(example, "data.md", "exec"), {})


def test_every_test_that_the_faults_are_mapped_to_exists():
    page = text_of(ROOT / "docs" / "faults.md")
    rows = re.findall(r"^\| \d+ \|.*$", page, re.MULTILINE)
    numbers = [int(row.split()[1]) for row in rows]
    assert numbers[:59] == list(range(1, 60)) and len(set(numbers)) == len(numbers)
    assert [lost for row in rows for lost in lost_tests(row)] == []


def test_a_test_that_is_not_in_the_file_it_is_mapped_to_would_be_found():
    assert lost_tests("| 1 | `test_io.py`::`test_a_missing_file_is_refused`, `test_cli.py` |") == []
    assert lost_tests("| 1 | `test_cli.py`::`test_a_missing_file_is_refused` |") != []
    assert lost_tests("| 1 | `test_io.py`::`test_a_missing_file` |") != []  # the beginning of a name
    assert lost_tests("| 1 | `test_io.py`::`test_a_missing_file…` |") == []
    assert lost_tests("| 1 | `test_io.py`, `test_a_file_that_never_was` |") != []
    assert lost_tests("| 1 | `test_faults_runs.py`::`test_a_bad_model_file_is_refused_in_one_sentence[99 …]` |") != []


def lost_tests(row: str) -> list[str]:
    """What a row of the faults maps to that is not there. A test belongs to the file before it; one may be given by its
    beginning and an ellipsis, and a case of one by the beginning of its name in brackets."""
    lost, file = [], None
    for name in re.findall(r"`([\w/]+\.py|test_\w+[^`]*)`", row):
        if name.endswith(".py"):
            file = ROOT / "tests" / name
            lost += [] if file.exists() else [name]
            continue
        text = text_of(file) if file is not None and file.exists() else ""
        test, _, case = name.removesuffix("]").partition("[")
        begun = test.endswith("…")
        defined = re.search(rf"^def {test.removesuffix('…')}{'' if begun else chr(92) + '('}", text, re.MULTILINE)
        cased = re.search(rf'(Fault\(\s*|"){re.escape(case.removesuffix("…").strip())}\b', text)  # its number
        lost += [] if defined and (cased or not case) else [f"{file and file.name}::{name}"]
    return lost
