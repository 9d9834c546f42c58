"""The history: events are few, named and counted, and survive as JSON."""

import dataclasses
import json

import numpy as np

from lamperti.runs.lines import history_lines
from lamperti.train.history import Event, History, Record, pack_history, unpack_history
from lamperti.train.loop import diagnosis

RECORD = Record(10, 1.0, -1.5, 0.1, 0.2, 0.3, 0.4, 0.5, validation=None)


def _eventful() -> History:
    history = History()
    for iteration in (3, 4, 7):
        history.note(iteration, "refused step")
        history.note(iteration, "shortened step", 2)
    history.records.append(RECORD)
    history.note(12, "refused step")
    return history


def test_events_between_two_records_are_counted_together():
    assert _eventful().events == [
        Event(3, "refused step", 3),
        Event(3, "shortened step", 6),
        Event(12, "refused step", 1),
    ]
    assert _eventful().counts() == {"refused step": 4, "shortened step": 6}


def test_a_history_survives_as_json():
    history = _eventful()
    history.records.append(dataclasses.replace(RECORD, elbo=-np.inf, validation=0.25))
    assert unpack_history(json.loads(json.dumps(pack_history(history), allow_nan=False))) == history


def test_lines_are_in_order_and_end_with_how_it_ended():
    lines = [json.loads(line) for line in history_lines(_eventful(), end="failed", message="why").splitlines()]
    kinds = ["refused step", "shortened step", "record", "refused step", "end"]
    assert [line["kind"] for line in lines] == kinds
    assert lines[-1] == {"kind": "end", "status": "failed", "message": "why"}


def test_the_diagnosis_tells_what_happened_and_what_to_change():
    history = _eventful()
    assert "No state was ever validated" in diagnosis(history, 20)
    assert "4 × refused step, 6 × shortened step" in diagnosis(history, 20)
    assert "natural_rate" in diagnosis(history, 20) and "natural_rate" not in diagnosis(history, 200)
    history.best_iteration = 10
    assert "(of iteration 10)" in diagnosis(history, 20) and "kernel_rate" in diagnosis(history, 20)
