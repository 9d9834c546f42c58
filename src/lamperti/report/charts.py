"""Figures of the choice of the dimension, training, forecasts, free-running paths and residuals."""

import numpy as np
from scipy import stats

from lamperti.data.dates import DATES
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.durations import one as singular
from lamperti.diagnostics.held_out import ForecastCheck
from lamperti.diagnostics.long_run import Likeness
from lamperti.diagnostics.whiteness import Whiteness
from lamperti.report._spec import (
    ACCENT,
    COLOURS,
    FAINT,
    LEARNED,
    REAL,
    THIRD,
    Spec,
    axis,
    band,
    dots,
    heading,
    layout,
    line,
    moments,
    numbers,
    panels,
    shaded,
    text,
    with_unit,
)
from lamperti.train.history import History

_BANDS = ((0.95, 0.14), (0.8, 0.2), (0.5, 0.3))
_BINS = 10
_QUANTILES = 200
_MAXIMA = 600
_SHOWN = 1000  # samples of a trace


def dimensions(choice: DimensionCurve) -> Spec:
    """Error by number of latent coordinates, with standard errors, and the one that was taken; there must be others."""
    tried, errors, ses = zip(*choice.curve, strict=True)
    bars = {"type": "data", "array": numbers(ses), "color": LEARNED, "thickness": 1.5, "width": 4}
    taken = errors[tried.index(choice.dimension)]
    ring = {"symbol": "circle-open", "line": {"width": 2.5}}
    more = {"mode": "lines+markers", "marker": {"size": 7}, "error_y": bars}
    traces = [
        line(list(tried), numbers(errors), "error ± standard error", LEARNED, **more),
        dots([choice.dimension], numbers([taken]), f"taken ({choice.dimension})", ACCENT, 16, marker=ring),
    ]
    look = layout(xaxis=axis("latent coordinates", dtick=1), yaxis=axis("error (sds of the data)"))
    return Spec("dimensions", text(choice.reason), traces, look, 300)


def training(history: History) -> Spec:
    """The bound with its validation score, and its terms."""
    records = history.records
    x = [r.iteration for r in records]
    left, right = panels(2, 0.1)
    terms = {
        "emission": (LEARNED, [r.emission for r in records]),
        "transition + entropy": (ACCENT, [r.transition + r.entropy for r in records]),
        "initial": (FAINT, [r.initial for r in records]),
        "− KL": (THIRD, [-r.kl for r in records]),
    }
    scores = [np.nan if r.validation is None else r.validation for r in records]
    traces = [
        line(x, numbers([r.elbo for r in records]), "bound (training batches)", LEARNED),
        line(x, numbers(scores), "validation score", ACCENT, line={"width": 2}),
    ]
    for name, (colour, values) in terms.items():
        traces.append(line(x, numbers(values), name, colour, xaxis="x2", yaxis="y2", legend="legend2"))
    early = int(0.05 * len(records))  # whose size must not stretch the axis
    settled = np.array([*(r.elbo for r in records[early:]), *scores[early:]])
    settled = settled[np.isfinite(settled)]
    low, high = np.quantile(settled, [0.02, 1.0]) if settled.size else (0.0, 1.0)
    reach = max(high - low, 1e-3)
    side = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "font": {"size": 11}}
    look = layout(
        xaxis=axis("iteration", domain=left),
        yaxis=axis("nats a transition", range=[low - 0.15 * reach, high + 0.1 * reach]),
        xaxis2=axis("iteration", domain=right, anchor="y2"),
        yaxis2=axis("", anchor="x2"),
        legend={**side, "x": 0},
        legend2={**side, "x": right[0]},
    )
    if history.best_iteration:
        kept = history.best_iteration
        look["shapes"] = [
            {"type": "line", "x0": kept, "x1": kept, "y0": 0, "y1": 1, "yref": "y domain", "line": {"dash": "dot"}}
        ]
    caption = (
        "Left: the bound per transition on training batches, and the score of held-out data by which the kept state "
        "(dotted line) was chosen. Right: the terms of the bound."
    )
    return Spec("training", caption, traces, look)


def fans(check: ForecastCheck) -> list[Spec]:
    """Forecasts from three origins beside what happened, a figure a channel."""
    return [_fan(check, p) for p in range(min(len(check.names), len(COLOURS)))]


