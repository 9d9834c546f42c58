"""Do the tests notice wrong mathematics? One-line errors, each made on purpose in a copy of the source.

    python benchmarks/mutants.py [--only NAME ...] [--jobs 1] [--cache FOLDER] [--out benchmarks/results/mutants.json]

benchmarks/mutants.toml holds the errors: in which file which text becomes which, what is then wrong, and the tests that
should notice. Source and tests are copied to a temporary folder, where those tests must pass as they are. Then each
error is made in a copy of its own, its tests are run, and it is recorded whether one failed, which, and what it said.
That the copy is what was imported is looked at in every run.

The results are written to --out, and as a table to docs/mutants.md. With --only the named errors are run and their
results exchanged. The exit code is 0 when at least 95 % of all errors were noticed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from lamperti.data.files import atomic_write

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs" / "mutants.md"
ENOUGH = 0.95
_PATIENCE = 600.0  # seconds for the tests of one error
_COPIED = ("src", "tests", "pyproject.toml")
_LONGEST = 200  # letters of a message

# Tells the script what failed first, and which copy was imported; it must not import lamperti before the tests do.
_PLUGIN = """
import json, os, sys

said = {"test": "", "message": "", "broken": ""}

def pytest_runtest_logreport(report):
    if report.failed and not said["test"]:
        crash = getattr(report.longrepr, "reprcrash", None)
        said.update(test=report.nodeid, message=crash.message if crash else str(report.longrepr))

def pytest_collectreport(report):
    if report.failed:
        said["broken"] = str(report.longrepr)[-500:]

def pytest_sessionfinish(session, exitstatus):
    imported = getattr(sys.modules.get("lamperti"), "__file__", "")
    with open(os.environ["MUTANT_SAID"], "w") as file:
        json.dump(said | {"imported": imported, "exit": int(exitstatus)}, file)
"""


@dataclass(frozen=True)
class Mutant:
    """One error: ``old`` becomes ``new`` in a file below src/lamperti."""

    name: str
    wrong: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Make the error in a copy of the repository."""
        path = root / "src" / "lamperti" / self.file
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise SystemExit(
                f"{self.name}: its old text occurs {count} times in {self.file}, not once. The code has changed: write "
                "the error anew in benchmarks/mutants.toml."
            )
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Outcome:
    """What the tests said of an error."""

    file: str
    wrong: str
    noticed: bool
    test: str
    message: str
    seconds: float


def mutants(path: Path = LIST) -> list[Mutant]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Mutant(name, **{**entry, "tests": tuple(entry["tests"])}) for name, entry in entries.items()]


def copy(root: Path, to: Path) -> Path:
    """Source and tests alone, with their compiled modules: those of unchanged files stay good."""
    for name in _COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, to / name)
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)
    (to / "mutant_plugin.py").write_text(_PLUGIN, encoding="utf-8")
    return to


