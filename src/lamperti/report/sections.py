"""The text and tables of a report, section by section."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import get_args

import numpy as np

import lamperti
from lamperti.data.dates import moment
from lamperti.data.durations import one
from lamperti.diagnostics import Diagnostics
from lamperti.diagnostics.claims import ExponentClaim
from lamperti.diagnostics.held_out import LEVELS, ForecastCheck
from lamperti.diagnostics.summary import guard_events, how_it_ended, place, rates
from lamperti.diagnostics.whiteness import Whiteness
from lamperti.report import charts, space
from lamperti.report._page import escape, facts, figure, paragraph, table
from lamperti.report.recordings import recordings
from lamperti.results import Embedding, FitResult
from lamperti.train.history import EventKind

_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
_SERIES = 12
_GAPS = 8
_GUARD: dict[EventKind, str] = {
    "refused step": "Steps refused (not finite)",
    "shortened step": "Natural steps halved",
    "rollback": "Returns to an earlier state",
    "raised jitter": "Jitter raised tenfold",
}
_EXPONENTS: dict[ExponentClaim, str] = {
    "chaotic": "positive: chaos",
    "not chaotic": "negative: no chaos",
    "linear": "that of a linear system",
    "open": "sign open",
    "none": "of this recording, which has no law that stays: nothing is claimed of the system",
}


def data(found: Diagnostics) -> str:
    check = found.check
    ends = [(moment(s.start, check.time_unit), moment(s.end, check.time_unit)) for s in check.series[:_SERIES]]
    rows = [
        ("Series", str(len(check.series))),
        ("Samples", str(found.samples)),
        ("Sampling", str(check.sampling)),
        ("Missing values", str(sum(s.missing for s in check.series))),
    ]
    if len(check.series) == 1:
        rows.append(("From, to", ", ".join(ends[0])))
    text = figure(recordings(found.check.recordings)) + facts(rows)
    text += table(
        ("channel", "unit", "observed", "missing", "mean", "sd", "lowest", "highest"),
        [
            (c.name, c.unit, c.observed, c.missing, f"{c.mean:.4g}", f"{c.sd:.4g}", f"{c.low:.4g}", f"{c.high:.4g}")
            for c in check.channels
        ],
    )
    if len(check.series) > 1:
        listed = enumerate(zip(check.series, ends, strict=False))
        rows = [(s.label or str(k), s.length, *when, s.missing) for k, (s, when) in listed]
        text += table(("series", "samples", "from", "to", "missing"), rows)
        if len(check.series) > len(rows):
            text += paragraph(f"… and {len(check.series) - len(rows)} more.")
    gaps = check.sampling.gaps
    if gaps:
        rows = [(g.series, g.row, *(moment(t, check.time_unit) for t in (g.start, g.end)), g.lacking) for g in gaps]
        header = ("gap in series", "after row", "from", "to", "samples lacking")
        text += "<h3>Gaps</h3>" + table(header, rows[:_GAPS])
        if len(gaps) > _GAPS:
            text += paragraph(f"… and {len(gaps) - _GAPS} more.")
    if check.problems:
        rows = [(p.severity, p.where, p.message) for p in check.problems]
        text += "<h3>What may be wrong with the data</h3>" + table(("severity", "where", "what"), rows, words=True)
    return text + "".join(paragraph(f"Repaired on request: {repair}") for repair in check.repairs)


def dimensions(result: FitResult) -> str:
    """The curve that the latent dimension was chosen from, with the reason; or why there is none."""
    choice = result.dimensions
    if choice is None:
        return paragraph("It is not known how the latent dimension was chosen: the model is of an older format.")
    if not choice.compared:
        return paragraph(choice.reason)
    explained = paragraph(
        "The error is that of regressions of what follows on the coordinates, for data that they were not fitted to: 0 "
        "is perfect, 1 is no better than the mean of the data. Each bar is of one error alone; dimensions are compared "
        "by differences on the same data, which are known better."
    )
    return figure(charts.dimensions(choice)) + explained


def training(result: FitResult) -> str:
    h = result.history
    if h.records:
        text = figure(charts.training(h))
        rows = [
            ("Ended", f"{how_it_ended(h.status)}, after {h.records[-1].iteration} iterations and {h.seconds:.0f} s"),
            ("Kept", f"{h.what_was_kept()}; scores in nats a transition"),
        ]
    else:
        text = paragraph("Training ended before its first report.")
        rows = [("Ended", f"{how_it_ended(h.status)}, before the first validation, after {h.seconds:.0f} s")]
    happened = guard_events(h)
    for kind in get_args(EventKind):
        count, first = happened.get(kind, (0, 0))
        rows.append((_GUARD[kind], f"{count}, first at iteration {first}" if count else "0"))
    return text + "<h3>How it ended, and what the numerical guard did</h3>" + facts(rows)


def phase_space(result: FitResult, embedding: Embedding, found: Diagnostics) -> str:
    path = found.simulation.states[0]
    return "".join(figure(spec) for spec in space.phase_space(result, embedding, path))


def equation(result: FitResult, found: Diagnostics) -> str:
    text = "".join(figure(spec) for spec in space.equation(found.slices, result.step_unit))
    text += "<h3>Fixed points of the mean drift</h3>"
    if found.fixed_points:
        rows = [
            (
                place(p),
                p.kind,
                rates(p),
                f"{p.period:.4g}" if np.isfinite(p.period) else "–",
                f"{p.uncertainty:.2f}",
            )
            for p in found.fixed_points
        ]
        per, period = one(result.step_unit) or "unit of time", f"period {result.step_unit and f'({result.step_unit})'}"
        text += table(("state", "kind", f"eigenvalues (per {per})", period, "sd of the drift / usual"), rows)
        text += paragraph(
            "Only points inside the convex hull of the states that the data went through are listed. Eigenvalues are "
            "those of continuous time; a point is stable when all of their real parts are negative. Where the last "
            "column nears 1, the drift is extrapolated, and the point may not exist."
        )
        if any(p.too_coarse for p in found.fixed_points):
            text += paragraph(
                "The sampling is too coarse for some eigenvalues, which are left out: nearby states pass the point "
                "within one step. Sample more often to know them."
            )
    else:
        text += paragraph("None inside the region that the data went through.")
    if not found.stationarity.stationary:
        text += paragraph("The data has no law that stays: the points are of this recording, not of the system.")
    e = found.lyapunov
    text += "<h3>Largest Lyapunov exponent</h3>"
    if np.isfinite(e.mean):
        sign = _EXPONENTS[found.exponent_claim]
        text += paragraph(
            f"{e.mean:.4g} ± {e.se:.2g} per {one(result.step_unit) or 'unit of time'} ({sign}), of the mean drift with "
            f"its noise, over {len(e.paths)} paths; ± is one standard error over paths, without what is unknown of the "
            "drift."
        )
    else:
        text += paragraph("Cannot be given: paths of the mean drift run away.")
    return text


def forecasts(check: ForecastCheck | None) -> str:
    if check is None:
        return paragraph("Too little data was held out for a forecast with two origins.")
    kind = (
        "the part of the training data that was held out; it also chose when to stop, so that scores are a little "
        "better than on new data"
        if check.validation
        else "data that is new to the model"
    )
    text = paragraph(f"Checked on {kind}. {check.overlap}") + "".join(figure(spec) for spec in charts.fans(check))
    text += figure(charts.calibration(check))
    text += paragraph(
        "A value is compared with the forecast of its own time and counts at its nearest step; horizons with fewer "
        f"than {check.least} values are left out. {check.why_not()}"
    )
    return text + "".join(_scores(check, p) for p in range(len(check.names)))


def _scores(check: ForecastCheck, p: int) -> str:
    inside = (f"in {level:.0%}" for level in LEVELS)
    header = ("steps", "time ahead", "values", "CRPS", "climatology", "persistence", *inside)
    rows = []
    for h in check.shown_horizons():
        scores = (check.crps[h - 1, p], check.climatology[h - 1, p], check.persistence[h - 1, p])
        shares = [check.coverage[level][h - 1, p] for level in LEVELS]
        cells = [*(f"{s:.4g}" for s in scores), *(f"{share:.0%}" for share in shares)]
        shown = ["–" if np.isnan(v) else cell for v, cell in zip([*scores, *shares], cells, strict=True)]
        rows.append((h, check.time_ahead(h), check.counts[h - 1, p], *shown))
    return f"<h3>{escape(check.names[p])}</h3>" + table(header, rows)


def long_run(result: FitResult, found: Diagnostics) -> str:
    if not found.likeness:
        return paragraph("No channel has a stretch without gaps that is long enough to compare.")
    shown = enumerate(found.likeness[:4])
    text = "".join(figure(spec) for k, like in shown for spec in charts.free_run(like, k + 1, result.step_unit))
    rows = [
        (
            one.channel,
            f"{one.sd_ratio:.2f}",
            f"{one.roughness_ratio:.2f}",
            f"{one.value_distance:.2f}",
            f"{one.spectrum_distance:.2f}",
            f"{one.escape_share:.0%}",
        )
        for one in found.likeness
    ]
    header = (
        "channel",
        "sd ratio",
        "roughness ratio",
        "distance of values (sd)",
        "of spectra (0–1)",
        "paths that escape",
    )
    return text + table(header, rows) + paragraph("Ratios are model over real: 1 is right.")


def residuals(found: Diagnostics) -> str:
    if found.residuals is None:
        return paragraph("Too few samples for residuals.")
    r = found.residuals
    parts = (
        ("increments", "Increments of the latent states along paths drawn from their posterior.", r.increments),
        ("one-step", "One-step forecast errors of the channels.", r.one_step),
    )
    text = "".join(figure(charts.residuals(f"residuals-{name}", what, group)) for name, what, group in parts)
    header = ("residual", "number", "mean", "sd", "p (white)", "skewness", "excess kurtosis", "p (normal)")
    text += table(header, [_row(w) for _, _, group in parts for w in group])
    return text + paragraph(
        "Residuals are standardised: where the model is right, they have mean 0 and sd 1, are white (Ljung–Box) and "
        "normal (Jarque–Bera). With many samples small p-values come from small faults: look at the sizes, too."
    )


def _row(w: Whiteness) -> tuple:
    numbers = (f"{w.mean:.2f}", f"{w.sd:.2f}", _p(w.p_white), f"{w.skewness:.2f}", f"{w.excess_kurtosis:.2f}")
    return (w.name, len(w.values), *numbers, _p(w.p_normal))


def _p(value: float) -> str:
    return "< 0.001" if value < 1e-3 else f"{value:.2g}"


def reproduce(result: FitResult, origin: Mapping[str, str]) -> str:
    config = {"model": result.config.model.model_dump(mode="json"), "fit": result.config.fit.model_dump(mode="json")}
    versions = f"lamperti {lamperti.__version__}, " + ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    rows = [*origin.items(), ("Versions", versions), ("Python", f"{platform.python_version()}, {platform.platform()}")]
    lines = []
    for name, values in config.items():
        lines.append(f"[{name}]")
        # None is the default of what is chosen from the data; JSON's other values are TOML's, too.
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]
    body = "".join(f"{escape(text)}\n" for text in lines)
    return facts(rows) + f"<h3>Configuration in force (for --config)</h3><pre>{body}</pre>"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # put on the path without being installed
        return "unknown"
