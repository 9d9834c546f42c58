"""The tutorial's commands, in its order, in an empty folder."""

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd

from lamperti.cli import main

DOCS = Path(__file__).parents[1] / "docs"
SMALL = "--max-iterations 3 --n-inducing 8 --batch-size 4 --segment-length 30"


def commands() -> list[list[str]]:
    text = (DOCS / "tutorial-cli.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.S)
    lines = [line.removeprefix("$ lamperti ") for block in blocks for line in block.splitlines()]
    return [shlex.split(f"{line} {SMALL}" if line.startswith("fit ") else line) for line in lines]


def test_the_tutorial_runs_as_printed(tmp_path, monkeypatch, capsys):
    shutil.copy(DOCS / "examples" / "membrane.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in commands():
        assert main(command) == 0, (command, capsys.readouterr().err)
        said[command[0]] = capsys.readouterr().out
    assert len(said) == 10
    assert "1 of 1470 samples" in said["check"] and "30 samples" in said["check"]
    forecast = pd.read_csv("forecast.csv", parse_dates=["time"])
    last = pd.read_csv("membrane.csv", parse_dates=["time"]).time.iloc[-1]
    assert len(forecast) == 144 and forecast.time[0] - last == pd.Timedelta("10min")
    assert len(pd.read_csv("states.csv")) == 1470 and len(pd.read_csv("paths.csv")) == 4000
    assert "<script" in Path("report.html").read_text(encoding="utf-8")
