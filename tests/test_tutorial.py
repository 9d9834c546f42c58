"""The tutorial's commands, in its order, in an empty folder."""

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd

from lamperti.cli import main

DOCS = Path(__file__).parents[1] / "docs"
SMALL = "--max-iterations 3 --n-inducing 8 --batch-size 4 --segment-length 30"


def transcript() -> list[tuple[list[str], list[str]]]:
    """Every command, and the lines of its answer that are printed below it."""
    text = (DOCS / "tutorial-cli.md").read_text(encoding="utf-8")
    found: list[tuple[list[str], list[str]]] = []
    for line in "".join(re.findall(r"```console\n(.*?)```", text, flags=re.S)).splitlines():
        command = line.removeprefix("$ lamperti ")
        if command != line:
            found.append((shlex.split(f"{command} {SMALL}" if command.startswith("fit ") else command), []))
        else:
            found[-1][1].append(" ".join(line.split()))
    return found


def test_the_tutorial_runs_as_printed(tmp_path, monkeypatch, capsys):
    shutil.copy(DOCS / "examples" / "membrane.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    said = {}
    for command, shown in transcript():
        assert main(command) == 0, (command, capsys.readouterr().err)
        said[command[0]] = capsys.readouterr().out
        answer = [" ".join(line.split()) for line in said[command[0]].splitlines()]
        assert [line for line in shown if line not in answer] == [], command
    assert len(said) == 10 and sum(bool(shown) for _, shown in transcript()) == 4
    forecast = pd.read_csv("forecast.csv", parse_dates=["time"])
    last = pd.read_csv("membrane.csv", parse_dates=["time"]).time.iloc[-1]
    assert len(forecast) == 144 and forecast.time[0] - last == pd.Timedelta("10min")
    assert len(pd.read_csv("states.csv")) == 1470 and len(pd.read_csv("paths.csv")) == 4000
    assert "<script" in Path("report.html").read_text(encoding="utf-8")