def _fan(check: ForecastCheck, p: int) -> Spec:
    traces, axes, shapes = [], {}, []
    for k, (fan, domain) in enumerate(zip(check.fans, panels(len(check.fans)), strict=True)):
        number, first = k + 1 if k else "", k == 0
        at = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        unit = fan.context.time_unit
        shown = fan.context[-min(fan.context.length, 2 * check.horizons + 10) :]
        t = moments(fan.forecast.times, unit)
        for level, opacity in _BANDS:
            low, high = fan.forecast.interval(level)
            name = f"{level:.0%} interval" if first else ""
            traces.append(band(t, numbers(low[:, p]), numbers(high[:, p]), name, LEARNED, opacity, **at))
        traces += [
            line(t, numbers(fan.forecast.quantile(0.5)[:, p]), "median" if first else "", LEARNED, **at),
            line(
                moments(shown.times, unit),
                numbers(shown.values[:, p]),
                "data before" if first else "",
                REAL,
                line={"width": 1},
                **at,
            ),
            dots(
                moments(fan.truth.times, unit),
                numbers(fan.truth.values[:, p]),
                "what followed" if first else "",
                ACCENT,
                5,
                **at,
            ),
        ]
        axes[f"xaxis{number}"] = axis(
            with_unit("time", "UTC" if unit == DATES else unit), domain=domain, anchor=at["yaxis"]
        )
        axes[f"yaxis{number}"] = axis(text(check.names[p]) if first else "", anchor=at["xaxis"])
        if fan.trained_until is not None and fan.trained_until > shown.times[0]:
            ends = moments(np.array([shown.times[0], min(fan.trained_until, shown.times[-1])]), unit)
            shapes.append(shaded(*ends, **at))
    caption = f"Forecasts of {text(check.names[p])} from {len(check.fans)} origins in data that training has not seen."
    caption += " Shaded: data that it was trained on." if shapes else ""
    return Spec(f"fan-{p + 1}", caption, traces, layout(**axes, shapes=shapes), 320)


def calibration(check: ForecastCheck) -> Spec:
    """CRPS beside simple forecasts, coverage by horizon, and the PIT."""
    one, two, three = panels(3, 0.09)
    ahead = numbers(check.step * np.arange(1, check.horizons + 1))
    traces = []
    # Channels have units of their own: each is divided by its climatology before they are averaged.
    for name, score, colour in (("model", check.crps, LEARNED), ("persistence", check.persistence, FAINT)):
        traces.append(line(ahead, numbers(np.mean(score / check.climatology, axis=1)), name, colour))
    for (level, found), colour in zip(check.coverage.items(), COLOURS, strict=False):
        more = {"xaxis": "x2", "yaxis": "y2"}
        traces.append(line(ahead, numbers(np.mean(found, axis=1)), f"{level:.0%} interval", colour, **more))
        traces.append(line([ahead[0], ahead[-1]], [level, level], "", colour, line={"dash": "dot", "width": 1}, **more))
    edges = np.linspace(0, 1, _BINS + 1)
    counts, _ = np.histogram(check.pit[np.isfinite(check.pit)], edges, density=True)
    traces.append(
        {
            "type": "bar",
            "x": numbers((edges[1:] + edges[:-1]) / 2),
            "y": numbers(counts),
            "width": 1 / _BINS,
            "marker": {"color": LEARNED, "opacity": 0.7},
            "showlegend": False,
            "xaxis": "x3",
            "yaxis": "y3",
        }
    )
    traces.append(line([0, 1], [1, 1], "", REAL, line={"dash": "dot", "width": 1}, xaxis="x3", yaxis="y3"))
    ahead_title = with_unit("time ahead", check.time_unit)
    look = layout(
        xaxis=axis(ahead_title, domain=one),
        yaxis=axis("", rangemode="tozero"),
        xaxis2=axis(ahead_title, domain=two, anchor="y2"),
        yaxis2=axis("", range=[0, 1.04], anchor="x2"),
        xaxis3=axis("where in the forecast the truth fell", domain=three, anchor="y3"),
        yaxis3=axis("", rangemode="tozero", anchor="x3"),
        annotations=[
            heading("CRPS / climatology's", one[0]),
            heading("share inside the interval", two[0]),
            heading("PIT (flat is calibrated)", three[0]),
        ],
        legend={"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top"},
        margin={"l": 50, "r": 16, "t": 30, "b": 80},
    )
    caption = (
        f"Left: the score of forecasts (lower is better) over that of the long-run distribution. Middle: coverage of "
        f"intervals; dotted lines are what it should be. Right: the PIT. All over {check.origins} origins, which "
        "overlap, so that ragged curves are to be expected."
    )
    return Spec("calibration", caption, traces, look)


