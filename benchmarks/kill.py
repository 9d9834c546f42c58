"""A training run that is killed again and again, and resumed each time.

    python benchmarks/kill.py --kills 200 [--seed 0] [--out benchmarks/results/kill.json]

Two thirds of the kills (SIGKILL) come at random times while training goes on; one third the process does to itself,
just before or after one of the calls that change the disk (open, write, fsync, rename, mkdir), anywhere in a commit.
After each kill every commit that has a name must be intact, and the newest must be at least the last one that the
process told of. When a run is done its final state is compared, bit by bit, with that of a run that was never
interrupted, and another run is begun, until there were enough kills. The exit code is 0 when nothing was lost.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir")
_ITERATIONS = 400
_CLOCK = ("seconds", "eta_seconds")
_CALLS_A_COMMIT = 24  # and a little more: injected points fall into the first two commits after a start


def worker(folder: Path, at: int) -> None:
    """Fit, or go on with, a small run; die at the ``at``-th call that changes the disk (negative: just after it)."""
    import lamperti as lp

    data = lp.systems.ornstein_uhlenbeck(4, 60, dt=0.1, observation_noise=0.1, seed=3).series
    model = lp.ModelConfig(latent_dim=2, n_inducing=8, window=6, lag=2, n_components=4)
    fit = lp.FitConfig(
        max_iterations=_ITERATIONS,
        batch_size=4,
        segment_length=30,
        n_samples=2,
        validate_every=4,
        patience=1000,
        validation_fraction=0.0,  # saves the compilation of a score at every start
        gauge_at=(150,),
    )

    def tell(record) -> None:
        if at and not hasattr(tell, "armed"):
            tell.armed = True
            _arm(at)  # after the first commit, so that every start gets somewhere
        os.pwrite(1, f"{record.iteration:8d}\n".encode(), 0)

    if (folder / "config.json").exists():
        lp.resume(folder, data, progress=tell)
    else:
        lp.fit(data, model, fit, run=folder, progress=tell)
    (folder / "done").touch()


def _arm(at: int) -> None:
    left = abs(at)

    def guarded(call):
        def wrapped(*args, **options):
            nonlocal left
            left -= 1
            if left == 0 and at > 0:
                os.kill(os.getpid(), signal.SIGKILL)
            value = call(*args, **options)
            if left == 0 and at < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return wrapped

    for name in _CALLS:
        setattr(os, name, guarded(getattr(os, name)))


def run_once(folder: Path, at: int, wait: float | None) -> tuple[bool, int]:
    """Run a worker, kill it ``wait`` seconds after its first commit; whether it was killed, and what it told last."""
    said = folder.parent / "said"
    with said.open("wb") as out:
        child = subprocess.Popen([sys.executable, __file__, "--worker", str(folder), "--at", str(at)], stdout=out)
    if wait is not None:
        while child.poll() is None and not said.stat().st_size:
            time.sleep(0.002)
        time.sleep(wait)
        child.kill()
    code = child.wait()
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"the worker ended with {code}")
    return code != 0, int(said.read_text() or 0)


def inspect(folder: Path) -> tuple[int, int]:
    """How many commits are damaged, and the iteration of the newest one."""
    from lamperti.runs.commits import DamagedCommitError, committed, read_commit

    damaged, newest = 0, 0
    for place in committed(folder / "checkpoints"):
        try:
            newest = max(newest, json.loads(read_commit(place)["state.json"])["iteration"])
        except DamagedCommitError:
            damaged += 1
    return damaged, newest


def final_state(folder: Path) -> tuple[bytes, dict]:
    """The last commit of a run, without what the clock says."""
    from lamperti.runs.commits import committed, read_commit

    files = read_commit(committed(folder / "checkpoints")[0])
    content = json.loads(files["state.json"])
    for place in (content, content["history"], content["history"]["records"]):
        for name in _CLOCK:
            place.pop(name, None)
    return files["state.safetensors"], content


def study(kills: int, seed: int) -> dict:
    rng = random.Random(seed)
    counts = {
        "kills": 0,
        "at_random_times": 0,
        "at_injected_points": 0,
        "damaged": 0,
        "lost": 0,
        "runs": 0,
        "differ": 0,
    }
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        reference = Path(place) / "reference"
        run_once(reference, 0, None)
        expected = final_state(reference)
        folder = Path(place) / "run"
        while counts["kills"] < kills or folder.exists():
            enough = counts["kills"] >= kills
            injected = not enough and rng.random() < 1 / 3
            at = rng.choice((-1, 1)) * rng.randint(1, 2 * _CALLS_A_COMMIT) if injected else 0
            wait = None if injected or enough else rng.expovariate(1.0)
            killed, told = run_once(folder, at, wait)
            damaged, newest = inspect(folder)
            counts["kills"] += killed
            counts["at_injected_points" if injected else "at_random_times"] += killed
            counts["damaged"] += damaged
            counts["lost"] += newest < told
            if (folder / "done").exists():
                counts["runs"] += 1
                counts["differ"] += final_state(folder) != expected
                shutil.rmtree(folder)
            print(json.dumps(counts), file=sys.stderr, flush=True)
    return counts | {"iterations_a_run": _ITERATIONS, "minutes": round((time.monotonic() - began) / 60, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--at", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.at)
        return 0
    counts = study(options.kills, options.seed)
    print(json.dumps(counts, indent=1))
    if options.out:
        options.out.write_text(json.dumps(counts, indent=1) + "\n")
    return int(bool(counts["damaged"] or counts["lost"] or counts["differ"]))


if __name__ == "__main__":
    sys.exit(main())
