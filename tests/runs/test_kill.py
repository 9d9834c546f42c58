"""The real trainer killed inside its commits; `benchmarks/kill.py` does it two hundred times."""

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

# Kills itself before (or, negative, after) so many-th renaming; commits take their names by it and nothing else does.
CHILD = """
import os, signal, sys
from lamperti.cli import main
left = at = int(sys.argv[1])
rename = os.rename
def guarded(*names):
    global left
    left -= 1 if at > 0 else -1
    if left == 0 and at > 0:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
os.rename = guarded
main(sys.argv[2:])
"""


def _killed(at: int, *command: object) -> None:
    source = str(Path(lp.__file__).parents[1])
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(at), *(str(part) for part in command)],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()


def test_a_killed_fit_is_resumed_to_the_same_model(tmp_path):
    """Case 41: killed before the second commit has its name, and, resumed, just after."""
    series = fitted.data().series
    columns = {name: np.concatenate([getattr(s, name) for s in series]) for name in ("times", "values")}
    who = np.repeat(np.arange(len(series)), len(series[0]))
    write_csv(tmp_path / "data.csv", {"time": columns["times"], "y": columns["values"][:, 0], "who": who})
    (tmp_path / "small.toml").write_text(to_toml(lp.results.Config(fitted.MODEL, fitted.FIT)))
    run = tmp_path / "run"
    _killed(2, "fit", tmp_path / "data.csv", "--id", "who", "--config", tmp_path / "small.toml", "--out", run)
    assert [place.name for place in committed(run / "checkpoints")] == ["000001"]
    _killed(-1, "resume", run)
    assert [place.name for place in committed(run / "checkpoints")] == ["000002", "000001"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)  # of the lock that the killed process left
        assert main(["resume", str(run), "--no-figures", "--quiet"]) == 0
    resumed, whole = lp.load(run), fitted.result()
    for a, b in zip(jax.tree.leaves(resumed.model), jax.tree.leaves(whole.model), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert [r.elbo for r in resumed.history.records] == [r.elbo for r in whole.history.records]
    assert not [p for p in (run / "checkpoints").iterdir() if p.name.startswith(".")]
