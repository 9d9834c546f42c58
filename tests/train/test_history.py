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


def _scored(*scores: float, kept: int) -> History:
    records = [dataclasses.replace(RECORD, iteration=100 * (k + 1), validation=v) for k, v in enumerate(scores)]
    return History(records, best_iteration=kept, best_score=max(scores))


def test_the_score_told_of_the_kept_state_is_its_own():
    tie = _scored(0.1, 0.7109, 0.7073, kept=300)
    assert tie.what_was_kept() == "iteration 300 kept, validation 0.7073 (best 0.7109 at 200)"
    assert _scored(0.1, 0.7109, kept=200).what_was_kept() == "iteration 200 kept, validation 0.7109"
    assert History().what_was_kept() == "not validated"


def test_a_training_bound_is_not_called_a_validation_score():
    bound = _scored(RECORD.elbo, RECORD.elbo, kept=200)
    assert not bound.held_out
    assert bound.what_was_kept() == "iteration 200 kept, training bound (nothing was held out) -1.5000"
