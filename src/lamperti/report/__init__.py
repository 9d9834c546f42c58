"""A report on a fitted model: one HTML file with figures, tables and caveats, which needs no network.

`write_report` makes it; `lamperti.diagnostics.diagnose` is what it shows.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lamperti._errors import DependencyError
from lamperti._text import counted
from lamperti.api import embed
from lamperti.data.files import atomic_write
from lamperti.data.series import Series
from lamperti.diagnostics import Diagnostics, Effort, diagnose
from lamperti.report import opening, sections
from lamperti.report._page import GENERATOR, page
from lamperti.results import FitResult

__all__ = ["is_report", "render", "write_report"]

_EMBEDDED = 1000  # samples of the series that is shown in the phase space


def write_report(
    result: FitResult,
    data: Any,
    path: str | os.PathLike,
    *,
    title: str = "",
    origin: Mapping[str, str] | None = None,
    training: Sequence[Series] = (),
    effort: Effort | None = None,
    seed: int = 0,
) -> Diagnostics:
    """Write a report on a fitted model, whole or not at all; returns the diagnostics that it shows.

    **Arguments**

    - `data`: what the model was trained on, or data new to it, as for `lamperti.diagnostics.diagnose`.
    - `path`: the HTML file.
    - `title`: at its top; the channels by default.
    - `training`: the series of the fit, where `data` is new and the model was read from a file.
    - `origin`: facts for those who want to reproduce it, such as the command and the file of the data.

    **Raises** `DependencyError` without plotly, `SeriesError` for data without the model's channels.

    ```python
    from lamperti.report import write_report
    write_report(result, series, "report.html")
    ```
    """
    script = _plotly()
    found = diagnose(result, data, training=training, effort=effort or Effort(), seed=seed)
    atomic_write(path, render(result, found, title=title, origin=origin or {}, script=script).encode())
    return found


def is_report(path: Path) -> bool:
    """Whether a file is a report of ours."""
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(1000)


def render(
    result: FitResult, found: Diagnostics, *, title: str = "", origin: Mapping[str, str] | None = None, script: str = ""
) -> str:
    """The page as text. ``script``: the source of plotly.js; by default the one that comes with plotly."""
    series = max(found.series, key=len)[:_EMBEDDED]
    names = ", ".join(result.names[:4]) + (", …" if len(result.names) > 4 else "")
    samples = f"{len(found.series)} series, {found.samples} samples, {counted(len(result.names), 'channel')}"
    parts = (
        ("summary", "Summary", opening.summary(result, found)),
        ("data", "Data", sections.data(found)),
        ("dimension", "Latent dimension", sections.dimensions(result)),
        ("learning", "Training", sections.training(result)),
        ("space", "Phase space", sections.phase_space(result, embed(result, series), found)),
        ("equation", "Learned equation", sections.equation(result, found)),
        ("forecasts", "Forecasts", sections.forecasts(found.forecasts)),
        ("long-run", "Running freely", sections.long_run(result, found)),
        ("residuals", "Residuals", sections.residuals(found)),
        ("reproduce", "How to reproduce", sections.reproduce(result, origin or {})),
    )
    return page(title or f"Latent dynamics of {names}", samples, parts, script or _plotly())


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise DependencyError("a report needs plotly, which is not installed. pip install plotly") from None
    return get_plotlyjs()
