"""Nothing in the library may run code that comes out of a file."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__", "read_pickle", "to_pickle"}


def offences(text: str, name: str = "text") -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [f"{name}: import {m}" for m in imported if m.split(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else None
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("read_pickle", "to_pickle"):
                called = node.func.attr
            found += [f"{name}: {called}()"] if called in CALLS else []
            allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
            found += [
                f"{name}: allow_pickle" for v in allowed if not (isinstance(v, ast.Constant) and v.value is False)
            ]
            loads = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in ("np.load", "numpy.load")
            found += [f"{name}: np.load without allow_pickle=False"] if loads and not allowed else []
    return found


def test_no_module_can_run_code_from_a_file():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 50
    assert [line for file in files for line in offences(file.read_text("utf-8"), file.name)] == []


def test_the_scan_would_find_it():
    for text in (
        "import pickle",
        "from joblib import load",
        "eval('1')",
        "exec('1')",
        "np.load(f, allow_pickle=True)",
        "np.load(f)",
        "np.load(f, allow_pickle=flag)",
        "pd.read_pickle(f)",
    ):
        assert offences(text), text
