"""How far a fit is, on stderr: one live line in a terminal or a notebook, a plain line a report elsewhere.

What is written counts the whole job: training, and the fits to the likelihood and to forecasts after it.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from lamperti._errors import ConfigError
from lamperti.config import FitConfig
from lamperti.train.history import Record

# Of training's time, what the fits after it usually take on top.
_REFINEMENT = 0.8
_LINE = 118  # characters of a notebook's line

P = ParamSpec("P")
R = TypeVar("R")

Showing = Any
"""None (a line where someone sees it), True (always), False (never), or a function of the history's records."""


class ProgressLine:
    """Used as a context; called with each record of the history. ``refines``: a likelihood fit follows training."""

    def __init__(self, *, quiet: bool = False, refines: bool = True) -> None:
        from rich.console import Console  # which only those wait for who see the line
        from rich.live import Live

        self.console = Console(stderr=True, highlight=False, markup=False, quiet=quiet, force_jupyter=False)
        self.in_notebook = in_notebook() and not quiet
        self.live_in_terminal = self.console.is_terminal and not quiet and not self.in_notebook
        self.refines = refines
        self.latest: Record | None = None
        self.after = ""  # what goes on before or after training
        self.best = -float("inf")
        self.began = self.reported = time.monotonic()
        self.live = Live(get_renderable=self._line, console=self.console, refresh_per_second=2, transient=True)

    def __enter__(self) -> "ProgressLine":
        if self.live_in_terminal:
            self.live.start()
        self._rewrite()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.live.stop()
        if self.in_notebook:
            sys.stderr.write("\r" + " " * _LINE + "\r")

    def __call__(self, record: Record) -> None:
        self.latest, self.reported, self.after = record, time.monotonic(), ""
        self.best = max(self.best, -float("inf") if record.validation is None else record.validation)
        if not self._rewrite():
            self.console.print(self._describe(record, self._left(), terms=True), soft_wrap=True)

    def stage(self, what: str) -> None:
        """Say what goes on before or after training."""
        self.after, self.reported = what, time.monotonic()
        if not self._rewrite():
            self.console.print(what)

    def tell(self, what: str) -> None:
        """Say something that stays, above the line."""
        if self.in_notebook:
            sys.stderr.write("\r" + what.ljust(_LINE) + "\n")
        else:
            self.console.print(what, soft_wrap=not self.live_in_terminal)
        self._rewrite()

    def _rewrite(self) -> bool:
        """Whether the line is live, and so needs no new one; a notebook's is written over here."""
        if self.in_notebook:
            sys.stderr.write("\r" + self._line()[:_LINE].ljust(_LINE))
            sys.stderr.flush()
        return self.in_notebook or self.console.is_terminal

    def _line(self) -> str:
        since = time.monotonic() - self.reported
        if self.after:
            left = f", left about {clock(self._left())}" if self.latest is not None else ", then training"
            return f"{self.after} {clock(since)}{left}"
        if self.latest is None:
            return f"compiling (once for each new size) {clock(time.monotonic() - self.began)}"
        return self._describe(self.latest, self._left(), terms=False)

    def _left(self) -> float:
        """Seconds of training and of what follows it."""
        r, since = self.latest, time.monotonic() - self.reported
        if r is None:
            return 0.0
        refinement = _REFINEMENT * (r.seconds + r.eta_seconds) if self.refines else 0.0
        return (refinement if self.after else r.eta_seconds + refinement) - since

    def _describe(self, r: Record, left: float, *, terms: bool) -> str:
        parts = (
            f" (emission {r.emission:.3f}, initial {r.initial:.3f}, transition {r.transition:.3f}, "
            f"entropy {r.entropy:.3f}, KL {r.kl:.3f})"
        )
        score = "" if r.validation is None else f"  validation {r.validation:.4f} (best {self.best:.4f})"
        refused = f"  refused {r.refused}" if r.refused else ""
        bound = f"ELBO {r.elbo:.4f}{parts if terms else ''}"
        return f"iteration {r.iteration}  {bound}{score}{refused}  left {clock(left)}"


def shows_progress(function: Callable[P, R]) -> Callable[P, R]:
    """For functions that train: what they are given as ``progress`` (`Showing`) becomes a function of records, or
    None."""

    @functools.wraps(function)
    def showing(*args: P.args, **options: P.kwargs) -> R:
        given: Any = options.pop("progress", None)
        configs = [one for one in (*args, *options.values()) if isinstance(one, FitConfig)]
        with _line_for(given, refines=all(config.calibrate for config in configs)) as progress:
            options["progress"] = progress
            return function(*args, **options)

    return showing


@contextmanager
def _line_for(given: Any, *, refines: bool) -> Iterator[Any]:
    if not (given is None or isinstance(given, bool) or callable(given)):
        raise ConfigError(f"progress must be True, False or a function of history records; got {given!r}.")
    shown = given is True or (given is None and (in_notebook() or (sys.stderr is not None and sys.stderr.isatty())))
    if not shown:
        yield None if isinstance(given, bool) else given
        return
    with ProgressLine(refines=refines) as line:
        yield line


def in_notebook() -> bool:
    """Whether this runs in a notebook, whose cells show what is written to stderr."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def clock(seconds: float) -> str:
    """Minutes and seconds, after an hour hours too."""
    whole = max(round(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
