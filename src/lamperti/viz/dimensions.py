"""Error against the number of latent coordinates: the curve that the dimension was chosen from."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from lamperti._errors import ConfigError
from lamperti._text import literal
from lamperti.data.dimensions import DimensionCurve
from lamperti.viz._style import ACCENT, LEARNED, legend, new_figure, tidy

_LETTERS = 15  # an inch, of a caption


def dimensions(choice: DimensionCurve | None) -> Figure:
    """Error of cross-validated predictions ± standard error by number of latent coordinates, and the one that was
    taken, with the reason below."""
    if choice is None:
        raise ConfigError("it is not known how the latent dimension was chosen: the model is of an older format.")
    if not choice.compared:
        raise ConfigError(f"there is no curve to draw. {choice.reason}")
    figure = new_figure(6.6, 4.4)
    draw_curve(figure.subplots(), choice)
    caption(figure, choice.reason, 6.6)
    return figure


def draw_curve(axes: Axes, choice: DimensionCurve) -> None:
    """The curve in a panel; there must be one."""
    tried, errors, ses = zip(*choice.curve, strict=True)
    look = {"fmt": "o-", "color": LEARNED, "lw": 1.3, "ms": 4, "capsize": 3}
    bars = axes.errorbar(tried, errors, ses, label="error ± standard error", **look)
    taken = errors[tried.index(choice.dimension)]
    look = {"ms": 12, "mew": 1.8, "color": ACCENT, "fillstyle": "none"}
    (ring,) = axes.plot([choice.dimension], [taken], "o", label=f"taken ({choice.dimension})", **look)
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.margins(x=0.06, y=0.12)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    tidy(axes, title="How many coordinates?", x="latent coordinates", y="error (sds of the data)")
    legend(axes, handles=[bars, ring], labelspacing=0.8)


def caption(figure: Figure, text: str, width: float) -> None:
    """Text below a figure of this width (inches)."""
    figure.supxlabel(wrapped(text, width), x=0.01, ha="left", fontsize=8.5)


def wrapped(text: str, width: float) -> str:
    """Foreign text in lines of so many inches."""
    return textwrap.fill(literal(text), int(_LETTERS * width))
