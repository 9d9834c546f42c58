"""The learned equation along lines through the middle of the data."""

from matplotlib.figure import Figure

from lamperti._text import literal
from lamperti.data.durations import one as singular
from lamperti.diagnostics.slices import slices
from lamperti.results import FitResult
from lamperti.viz._style import ACCENT, FAINT, LEARNED, REAL, THIRD, left_out, legend, new_figure, tidy

_COLOURS = (LEARNED, ACCENT, THIRD, REAL)
_SHOWN = 4


def drift(result: FitResult) -> Figure:
    """Drift and diffusion ± 2 sd along each latent coordinate, the others at the centre of the data.

    One column a coordinate (the first four); the middle 90 % of the data is between the dotted lines.
    """
    found = slices(result)[:_SHOWN]
    dim = result.model.latent_dim
    per = f" per {literal(singular(result.step_unit))}" if result.step_unit else ""
    figure = new_figure(1.2 + 3.4 * len(found), 5.4)
    panels = figure.subplots(2, len(found), squeeze=False, sharex="col", sharey="row")
    for k, one in enumerate(found):
        upper, lower = panels[:, k]
        rows = ((upper, one.drift, one.drift_sd), (lower, one.diffusion, one.diffusion_sd))
        for axes, mean, sd in rows:
            for d in range(min(mean.shape[1], _SHOWN)):
                colour = _COLOURS[d]
                axes.fill_between(
                    one.x, mean[:, d] - 2 * sd[:, d], mean[:, d] + 2 * sd[:, d], color=colour, alpha=0.18, lw=0
                )
                axes.plot(one.x, mean[:, d], color=colour, lw=1.3, label=f"$x_{d + 1}$")
            for end in (one.low, one.high):
                axes.axvline(end, color=FAINT, lw=0.8, ls=":")
        upper.axhline(0.0, color=FAINT, lw=0.6)
        lower.set_ylim(bottom=0.0)
        tidy(upper, title=f"Along $x_{one.axis + 1}$", y=f"drift{per}" if k == 0 else "")
        tidy(lower, x=f"$x_{one.axis + 1}$", y=f"diffusion{per}" if k == 0 else "")
    legend(panels[0][0])
    if dim > _SHOWN:
        figure.suptitle(f"Drift and diffusion{left_out(_SHOWN, dim)}", x=0.01, ha="left", fontsize=12)
    return figure
