"""The progress line: live in a terminal, a plain line a report elsewhere. Goes to stderr; results go to stdout."""

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from lamperti.cli._say import is_quiet
from lamperti.train.history import Record


class ProgressLine:
    """Used as a context; called with each record of the history."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, markup=False, quiet=is_quiet())
        self.latest: Record | None = None
        self.after = ""  # what goes on when training is done
        self.best = -float("inf")
        self.began = self.reported = time.monotonic()
        self.live = Live(get_renderable=self._line, console=self.console, refresh_per_second=2, transient=True)

    def __enter__(self) -> "ProgressLine":
        if self.console.is_terminal and not is_quiet():
            self.live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.live.stop()

    def __call__(self, record: Record) -> None:
        self.latest, self.reported, self.after = record, time.monotonic(), ""
        self.best = max(self.best, -float("inf") if record.validation is None else record.validation)
        if not self.console.is_terminal:
            self.console.print(self._describe(record, record.eta_seconds), soft_wrap=True)

    def stage(self, what: str) -> None:
        """Say what goes on before or after training."""
        self.after, self.reported = what, time.monotonic()
        if not self.console.is_terminal:
            self.console.print(what)

    def _line(self) -> Text:
        if self.after:
            return Text(f"{self.after} {clock(time.monotonic() - self.reported)}", style="dim")
        if self.latest is None:
            return Text(f"compiling (once for each new size) {clock(time.monotonic() - self.began)}", style="dim")
        left = self.latest.eta_seconds - (time.monotonic() - self.reported)
        return Text(self._describe(self.latest, left))

    def _describe(self, r: Record, left: float) -> str:
        terms = (
            f"emission {r.emission:.3f}, initial {r.initial:.3f}, transition {r.transition:.3f}, "
            f"entropy {r.entropy:.3f}, KL {r.kl:.3f}"
        )
        score = "" if r.validation is None else f"  validation {r.validation:.4f} (best {self.best:.4f})"
        refused = f"  refused {r.refused}" if r.refused else ""
        return f"iteration {r.iteration}  ELBO {r.elbo:.4f} ({terms}){score}{refused}  left {clock(left)}"


def clock(seconds: float) -> str:
    """Minutes and seconds, after an hour hours too."""
    whole = max(round(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
