"""The verdict on a model that needs no training: on one of its kind, fitted again to the first part of the data.

Such a model is fitted again within seconds. What it forecasts of the last quarter, having learned from the first three,
says what to expect of the one that learned from all of it; the few stretches that were held out say far less.
"""

import dataclasses
import warnings
from collections.abc import Sequence

from lamperti._errors import LampertiError, LampertiWarning
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.series import Series
from lamperti.data.starts import REGRESSED, UNTRAINED
from lamperti.diagnostics.long_run import likeness
from lamperti.diagnostics.origins import forecast_unseen
from lamperti.diagnostics.unseen import is_known
from lamperti.diagnostics.verdict import PATHS, Verdict, verdict_on
from lamperti.fitting import fit
from lamperti.results import FitResult

_FIRST = 0.75  # share of a series that is learned from
_ORIGINS = 48
_NOTE = (
    "The verdict is on a model of the same kind that learned from the first three quarters of the data, and on its "
    "forecasts of the last quarter."
)


def or_refitted(
    verdict: Verdict,
    result: FitResult,
    series: Sequence[Series],
    *,
    n_samples: int = 200,
    seed: int = 0,
) -> Verdict:
    """The verdict on the model fitted again to a first part of these series, if they are what it learned from and that
    can be done; else the one that there is."""
    if result.config.model.coordinates not in UNTRAINED or not is_known(result, series):
        return verdict
    parts = [one[: int(_FIRST * one.length)] for one in series]
    config = FitConfig(seed=result.config.fit.seed, validation_fraction=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LampertiWarning)  # they were told when the model itself was fitted
        try:
            again = fit(parts, _same_kind(result.config.model), config, progress=False)
        except LampertiError:  # three quarters are too short
            return verdict
        found = forecast_unseen(again, series, n_origins=_ORIGINS, n_samples=n_samples, seed=seed)
        alike, _ = likeness(again, series, n_paths=PATHS, seed=seed)
    judged = verdict_on(found, again, alike)
    if judged.kind == "unknown":
        return verdict
    return dataclasses.replace(judged, notes=(_NOTE, *judged.notes))


def _same_kind(model: ModelConfig) -> ModelConfig:
    """What is asked for when a model is fitted again. Coordinates of a window take a minute to choose, and stay."""
    kept = ["coordinates", "bounded", "log", *(["latent_dim", "window", "newest"] * (model.coordinates == REGRESSED))]
    return ModelConfig(**{name: getattr(model, name) for name in kept})
