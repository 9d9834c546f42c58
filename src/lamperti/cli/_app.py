"""The application: its commands, and how whatever goes wrong is told in one sentence.

Exit codes   0 done   1 data or a file cannot be used   2 wrong option or command   3 training stopped with a diagnosis
             130 Ctrl-C, 143 SIGTERM (what was learned is kept)
"""

import sys
import traceback
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError, MissingArgumentError

import lamperti
from lamperti._errors import ConfigError, LampertiError, LampertiWarning, SeriesError, TrainingError
from lamperti._text import visible
from lamperti.cli._ascii import drawable
from lamperti.cli._say import quietly
from lamperti.cli._source import as_flags
from lamperti.cli._width import wide_enough
from lamperti.cli.bench import bench
from lamperti.cli.check import check
from lamperti.cli.config import config
from lamperti.cli.demo import demo
from lamperti.cli.fit import fit
from lamperti.cli.info import info
from lamperti.cli.report import evaluate, report
from lamperti.cli.runs import export, resume
from lamperti.cli.use import embed, forecast, simulate
from lamperti.train.interrupts import Terminated, termination_raised

app = App(
    name="lamperti",
    help="The state space of a partly observed system, learned as a stochastic differential equation.",
    help_epilogue="With --quiet, only results and errors are told; with --debug, errors come with a traceback.",
    version=lamperti.__version__,
    suppress_keyboard_interrupt=False,
)
for _command in (check, demo, fit, resume, forecast, simulate, embed, evaluate, report, info, export, config):
    app.command(_command)
app.command(bench)
app.register_install_completion_command()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    debug, quiet = "--debug" in tokens, "--quiet" in tokens
    tokens = [token for token in tokens if token not in ("--debug", "--quiet")]
    with (
        warnings.catch_warnings(),
        quietly(quiet),
        drawable(sys.stdout, sys.stderr),
        wide_enough(),
        termination_raised(),
    ):
        warnings.showwarning = _show_warning
        try:
            return app(tokens, exit_on_error=False, print_error=False, result_action="return_value") or 0
        except (LampertiError, CycloptsError, OSError) as error:
            return _explain(error, _exit_code(error), debug)
        except KeyboardInterrupt as error:
            return _explain(error, 130, debug)
        except Terminated as error:
            return _explain(error, 143, debug)
        except Exception as error:  # a fault of ours: still one sentence, and the way to tell us of it
            return _explain(error, 1, debug)


def _exit_code(error: Exception) -> int:
    if isinstance(error, TrainingError):
        return 3
    return 2 if isinstance(error, ConfigError | CycloptsError) else 1


def _explain(error: BaseException, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | Terminated):
        message = str(error) or "interrupted; nothing was written."
    elif isinstance(error, LampertiError | CycloptsError | OSError):
        message = str(error)
    else:
        message = f"unexpected {type(error).__name__}: {error}. Run it again with --debug, and report what it says."
    if isinstance(error, MissingArgumentError) and error.argument is not None and error.keyword is None:
        command = " ".join(error.command_chain or ())
        message = f"{error.argument.name} is required and was not given. See lamperti {command} --help."
    if isinstance(error, SeriesError):
        message = as_flags(message)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename or 'a file'} cannot be used ({error.strerror})."
    print(f"lamperti: {visible(message)}", file=sys.stderr)
    return code


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    ours = issubclass(category, LampertiWarning)
    text = as_flags(str(message)) if ours else str(message)
    print(f"lamperti: {'note' if ours else category.__name__}: {visible(text)}", file=sys.stderr)
