"""A training run that is killed again and again, and gone on with each time.

    python benchmarks/kill.py --kills 200 [--seed 0] [--iterations 400] [--cache FOLDER] [--out results.json]

Half of the kills (SIGKILL) come at random times: from the moment that the run is opened, or while training goes on.
The other half the process does to itself, just before or after one of the calls that change the disk (open, write,
fsync, rename, ...): from the very first (lock, probe, configuration, first commit), in later commits, or while the
model is written at the end. After each kill every file that has a name must be whole, and the newest commit must be at
least the last one that any process told of. A killed run is gone on with as a user would: `resume` where there is a
config.json, `fit` before that. When a run is done, its last commit and its model file are compared, bit by bit, with
those of a run that was never interrupted, and another run is begun, until there were enough kills.

The counts are written to --out after every start; called again with the same file, the study goes on from there. The
exit code is 0 when nothing was lost.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CALLS = ("open", "write", "fsync", "ftruncate", "rename", "replace", "mkdir", "rmdir", "unlink")
_CLOCK = ("seconds", "eta_seconds")
# Where kills fall, and how often; at injected points: at which of the calls at most, from where they are counted.
_TIMES = {"early": 2, "training": 4}
_POINTS = {"begin": (2, 44), "commit": (2, 60), "finish": (2, 16)}


@dataclass(frozen=True)
class Kill:
    """Where a process is to die; ``at``: the number of a call, negative when just after it; ``wait``: seconds."""

    where: str
    at: int = 0
    wait: float = 0.0


NEVER = Kill("never")


def plan(rng: random.Random) -> Kill:
    weights = _TIMES | {where: weight for where, (weight, _) in _POINTS.items()}
    where = rng.choices(list(weights), list(weights.values()))[0]
    if where in _TIMES:
        return Kill(where, wait=rng.expovariate(1.0))
    return Kill(where, at=rng.choice((-1, 1)) * rng.randint(1, _POINTS[where][1]))


def worker(folder: Path, kill: Kill, said: int, iterations: int) -> None:
    """Fit, or go on with, a small run, and die as planned. ``said``: a file for the last iteration that was told of."""
    import lamperti as lp
    from lamperti.runs.folder import RunFolder

    warnings.filterwarnings("ignore", ".*did not end properly", lp.LampertiWarning)  # the lock of who was killed
    data = lp.systems.ornstein_uhlenbeck(4, 60, dt=0.1, observation_noise=0.1, seed=3).series
    model = lp.ModelConfig(latent_dim=2, n_inducing=8, window=6, lag=2, n_components=4)
    long = iterations >= 100  # in a short run, what comes once would cost every start more than all the rest
    fit = lp.FitConfig(
        max_iterations=iterations,
        batch_size=4,
        segment_length=30,
        n_samples=2,
        validate_every=4 if long else 1,
        patience=1000,
        validation_fraction=0.0,  # saves a score at every start
        gauge_at=(iterations * 3 // 8,) if long else (),
        calibrate=long,
    )
    waiting = [kill] if kill.at else []

    def arm(where: str) -> None:
        if waiting and waiting[0].where == where:
            _arm(waiting.pop().at)

    def tell(record) -> None:
        os.pwrite(said, f"{record.iteration:8d}\n".encode(), 0)
        arm("commit")  # after the first one of this process

    finish = RunFolder.finish

    def finished(run, result):
        arm("finish")
        finish(run, result)

    RunFolder.finish = finished
    os.pwrite(said, b"       0\n", 0)
    arm("begin")
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


def run_once(folder: Path, kill: Kill, iterations: int) -> tuple[bool, int]:
    """Run a worker and kill it as planned; whether it was killed, and the last iteration that it told of."""
    said = os.open(folder.parent / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    child = _forked(lambda: worker(folder, kill, said, iterations))
    status = None
    if kill.wait:
        while status is None and (not (told := os.pread(said, 9, 0)) or (kill.where == "training" and not int(told))):
            time.sleep(0.002)
            ended, code = os.waitpid(child, os.WNOHANG)
            status = code if ended else None
        if status is None:
            time.sleep(kill.wait)
            os.kill(child, signal.SIGKILL)  # it may have ended, but was not waited for: the number is still its own
    if status is None:
        status = os.waitpid(child, 0)[1]
    told = int(os.pread(said, 9, 0) or 0)
    os.close(said)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"the worker ended with {code}")
    return code != 0, told


def _forked(work) -> int:
    """A process of its own that does ``work``; what was imported, which takes seconds, need not be imported again.

    A process may be copied while it has a single thread. jax and BLAS start theirs when they first compute, which
    only the copies do.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise SystemExit(f"the study copies its process, which has {threads} threads. Run it in one of its own.")
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def inspect(folder: Path) -> tuple[int, int]:
    """How many files with a name are damaged, and the iteration of the newest commit."""
    from lamperti._errors import RunError
    from lamperti.runs.commits import DamagedCommitError, committed, read_commit
    from lamperti.runs.sealed import read_config

    damaged, newest = 0, 0
    for place in committed(folder / "checkpoints"):
        try:
            newest = max(newest, json.loads(read_commit(place)["state.json"])["iteration"])
        except DamagedCommitError:
            damaged += 1

    def read_history(run: Path) -> list:
        return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]

    checks = {"config.json": read_config, "model.safetensors": final_model, "history.jsonl": read_history}
    for name, check in checks.items():
        if (folder / name).exists():
            try:
                check(folder)
            except (RunError, ValueError, KeyError, OSError):
                damaged += 1
    return damaged, newest


