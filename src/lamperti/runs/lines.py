"""The history as lines of JSON, for people and programs that watch a run."""

import dataclasses
import json

from lamperti.train.history import History, pack


def history_lines(history: History, *, end: str = "", message: str = "") -> str:
    """Records and events in the order of their iterations, a JSON object a line; how it ended, if it did, is last."""
    rows = [{"kind": "record"} | _packed(record) for record in history.records]
    rows += [{"kind": event.kind, "iteration": event.iteration, "count": event.count} for event in history.events]
    rows.sort(key=lambda row: row["iteration"])
    if end:
        rows.append({"kind": "end", "status": end} | ({"message": message} if message else {}))
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def _packed(record) -> dict:
    return {name: pack(value) for name, value in dataclasses.asdict(record).items()}
