"""A fitted model as a table of text, in the manner of statistics packages."""

import textwrap
from dataclasses import dataclass

import numpy as np

from lamperti._shown import html_text
from lamperti._text import visible
from lamperti.data.durations import in_words, one
from lamperti.data.stationarity import assess
from lamperti.diagnostics.caveats import of_training
from lamperti.diagnostics.fixed_points import FixedPoint, fixed_points
from lamperti.diagnostics.verdict import Verdict
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.results import FitResult
from lamperti.train.history import EventKind, History, Status

_WIDTH = 92
_STARTS = 32
_ENDS: dict[Status, str] = {
    "running": "not finished",
    "patience": "stopped by patience",
    "closed form": "none: a linear model in closed form",
    "max_iterations": "all iterations done",
    "max_minutes": "stopped by the clock",
    "interrupted": "interrupted",
    "terminated": "asked to end (SIGTERM)",
}

Rows = list[tuple[str, ...]]


@dataclass(frozen=True, repr=False)
class Summary:
    """Sections of a table. ``str`` gives the text; notebooks and the prompt show it as it is."""

    facts: tuple[tuple[str, str], ...]
    tables: tuple[tuple[tuple[str, ...], ...], ...]
    """Each with its header as the first row."""
    notes: tuple[str, ...]
    verdict: Verdict
    choice: str = ""
    """Of the latent dimension, with the errors that it was chosen by; empty where it is not known."""

    def __str__(self) -> str:
        title = "Latent stochastic differential equation"
        lines = [title.center(_WIDTH).rstrip(), "=" * _WIDTH, *textwrap.wrap(self.verdict.sentence, _WIDTH)]
        rows = self.verdict.short_rows()
        lines += ["", "CRPS in sds of the data, lower is better", *_aligned(tuple(rows))] if rows else []
        lines += ["-" * _WIDTH, *_two_columns(self.facts)]
        lines += ["-" * _WIDTH, *textwrap.wrap(visible(self.choice), _WIDTH)] if self.choice else []
        for table in self.tables:
            lines += ["-" * _WIDTH, *_aligned(table)]
        lines.append("=" * _WIDTH)
        return "\n".join(lines + [f"note: {note}" for note in self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_text(str(self))


def summarise(result: FitResult) -> Summary:
    """What a result holds, with its verdict and the fixed points of its drift."""
    tables = [_channels(result), _coordinates(result)]
    if result.history.records:
        tables.append(_bound(result))
    moving = [c.sentence for c in assess(result.data).channels if not c.stationary] if result.data else []
    points = () if moving else fixed_points(result.drift, result.states, result.step, n_starts=_STARTS)
    if points:
        tables.append(_points(points))
    chosen_blindly = result.history.records and not result.history.held_out
    notes = [f"Diffusion, drift and eigenvalues are per {one(result.step_unit)}."] if result.step_unit else []
    notes += ["Nothing was held out: states were chosen by the training bound."] if chosen_blindly else []
    notes += [caveat.text for caveat in of_training(result.history, calibrates=result.config.fit.calibrate)]
    notes += [*result.verdict.advice, *result.verdict.notes]
    notes += [f"{' '.join(moving)} Fixed points are therefore not listed."] if moving else []
    choice = "" if result.dimensions is None else result.dimensions.reason
    return Summary(tuple(_facts(result)), tuple(tuple(t) for t in tables), tuple(notes), result.verdict, choice)


def how_it_ended(status: Status) -> str:
    """The status of a history in words."""
    return _ENDS[status]


def guard_events(history: History) -> dict[EventKind, tuple[int, int]]:
    """What the numerical guard had to do: of each kind of event how many, and the iteration of the first.

    From the events themselves: records end before training does, and an early stop may have none."""
    first = {event.kind: event.iteration for event in reversed(history.events)}
    return {kind: (count, first[kind]) for kind, count in history.counts().items()}


def _facts(result: FitResult) -> list[tuple[str, str]]:
    from lamperti import __version__  # not yet known when this module is imported

    m, fit, h = result.config.model, result.config.fit, result.history
    dynamics = result.model.dynamics
    data = f"{len(result.data)}, {sum(s.length for s in result.data)} samples" if result.data else "not kept"
    last = h.records[-1].iteration if h.records else 0
    return [
        ("Series:", data),
        ("Channels:", str(len(result.names))),
        ("Time step:", in_words(result.step, result.step_unit)),
        ("Latent dimension:", str(result.model.latent_dim)),
        ("Kernel:", f"{m.kernel}, {'linear' if m.linear_mean else 'zero'} mean"),
        ("Inducing inputs:", str(dynamics.Z.shape[0])),
        ("Encoder:", f"{m.encoder}, window {m.window}"),
        ("Smoother:", m.smoother),
        ("Iterations:", f"{last} in {h.seconds:.0f} s"),
        ("Training:", how_it_ended(h.status)),
        ("Kept:", f"iteration {h.best_iteration}" if h.records else "–"),
        ("Its training bound:" if h.records and not h.held_out else "Its validation score:", _kept_score(h)),
        ("Refused steps:", str(guard_events(h).get("refused step", (0, 0))[0])),
        ("Roll-backs:", str(h.rollbacks)),
        ("Seed:", str(fit.seed)),
        ("Version:", f"lamperti {__version__}"),
    ]


def _kept_score(history: History) -> str:
    if history.kept is None or history.kept.validation is None:
        return "–"
    own, best = history.kept.validation, history.best_score
    return f"{own:.4f} (best {best:.4f})" if best > own else f"{own:.4f}"


def _channels(result: FitResult) -> Rows:
    rows: Rows = [("channel", "mean", "sd", "noise sd", "noise share")]
    emission, scaler = result.model.emission, result.scaler
    variance = (
        np.asarray(emission.noise) if isinstance(emission, LinearGaussian) else np.full(len(result.names), np.nan)
    )
    for p, name in enumerate(result.names):
        noise = scaler.unscale_sd(np.sqrt(variance))[p]
        told = f"log {visible(name)}" if any(scaler.logged) and scaler.logged[p] else visible(name)
        rows.append((told, f"{scaler.shift[p]:.4g}", f"{scaler.scale[p]:.4g}", f"{noise:.3g}", f"{variance[p]:.1%}"))
    return rows


def _coordinates(result: FitResult) -> Rows:
    rows: Rows = [("state", "diffusion", "its sd", "rms drift", "sd of drift", "range of the data")]
    g, g_sd = (np.mean(moment, axis=0) for moment in result.diffusion(result.states))
    f, f_sd = result.drift(result.states)
    low, high = np.quantile(result.states, [0.025, 0.975], axis=0)
    for d in range(result.model.latent_dim):
        size, unsure = np.sqrt(np.mean(f[:, d] ** 2)), np.sqrt(np.mean(f_sd[:, d] ** 2))
        reach = f"{low[d]:.3g} to {high[d]:.3g}"
        rows.append((f"x{d + 1}", f"{g[d]:.3g}", f"{g_sd[d]:.2g}", f"{size:.3g}", f"{unsure:.2g}", reach))
    return rows


def _bound(result: FitResult) -> Rows:
    h = result.history
    kept = min(h.records, key=lambda r: abs(r.iteration - h.best_iteration))
    names = ("elbo", "emission", "initial", "transition", "entropy", "kl")
    return [("nats a transition", *names), ("", *(f"{getattr(kept, name):.4f}" for name in names))]


def _points(points: tuple[FixedPoint, ...]) -> Rows:
    rows: Rows = [("fixed point", "kind", "eigenvalues", "uncertainty")]
    for point in points:
        rows.append((place(point), point.kind, rates(point), f"{point.uncertainty:.2f}"))
    return rows


def place(point: FixedPoint) -> str:
    """Where a fixed point is; latent coordinates are of the order of one, so digits beyond the fourth are noise."""
    return "(" + ", ".join(f"{round(x, 4) + 0.0:.3g}" for x in point.x) + ")"


def rates(point: FixedPoint) -> str:
    """The eigenvalues of a fixed point, "–" for those that the sampling is too coarse for."""
    return ", ".join("–" if lost else as_text(z) for z, lost in zip(point.eigenvalues, point.lost, strict=True))


def as_text(z: complex) -> str:
    """A complex number with three digits; a real one without its imaginary part."""
    return f"{z.real:.3g}" if z.imag == 0 else f"{z.real:.3g}{z.imag:+.3g}i"


def _two_columns(facts: tuple[tuple[str, str], ...]) -> list[str]:
    half = -(-len(facts) // 2)
    width = _WIDTH // 2 - 2
    pairs = [f"{key}{value:>{max(width - len(key), 0)}}" for key, value in facts]
    pairs += [""] * (2 * half - len(pairs))
    return [f"{pairs[i]:<{width}}    {pairs[half + i]}".rstrip() for i in range(half)]


def _aligned(table: tuple[tuple[str, ...], ...]) -> list[str]:
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    lines = []
    for row in table:
        first, rest = row[0].ljust(widths[0]), [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("   ".join([first, *rest]).rstrip())
    return lines