def free_run(one: Likeness, number: int, unit: str = "") -> list[Spec]:
    """One channel of the real system and of the model left to itself; ``unit``: of time."""
    left, right = panels(2)
    t = numbers(one.step * np.arange(min(one.real.shape[1], _SHOWN)))
    y = axis(text(one.channel), range=_limits(one.real))
    traces = [
        line(t, numbers(one.real[0][:_SHOWN]), "real", REAL, line={"width": 1}),
        line(t, numbers(one.model[0][:_SHOWN]), "model", LEARNED, line={"width": 1}, xaxis="x2", yaxis="y2"),
    ]
    look = layout(
        xaxis=axis(with_unit("time", unit), domain=left),
        yaxis=y,
        xaxis2=axis(with_unit("time", unit), domain=right, anchor="y2"),
        yaxis2=y | {"anchor": "x2", "title": {"text": ""}},
    )
    name = text(one.channel)
    courses = Spec(f"free-run-{number}", f"{name}: a real stretch, and the model running freely.", traces, look, 260)
    return [courses, _statistics(one, number, singular(unit) or "unit of time")]


def _statistics(one: Likeness, number: int, per: str) -> Spec:
    first, second, third = panels(3, 0.09)
    low, high = _limits(one.real)
    edges = np.linspace(low, high, 41)
    middle = numbers((edges[1:] + edges[:-1]) / 2)
    traces = []
    groups = (
        ("real", REAL, one.real, one.real_spectrum, one.real_maxima),
        ("model", LEARNED, one.model, one.model_spectrum, one.model_maxima),
    )
    for name, colour, values, spectrum, maxima in groups:
        finite = values[np.isfinite(values)]
        counts = np.histogram(finite, edges)[0] / max(finite.size, 1) / (edges[1] - edges[0])
        traces += [
            line(middle, numbers(counts), name, colour, line={"shape": "hvh"}),
            line(numbers(one.frequency[1:]), numbers(spectrum[1:]), "", colour, xaxis="x2", yaxis="y2"),
            dots(
                numbers(maxima[:_MAXIMA, 0]),
                numbers(maxima[:_MAXIMA, 1]),
                "",
                colour,
                4,
                marker={"opacity": 0.7},
                xaxis="x3",
                yaxis="y3",
            ),
        ]
    look = layout(
        xaxis=axis(text(one.channel), domain=first),
        yaxis=axis("", rangemode="tozero"),
        xaxis2=axis(f"cycles per {text(per)}", domain=second, anchor="y2"),
        yaxis2=axis("", type="log", anchor="x2", exponentformat="power", dtick=1),
        xaxis3=axis("a maximum", domain=third, anchor="y3"),
        yaxis3=axis("the next one", anchor="x3"),
        annotations=[
            heading("density of values", first[0]),
            heading("power spectrum", second[0]),
            heading("return map of maxima", third[0]),
        ],
        legend={"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
        margin={"l": 50, "r": 16, "t": 30, "b": 76},
    )
    caption = "Long-run statistics of the real data (black) and of free-running paths (blue)."
    return Spec(f"statistics-{number}", caption, traces, look)


def residuals(name: str, what: str, group: tuple[Whiteness, ...]) -> Spec:
    """Autocorrelation and normal quantiles of standardised residuals."""
    left, right = panels(2, 0.1)
    shown = group[: len(COLOURS)]
    longest = max(len(w.autocorrelation) for w in shown)
    bound = shown[0].bound
    traces = [band([0.5, longest + 0.5], [-bound, -bound], [bound, bound], "", "#888888", 0.2)]
    for one, colour in zip(shown, COLOURS, strict=False):
        lags = list(range(1, len(one.autocorrelation) + 1))
        traces.append(line(lags, numbers(one.autocorrelation), text(one.name), colour, mode="lines+markers"))
        values = np.sort(one.values)
        share = (np.arange(len(values)) + 0.5) / len(values)
        at = np.unique(np.linspace(0, len(values) - 1, _QUANTILES).round().astype(int))
        traces.append(
            dots(numbers(stats.norm.ppf(share[at])), numbers(values[at]), "", colour, 4, xaxis="x2", yaxis="y2")
        )
    traces.append(line([-3.5, 3.5], [-3.5, 3.5], "", FAINT, line={"width": 1}, xaxis="x2", yaxis="y2"))
    look = layout(
        xaxis=axis("lag (samples)", domain=left),
        yaxis=axis("autocorrelation"),
        xaxis2=axis("normal quantile", domain=right, anchor="y2"),
        yaxis2=axis("residual", anchor="x2"),
    )
    caption = f"{what} Left: autocorrelation, within the grey band for white noise. Right: on the line where normal."
    return Spec(name, caption, traces, look, 300)


def _limits(real: np.ndarray) -> list[float]:
    low, high = float(real.min()), float(real.max())
    return [low - 0.15 * (high - low), high + 0.15 * (high - low)]
