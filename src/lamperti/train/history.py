"""What happened during training: records at validations, events of the numerical guard, how it ended; as JSON too."""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

Status = Literal["running", "max_iterations", "max_minutes", "patience", "interrupted", "terminated", "closed form"]
STOPPED = ("interrupted", "terminated")  # by a signal: Ctrl-C, SIGTERM
EventKind = Literal["refused step", "shortened step", "rollback", "raised jitter"]

_SHORT_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON itself has no such numbers


@dataclass(frozen=True)
class Record:
    """One line of the history: the bound per transition by terms (nats), and the validation score."""

    iteration: int
    seconds: float
    elbo: float
    emission: float
    initial: float
    transition: float
    entropy: float
    kl: float
    validation: float | None = None
    refused: int = 0
    halvings: int = 0
    eta_seconds: float = 0.0


@dataclass(frozen=True)
class Event:
    """Something that the numerical guard did: how often, from this iteration up to the next record.

    refused step: its result was not finite, so the state stayed. shortened step: the natural step would have left the
    cone; the count is of halvings. rollback: back to the best state, with smaller steps. raised jitter: tenfold.
    """

    iteration: int
    kind: EventKind
    count: int = 1


@dataclass
class History:
    """What happened during training."""

    records: list[Record] = field(default_factory=list)
    status: Status = "running"
    best_iteration: int = 0
    best_score: float = -math.inf
    rollbacks: int = 0
    seconds: float = 0.0
    events: list[Event] = field(default_factory=list)

    def note(self, iteration: int, kind: EventKind, count: int = 1) -> None:
        """Add an event; to one of its kind since the last record, if there is one, so that the list stays short."""
        since = self.records[-1].iteration if self.records else 0
        for i in range(len(self.events) - 1, -1, -1):
            event = self.events[i]
            if event.iteration <= since:
                break
            if event.kind == kind:
                self.events[i] = dataclasses.replace(event, count=event.count + count)
                return
        self.events.append(Event(iteration, kind, count))

    @property
    def kept(self) -> Record | None:
        """The record of the state that was kept, which may score a little less than the best did: of states that
        score alike the latest is kept."""
        return next((r for r in self.records if r.iteration == self.best_iteration), None)

    @property
    def held_out(self) -> bool:
        """Whether scores are of data that was held out; where none was, they are the training bound itself."""
        return any(r.validation not in (None, r.elbo) for r in self.records if math.isfinite(r.elbo))

    def what_was_kept(self) -> str:
        """A phrase on the state that was kept, with its own score."""
        if not self.records:
            return "not validated"
        if self.kept is None or self.kept.validation is None:
            return f"iteration {self.best_iteration} kept"
        score = "validation" if self.held_out else "training bound (nothing was held out)"
        text = f"iteration {self.best_iteration} kept, {score} {self.kept.validation:.4f}"
        best = max((r for r in self.records if r.validation is not None), key=_score)
        if best.validation == self.kept.validation:
            return text
        return f"{text} (best {best.validation:.4f} at {best.iteration})"

    def counts(self) -> dict[EventKind, int]:
        """How often each kind of event happened."""
        total: Counter[EventKind] = Counter()
        for event in self.events:
            total[event.kind] += event.count
        return dict(total)


_CHECKED = TypeAdapter(History)


def _score(record: Record) -> float:
    return record.validation if record.validation is not None and math.isfinite(record.validation) else -math.inf


def pack_history(history: History) -> dict[str, Any]:
    """A history as JSON; records and events by column, so that no name is written twice."""
    plain = {
        f.name: pack(getattr(history, f.name))
        for f in dataclasses.fields(history)
        if f.name not in ("records", "events")
    }
    return {**plain, "records": _columns(Record, history.records), "events": _columns(Event, history.events)}


def unpack_history(content: Mapping[str, Any]) -> History:
    plain = {name: unpack(value) for name, value in content.items() if name not in ("records", "events")}
    records = [Record(**row) for row in _rows(content["records"])]
    return History(records=records, events=[Event(**row) for row in _rows(content["events"])], **plain)


def checked_history(content: Any) -> History:
    """A history from a file, with every number and word of its type: what shows it relies on that. Raises ValueError,
    TypeError, LookupError or AttributeError."""
    return _CHECKED.validate_json(json.dumps(dataclasses.asdict(unpack_history(content))), strict=True)


def pack(value: Any) -> Any:
    """A number as JSON has it: what is not finite becomes a word."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def unpack(value: Any) -> Any:
    return _SHORT_FLOATS.get(value, value) if isinstance(value, str) else value


def _columns(cls: type, rows: list[Any]) -> dict[str, list[Any]]:
    return {f.name: [pack(getattr(row, f.name)) for row in rows] for f in dataclasses.fields(cls)}


def _rows(columns: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        {name: unpack(value) for name, value in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]