def run_tests(folder: Path, tests: Sequence[str], cache: Path, patience: float = _PATIENCE) -> dict:
    """The named tests on the copy in ``folder``, up to the first that fails."""
    said = folder / "said.json"
    paths = os.pathsep.join(str(folder / name) for name in ("src", "."))
    env = os.environ | {"PYTHONPATH": paths, "MUTANT_SAID": str(said), "JAX_COMPILATION_CACHE_DIR": str(cache)}
    named = [f"tests/{test}" for test in tests]
    command = [sys.executable, "-m", "pytest", "-x", "-p", "mutant_plugin", "-p", "no:cacheprovider", *named]
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        return {"test": "", "message": f"no answer in {patience:.0f} seconds", "exit": -1}
    if not said.exists():
        raise SystemExit(f"pytest said nothing:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = json.loads(said.read_text(encoding="utf-8"))
    if found["broken"]:
        raise SystemExit(f"the tests {', '.join(tests)} cannot be collected: {found['broken']}")
    if found["imported"] and not Path(found["imported"]).resolve().is_relative_to(folder.resolve()):
        raise SystemExit(f"{found['imported']} was imported, not the copy in {folder}.")
    if found["exit"] not in (0, 1):
        raise SystemExit(f"pytest ended with {found['exit']}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found


def judge(mutant: Mutant, whole: Path, cache: Path) -> Outcome:
    """Make the error in a copy of ``whole`` and run its tests."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        mutated = copy(whole, Path(folder) / "copy")
        mutant.apply(mutated)
        said = run_tests(mutated, mutant.tests, cache)
    message = " ".join(said["message"].split())[:_LONGEST]
    seconds = round(time.monotonic() - began, 1)
    test = said["test"].removeprefix("tests/")
    return Outcome(mutant.file, mutant.wrong, bool(test), test, message, seconds)


def table(results: dict[str, dict]) -> str:
    """A page of documentation."""
    noticed = sum(r["noticed"] for r in results.values())
    lines = [
        "# Errors made on purpose",
        "",
        f"Each row is a one-line error made in a copy of the source; the tests noticed {noticed} of {len(results)}. "
        "Made by `python benchmarks/mutants.py` from [mutants.toml](../benchmarks/mutants.toml), where the errors and "
        "the tests that were asked are; messages are in [mutants.json](../benchmarks/results/mutants.json).",
        "",
        "| file | error | noticed by |",
        "|---|---|---|",
    ]
    for result in results.values():
        file, _, test = result["test"].partition("::")
        by = f"`{file}`::`{test}`" if result["noticed"] else "**no test**"
        lines.append(f"| `{result['file']}` | {result['wrong']} | {by} |")
    return "\n".join(lines) + "\n"


def chosen(names: Sequence[str]) -> list[Mutant]:
    """The named errors, or all."""
    known = {mutant.name: mutant for mutant in mutants()}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no error is called {unknown[0]!r}. They are: {', '.join(known)}.")
    return [known[name] for name in names or known]


def study(names: Sequence[str], jobs: int, cache: Path, out: Path) -> dict[str, dict]:
    """Run the named errors (all, without names) and keep the results in ``out``, after each."""
    asked, order = chosen(names), [mutant.name for mutant in mutants()]
    found = json.loads(out.read_text(encoding="utf-8")) if names and out.exists() else {}
    writing = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        whole = copy(ROOT, Path(folder) / "whole")
        tests = list(dict.fromkeys(test for mutant in asked for test in mutant.tests))
        said = run_tests(whole, tests, cache, patience=4 * _PATIENCE)
        if said["exit"] != 0:
            raise SystemExit(f"without any error {said['test']} fails: {said['message']}")
        print(f"{len(tests)} tests or files of tests pass without any error", flush=True)

        def one(mutant: Mutant) -> None:
            result = judge(mutant, whole, cache)
            by = f"noticed by {result.test}" if result.noticed else f"NOT NOTICED {result.message}"
            print(f"{mutant.name} ({result.seconds:.0f} s): {by}", flush=True)
            with writing:
                found[mutant.name] = asdict(result)
                atomic_write(out, json.dumps(_in_order(found, order), indent=1, ensure_ascii=False).encode() + b"\n")

        for done in [pool.submit(one, mutant) for mutant in asked]:
            done.result()
    return _in_order(found, order)


def _in_order(found: dict[str, dict], order: Sequence[str]) -> dict[str, dict]:
    """As in the list; what is no longer in it is left out."""
    return {name: found[name] for name in order if name in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="errors to run; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="errors tried at the same time")
    parser.add_argument("--cache", type=Path, default=ROOT / ".pytest_cache" / "xla", help="compiled programs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "mutants.json")
    given = parser.parse_args()
    results = study(given.only, given.jobs, given.cache, given.out)
    PAGE.write_text(table(results), encoding="utf-8")
    share = sum(r["noticed"] for r in results.values()) / len(results)
    print(f"noticed: {share:.1%} of {len(results)}")
    sys.exit(share < ENOUGH)


if __name__ == "__main__":
    main()
