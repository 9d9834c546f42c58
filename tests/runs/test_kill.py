"""The real trainer killed and gone on with, by the library and by the command line."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np

import fitted
import lamperti as lp
from lamperti.cli import main
from lamperti.cli._toml import to_toml
from lamperti.data.writing import write_csv
from lamperti.runs.commits import committed

SOURCE = Path(lp.__file__).parents[1]
STUDY = Path(__file__).parents[2] / "benchmarks" / "kill.py"
# Kills itself before the second renaming; commits take their names by it and nothing else does.
CHILD = """
import os, signal, sys
from lamperti.cli import main
rename, done = os.rename, []
def guarded(*names):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names)
    done.append(names)
os.rename = guarded
main(sys.argv[1:])
"""


def _python(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *(str(argument) for argument in arguments)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        timeout=900,
        check=False,
    )


def test_twenty_kills_damage_nothing_and_lose_nothing(tmp_path):
    """Case 41: at random times, and around writes of the start, of commits and of the end; the model is the same."""
    # Not the programs that other tests share: a process that is killed while it keeps one would leave a part of it.
    cache = Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).with_name("xla-kill")
    options = {"--kills": 20, "--seed": 2408, "--iterations": 6, "--cache": cache, "--out": tmp_path / "counts.json"}
    child = _python(STUDY, *(part for option in options.items() for part in option))
    assert child.returncode == 0, child.stderr.decode()
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert counts["kills"] == 20 and counts["runs"] >= 1
    assert all(counts["where"][where] for where in ("early", "begin", "commit", "finish"))
    assert [counts[name] for name in ("damaged", "lost", "differ", "litter")] == [0, 0, 0, 0]


def test_a_killed_fit_is_resumed_to_the_same_model(tmp_path):
    """Case 41: killed before the second commit has its name."""
    series = fitted.data().series
    columns = {name: np.concatenate([getattr(s, name) for s in series]) for name in ("times", "values")}
    who = np.repeat(np.arange(len(series)), len(series[0]))
    write_csv(tmp_path / "data.csv", {"time": columns["times"], "y": columns["values"][:, 0], "who": who})
    (tmp_path / "small.toml").write_text(to_toml(lp.results.Config(fitted.MODEL, fitted.FIT)))
    run = tmp_path / "run"
    command = ["fit", tmp_path / "data.csv", "--id", "who", "--config", tmp_path / "small.toml", "--out", run]
    child = _python("-c", CHILD, *command)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert [place.name for place in committed(run / "checkpoints")] == ["000001"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)  # of the lock that the killed process left
        assert main(["resume", str(run), "--no-figures", "--quiet"]) == 0
    resumed, whole = lp.load(run), fitted.result()
    for a, b in zip(jax.tree.leaves(resumed.model), jax.tree.leaves(whole.model), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert [r.elbo for r in resumed.history.records] == [r.elbo for r in whole.history.records]
    assert not [p for p in (run / "checkpoints").iterdir() if p.name.startswith(".")]
