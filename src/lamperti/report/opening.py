"""What a report begins with: the verdict, what to be careful about, and what was learned, in sentences."""

from collections.abc import Iterator

import numpy as np

from lamperti.data.durations import one as one_of
from lamperti.diagnostics import Diagnostics
from lamperti.diagnostics.held_out import ForecastCheck
from lamperti.diagnostics.verdict import Verdict
from lamperti.report._page import escape, paragraph, table
from lamperti.results import FitResult

_NOTES = {"dimension", "few samples"}  # caveats that every such data set raises
_NO_SKILL = 0.95  # of climatology's score


def summary(result: FitResult, found: Diagnostics) -> str:
    """What was learned, in sentences, after what to be careful about."""
    items = "".join(
        f"<li{' class=note' * (caveat.code in _NOTES)}>{escape(caveat.text)}</li>" for caveat in found.caveats
    )
    serious = [c for c in found.caveats if c.code not in _NOTES]
    lead = "Before you rely on this model:" if serious else "The checks raised nothing serious. Keep in mind:"
    said = "".join(paragraph(sentence) for sentence in _sentences(result, found))
    return f'{verdict(found.verdict)}{paragraph(lead)}<ul class="caveats">{items}</ul>{said}'


def verdict(one: Verdict) -> str:
    """The sentence that comes before anything else, and the table that it is made from."""
    kind = one.kind.replace(" ", "-")
    text = f'<p class="verdict {kind}">{escape(one.sentence)}</p>'
    rows = one.rows()
    if rows:
        text += table(rows[0], rows[1:])
        text += paragraph(
            f"CRPS of forecasts from {one.origins} places, in standard deviations of the data: mean ± standard error, "
            "lower is better. Better and worse are beyond two standard errors of the difference."
        )
    return text + "".join(paragraph(sentence) for sentence in (*one.advice, *one.notes))


def _sentences(result: FitResult, found: Diagnostics) -> Iterator[str]:
    names = ", ".join(result.names[:6]) + (" and others" if len(result.names) > 6 else "")
    yield (
        f"The model describes {names} as seen through noise from a state of {result.model.latent_dim} coordinates that "
        f"follows a stochastic differential equation, learned from series of {found.learned_from} samples in all."
    )
    check = found.forecasts
    if check is not None and check.furthest:
        ahead = _skilful(check)
        far = "not even one step ahead"
        if ahead and ahead == check.furthest:
            far = f"as far as was looked ({check.time_ahead(ahead)})"
        elif ahead:
            far = f"up to {check.time_ahead(ahead)} ahead"
        yield (
            f"On data that training has not seen, forecasts were better than the long-run distribution {far}, and "
            f"their 90 % intervals held {check.average_coverage(0.9):.0%} of the values."
        )
    e = found.lyapunov
    per = one_of(result.step_unit) or "unit of time"
    claims = {
        "chaotic": "is chaotic: nearby states part",
        "not chaotic": "is not chaotic: nearby states under the same noise meet",
        "linear": "forgets its start as a linear one does" if e.mean < 0 else "grows as a linear one does",
    }
    if found.exponent_claim in claims:
        rate = f"{abs(e.mean):.3g} ± {e.se:.1g} per {per}"
        yield f"The learned system {claims[found.exponent_claim]}, at a rate of {rate}."
    if found.fixed_points and found.stationarity.stationary:
        kinds = [p.kind for p in found.fixed_points]
        listed = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        many = "one point" if len(kinds) == 1 else f"{len(kinds)} points"
        yield f"Inside the region of the data, the mean drift vanishes at {many}: {listed}."


def _skilful(check: ForecastCheck) -> int:
    """Steps ahead up to which every horizon with a score beats climatology."""
    ratio = np.mean(check.crps / check.climatology, axis=1)
    scored = np.flatnonzero(~np.isnan(ratio))
    poor = scored[~(ratio[scored] < _NO_SKILL)]
    good = scored[scored < poor[0]] if poor.size else scored
    return int(good[-1]) + 1 if good.size else 0
