"""A verdict where too little was held out: on a model of the same kind, fitted to the first part of the data.

A model that needs no training is fitted again within seconds. What it forecasts of the last quarter, having learned
from the first three, says what to expect of the one that learned from all of it.
"""

import dataclasses
import warnings
from collections.abc import Sequence

from lamperti._errors import LampertiError, LampertiWarning
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.series import Series
from lamperti.data.starts import UNTRAINED
from lamperti.diagnostics.origins import forecast_unseen
from lamperti.diagnostics.verdict import Verdict, verdict_on
from lamperti.fitting import fit
from lamperti.results import FitResult

_FIRST = 0.75  # share of a series that is learned from
_NOTE = (
    "Too little data was held out. The verdict is on a model of the same kind that learned from the first three "
    "quarters of the data, and on its forecasts of the last quarter."
)


def or_refitted(
    verdict: Verdict,
    result: FitResult,
    series: Sequence[Series],
    *,
    n_origins: int = 24,
    n_samples: int = 200,
    seed: int = 0,
) -> Verdict:
    """The verdict, if there is one; else that on the model fitted again to a first part, where that can be done."""
    if verdict.kind != "unknown" or result.config.model.coordinates not in UNTRAINED or not series:
        return verdict
    parts = [one[: int(_FIRST * one.length)] for one in series]
    model = ModelConfig(coordinates=result.config.model.coordinates, bounded=result.config.model.bounded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LampertiWarning)  # they were told when the model itself was fitted
        try:
            again = fit(parts, model, FitConfig(seed=result.config.fit.seed, validation_fraction=0.0), progress=False)
        except LampertiError:  # three quarters are too short
            return verdict
        found = forecast_unseen(again, series, n_origins=n_origins, n_samples=n_samples, seed=seed)
    judged = verdict_on(found, again)
    if judged.kind == "unknown":
        return verdict
    return dataclasses.replace(judged, notes=(_NOTE, *judged.notes), escapes=verdict.escapes)
