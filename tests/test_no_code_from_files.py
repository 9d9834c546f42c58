"""Nothing in the library may run code that comes out of a file."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__", "read_pickle", "to_pickle", "import_module", "run_path", "run_module"}
BY_PLACE = {"load": 2, "read_array": 1}  # where readers of NumPy take allow_pickle without its name


def offences(text: str, name: str = "text") -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            imported = [node.module or "", *(a.name for a in node.names)]
        found += [f"{name}: import {m}" for m in imported if m.split(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            found += [f"{name}: {what}" for what in _calls(node)]
    return found


def _calls(node: ast.Call) -> list[str]:
    whole = ast.unparse(node.func)
    last = whole.rpartition(".")[2]
    if last == "import_module":  # of a name that is written out, and that is not one of those
        known = len(node.args) == 1 and isinstance(node.args[0], ast.Constant)
        return [] if known and str(node.args[0].value).split(".")[0] not in MODULES else [f"{whole}()"]
    harmless = last == "compile" and whole not in ("compile", "builtins.compile")  # of re and jax
    found = [f"{whole}()"] if last in CALLS and not harmless else []
    pickles = [k.value for k in node.keywords if k.arg == "allow_pickle"]
    if whole in ("np.load", "numpy.load") or last == "read_array":
        pickles += node.args[BY_PLACE[last] :][:1]
        found += [] if pickles else [f"{whole} without allow_pickle=False"]
    refused = [isinstance(value, ast.Constant) and value.value is False for value in pickles]
    return found + ["allow_pickle"] * (not all(refused))


def test_no_module_can_run_code_from_a_file():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 50
    assert [line for file in files for line in offences(file.read_text("utf-8"), file.name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "from six.moves import cPickle",
        "eval('1')",
        "exec('1')",
        "builtins.eval(text)",
        "pd.eval(text)",
        "frame.eval(text)",
        "builtins.exec(text)",
        "import_module('pickle')",
        "importlib.import_module('joblib.numpy_pickle')",
        "import_module(name)",
        "__import__('pickle')",
        "runpy.run_path(f)",
        "np.load(f, allow_pickle=True)",
        "np.load(f)",
        "np.load(f, allow_pickle=flag)",
        "np.load(f, None, True)",
        "read_array(f, True)",
        "format.read_array(f, True)",
        "np.lib.format.read_array(f)",
        "read_array(f, allow_pickle=True)",
        "reader(f, allow_pickle=True)",
        "pd.read_pickle(f)",
    ],
)
def test_the_scan_would_find_it(text):
    assert offences(text)


@pytest.mark.parametrize(
    "text",
    [
        "re.compile('a')",
        "np.load(f, allow_pickle=False)",
        "np.load(f, None, False)",
        "read_array(f, False)",
        "import_module('zarr')",
    ],
)
def test_the_scan_leaves_harmless_code_alone(text):
    assert offences(text) == []
