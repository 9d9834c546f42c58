"""The commit protocol: whatever is refused or cut short, the commits before it are whole."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.refusals import ERRORS, Refusal

from lamperti.runs import commits
from lamperti.runs.commits import KEPT, DamagedCommitError, commit, committed, read_commit, sweep
from lamperti.runs.lock import locked

FILES = {"a": b"first" * 1000, "b": b"second"}


def _calls_of_a_commit(root: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        counter = Refusal(patch, -1, 0)
        commit(root, FILES)
        return counter.calls


def test_what_was_committed_is_read_and_only_the_last_few_are_kept(tmp_path):
    for i in range(KEPT + 2):
        commit(tmp_path, {"n": str(i).encode()})
    assert [read_commit(place)["n"] for place in committed(tmp_path)] == [b"4", b"3", b"2"]
    assert len(list(tmp_path.iterdir())) == KEPT


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_a_refusal_at_any_call_is_raised_and_leaves_every_commit_whole(tmp_path, number):
    for _ in range(KEPT):
        commit(tmp_path, FILES)
    n = _calls_of_a_commit(tmp_path)
    assert n > 10
    for k in range(1, n + 1):
        before = committed(tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            Refusal(patch, k, number)
            with pytest.raises(OSError, match=os.strerror(number)):
                commit(tmp_path, FILES)
        after = committed(tmp_path)
        assert all(read_commit(place) == FILES for place in after)
        # Every old commit is there, or is the one that was to be forgotten after a new one was whole.
        assert set(before) <= set(after) or len(set(after) - set(before)) == 1
        sweep(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted(after)


@pytest.mark.parametrize("damage", ["flip", "cut", "lose", "add", "sums"])
def test_any_damage_to_a_commit_is_noticed(tmp_path, damage):
    place = commit(tmp_path, FILES)
    file = place / "a"
    if damage == "flip":
        content = bytearray(file.read_bytes())
        content[77] ^= 1
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    elif damage == "lose":
        file.unlink()
    elif damage == "add":
        (place / "c").write_bytes(b"")
    else:
        (place / "SHA256SUMS").write_bytes(b"\xff")
    with pytest.raises(DamagedCommitError):
        read_commit(place)


def test_a_lock_is_not_shared_and_a_stale_one_is_taken_over_aloud(tmp_path):
    import lamperti as lp

    refused = pytest.raises(lp.RunError, match=rf"in use by process {os.getpid()} on ")
    with locked(tmp_path / "lock"), refused, locked(tmp_path / "lock"):
        pass
    with locked(tmp_path / "lock"):  # it was let go of
        pass
    (tmp_path / "lock").write_text('{"pid": 1, "host": "other", "since": "2020"}')
    with pytest.warns(lp.LampertiWarning, match="process 1 on other .* stale"), locked(tmp_path / "lock"):
        pass


# A writer that commits numbers for ever. It imports nothing but the protocol: the packages above it are bare here, so
# that a child costs a tenth of a second. With a number as argument it kills itself before (or, negative, after) that
# call of a commit.
CHILD = """
import os, signal, sys, types
for name in ("lamperti", "lamperti.data"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [os.path.join(sys.argv[1], *name.split("."))]
from pathlib import Path
from lamperti.runs.commits import commit, committed, read_commit, sweep
root, at = Path(sys.argv[2]), int(sys.argv[3])
sweep(root)
def guarded(call):
    def wrapped(*args, **options):
        global left
        left -= 1
        if left == 0 and at > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        value = call(*args, **options)
        if left == 0 and at < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return value
    return wrapped
left = abs(at)
found = committed(root)
n = int(read_commit(found[0])["n"]) if found else 0
if at:
    for name in ("open", "write", "fsync", "rename", "mkdir", "close"):
        setattr(os, name, guarded(getattr(os, name)))
while True:
    n += 1
    commit(root, {"n": str(n).encode(), "state": bytes(100_000)})
    os.pwrite(1, f"{n}\\n".encode(), 0)
"""


def _writer(root: Path, at: int) -> subprocess.Popen:
    source = str(Path(commits.__file__).parents[2])
    with open(root.parent / "said", "wb") as said:
        return subprocess.Popen([sys.executable, "-c", CHILD, source, str(root), str(at)], stdout=said)


def test_a_writer_that_is_killed_anywhere_loses_nothing_that_it_committed(tmp_path):
    root = tmp_path / "commits"
    root.mkdir()
    last = 0
    points = [1, -2, 3, -4, 5, 7, -9, 11, 13, -15, 17, 19, -20, 21, -22, 23]  # calls of the first commit, or the second
    for at in [*points, 0, 0]:  # 0: at some time while commits are made
        child = _writer(root, at)
        if at == 0:
            while committed(root)[0].name == f"{last:06d}":
                assert child.poll() is None
            os.kill(child.pid, signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
        said = (tmp_path / "said").read_text().split("\n")[0]
        found = committed(root)
        assert all(len(read_commit(place)) == 2 for place in found)  # none is damaged
        newest = int(read_commit(found[0])["n"]) if found else 0
        assert newest >= max(last, int(said or 0))  # none that was told of is lost
        last = newest
    assert last >= 4