def final_state(folder: Path) -> tuple[bytes, dict]:
    """The last commit of a run, without what the clock says."""
    from lamperti.runs.commits import committed, read_commit

    files = read_commit(committed(folder / "checkpoints")[0])
    return files["state.safetensors"], _timeless(json.loads(files["state.json"]))


def final_model(folder: Path) -> tuple[dict, dict]:
    """The arrays of the model file, as bytes, and its header without what the clock says. Nothing is computed."""
    from safetensors import SafetensorError, safe_open

    from lamperti.io import _checksum

    try:
        with safe_open(folder / "model.safetensors", framework="numpy") as file:
            header, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    if header["sha256"] != _checksum(header["lamperti"], arrays):
        raise ValueError("the checksum does not match")
    plain = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return plain, _timeless(json.loads(header["lamperti"]))


def _timeless(content: dict) -> dict:
    for place in (content, content["history"], content["history"]["records"]):
        for name in _CLOCK:
            place.pop(name, None)
    return content


def study(
    kills: int, seed: int = 0, iterations: int = 400, *, out: Path | None = None, cache: Path | None = None
) -> dict:
    """Kill until there were enough; see the top of this file. To be called before the process computes with jax."""
    counts = _before(out, seed, iterations)
    if counts["kills"] >= kills:
        return counts
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it would start the others when it is imported
    began = time.monotonic() - 60 * counts["minutes"]
    with tempfile.TemporaryDirectory() as place:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache or Path(place) / "cache")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
        import lamperti  # noqa: F401  (here, so that the workers need not)

        reference = Path(place) / "reference"
        run_once(reference, NEVER, iterations)
        expected = final_state(reference), final_model(reference)
        folder, newest = Path(place) / "run", 0
        while counts["kills"] < kills or folder.exists():
            enough = counts["kills"] >= kills
            kill = NEVER if enough else plan(random.Random(f"{seed} {counts['starts']}"))
            killed, told = run_once(folder, kill, iterations)
            before = max(told, newest)
            damaged, newest = inspect(folder)
            counts["starts"] += 1
            counts["kills"] += killed
            counts["where"][kill.where] += killed
            counts["damaged"] += damaged
            counts["lost"] += newest < before
            if (folder / "done").exists():
                counts["runs"] += 1
                counts["differ"] += (final_state(folder), final_model(folder)) != expected
                counts["litter"] += sum(path.name.startswith(".") for path in folder.rglob("*"))
                shutil.rmtree(folder)
                newest = 0
            counts["minutes"] = round((time.monotonic() - began) / 60, 1)
            _keep(out, counts)
            print(json.dumps(counts), file=sys.stderr, flush=True)
    return counts


def _before(out: Path | None, seed: int, iterations: int) -> dict:
    """The counts of the same study as far as it went, or zeros."""
    settings = {"seed": seed, "iterations": iterations}
    if out is not None:
        with suppress(FileNotFoundError):
            counts = json.loads(out.read_text())
            if {name: counts.get(name) for name in settings} == settings:
                return counts
            raise SystemExit(f"{out} holds a study with other settings. Remove it, or choose another file.")
    names = ("starts", "kills", "damaged", "lost", "runs", "differ", "litter")
    where = dict.fromkeys((*_TIMES, *_POINTS, NEVER.where), 0)
    return settings | dict.fromkeys(names, 0) | {"where": where, "minutes": 0.0}


def _keep(out: Path | None, counts: dict) -> None:
    if out is not None:
        from lamperti.data.files import atomic_write

        atomic_write(out, (json.dumps(counts, indent=1) + "\n").encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=400, help="of one run")
    parser.add_argument("--cache", type=Path, help="where compiled programs are kept; a temporary folder if left out")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    counts = study(options.kills, options.seed, options.iterations, out=options.out, cache=options.cache)
    print(json.dumps(counts, indent=1))
    return int(any(counts[name] for name in ("damaged", "lost", "differ", "litter")))


if __name__ == "__main__":
    sys.exit(main())
