"""The course of training."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from lamperti._errors import ConfigError
from lamperti.train.history import History, Record
from lamperti.viz._style import ACCENT, FAINT, LEARNED, THIRD, legend, new_figure, tidy

# Transition and entropy are large and nearly cancel: only their sum can be seen beside the others.
_TERMS: dict[str, tuple[str, Callable[[Record], float]]] = {
    "emission": (LEARNED, lambda r: r.emission),
    "transition + entropy": (ACCENT, lambda r: r.transition + r.entropy),
    "initial": (FAINT, lambda r: r.initial),
    "− KL": (THIRD, lambda r: -r.kl),
}
_EARLY = 0.05  # share of the records whose size does not stretch the axis


def training(history: History) -> Figure:
    """The bound with its validation score, and its terms, over the iterations (nats a transition)."""
    if not history.records:
        raise ConfigError("the history has no records: training ended before its first report.")
    iteration = [r.iteration for r in history.records]
    figure = new_figure(10.0, 3.6)
    left, right = figure.subplots(1, 2)
    elbo = np.array([r.elbo for r in history.records])
    score = np.array([np.nan if r.validation is None else r.validation for r in history.records])
    left.plot(iteration, elbo, color=LEARNED, lw=1.0, label="ELBO (training batches)")
    left.plot(iteration, score, color=ACCENT, lw=1.4, label="validation score")
    if history.best_iteration:
        left.axvline(history.best_iteration, color=FAINT, lw=0.8, ls=":", label=f"kept ({history.best_iteration})")
    settled = np.concatenate([a[int(_EARLY * len(a)) :] for a in (elbo, score)])
    settled = settled[np.isfinite(settled)]
    if settled.size and np.ptp(settled) > 0:
        low, high = np.quantile(settled, [0.02, 1.0])
        left.set_ylim(low - 0.15 * (high - low), high + 0.1 * (high - low))
    tidy(left, title="Bound", x="iteration", y="nats a transition")
    legend(left, loc="lower right")
    for label, (colour, term) in _TERMS.items():
        right.plot(iteration, [term(r) for r in history.records], color=colour, lw=1.2, label=label)
    tidy(right, title="Its terms", x="iteration")
    legend(right, loc="center right")
    return figure
