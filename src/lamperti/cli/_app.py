"""The application: its commands, and how whatever goes wrong is told in one sentence.

Exit codes   0 done      1 training failed      2 bad input, option or file      130 Ctrl-C (what was learned is saved)
"""

import sys
import traceback
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import lamperti
from lamperti._errors import LampertiError, LampertiWarning, SeriesError, TrainingError
from lamperti._text import visible
from lamperti.cli._source import as_flags
from lamperti.cli.bench import bench
from lamperti.cli.check import check
from lamperti.cli.demo import demo
from lamperti.cli.fit import fit
from lamperti.cli.use import embed, forecast, info, simulate

app = App(
    name="lamperti",
    help="The state space of a partly observed system, learned as a stochastic differential equation.",
    help_epilogue="With --debug, errors come with a traceback.",
    version=lamperti.__version__,
    suppress_keyboard_interrupt=False,
)
for _command in (check, demo, fit, forecast, simulate, embed, info):
    app.command(_command)
app.command(bench)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return app(tokens, exit_on_error=False, print_error=False, result_action="return_value") or 0
        except (LampertiError, CycloptsError, OSError) as error:
            return _explain(error, 1 if isinstance(error, TrainingError) else 2, debug)
        except KeyboardInterrupt as error:
            return _explain(error, 130, debug)


def _explain(error: BaseException, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    message = "interrupted; nothing was written." if isinstance(error, KeyboardInterrupt) else str(error)
    if isinstance(error, SeriesError):
        message = as_flags(message)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename or 'a file'} cannot be used ({error.strerror})."
    print(f"lamperti: {visible(message)}", file=sys.stderr)
    return code


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    kind = "note" if issubclass(category, LampertiWarning) else category.__name__
    print(f"lamperti: {kind}: {visible(str(message))}", file=sys.stderr)
