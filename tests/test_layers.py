"""The architecture: imports point down the layers, and only the command line prints."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lamperti"
LONGEST_MODULE = 300


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_imports_point_down_the_layers():
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_is_short_documented_and_quiet(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert text.count("\n") <= LONGEST_MODULE
    assert ast.get_docstring(tree) or not tree.body, "a module that holds anything opens with a docstring"
    assert "print" not in called or "cli" in path.relative_to(SOURCE).parts
    assert not called & {"eval", "exec"}


def test_nothing_is_ever_unpickled():
    dangerous = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & dangerous, path
