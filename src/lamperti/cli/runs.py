"""Commands on runs: ``lamperti resume`` and ``lamperti export``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lamperti.api import resume as resume_run
from lamperti.cli._output import check_output_file
from lamperti.cli._remembered import recording
from lamperti.cli._run import conclude, interruptible
from lamperti.cli._say import is_quiet, say
from lamperti.cli._source import Source
from lamperti.io import load, save
from lamperti.progress import ProgressLine

Run = Annotated[Path, Parameter(name="RUN")]
_DEFAULT_SOURCE = Source()


def resume(
    run: Run,
    data: Annotated[Path | None, Parameter(name="DATA")] = None,
    /,
    *,
    source: Source = _DEFAULT_SOURCE,
    figures: bool = True,
    json: bool = False,
) -> int:
    """Go on with a run that was interrupted, from its last commit, as if it had never stopped.

    Args:
        run: folder of the run
        data: file of data, if it is no longer where it was; it is read as before but for the options given
        figures: draw phase space, a forecast, drift, training and the choice of the dimension when done
        json: print one JSON object when done
    """
    as_before = data is None and source == _DEFAULT_SOURCE
    series = None if as_before else recording(run, data, source).read()
    with interruptible(run), ProgressLine(quiet=is_quiet()) as progress:
        result = resume_run(run, series, progress=progress)
    return conclude(result, run, figures=figures, as_json=json)


def export(run: Run, out: Annotated[Path, Parameter(name="OUT")], /, *, json: bool = False) -> None:
    """Write the model of a run to a single file, checked on the way.

    Args:
        run: folder of a run, or a model file
        out: file to write, as model.safetensors
        json: print one JSON object when done
    """
    check_output_file(out, run)
    result = load(run)
    save(result, out)
    size = out.stat().st_size
    facts = {"out": str(out), "bytes": size, "names": list(result.names)}
    say(f"{out}: {size / 1e3:.0f} kB, channels {', '.join(result.names)}.", facts, as_json=json)
