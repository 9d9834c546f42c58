"""What the model leaves unexplained: increments of the states, and one-step forecasts of the channels."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from lamperti import api
from lamperti._errors import ConfigError
from lamperti.data.series import Series
from lamperti.data.windows import Track, whole
from lamperti.diagnostics.whiteness import Whiteness, whiteness
from lamperti.forecasting import predict_steps, standardised_increments
from lamperti.model import Segment
from lamperti.results import FitResult
from lamperti.train.loop import part

_PIECE = 512  # samples of a stretch
_MULTIPLE = 64


@dataclass(frozen=True, eq=False)
class Residuals:
    """Standardised residuals: all have mean 0 and sd 1, are white and normal where the model is right."""

    increments: tuple[Whiteness, ...]
    """Of each latent coordinate, along paths drawn from the posterior of the states."""
    one_step: tuple[Whiteness, ...]
    """Of each channel: observed less forecast from all samples before, over the sd of that forecast."""


def residuals(
    result: FitResult, series: Sequence[Series], *, n_pieces: int = 8, n_particles: int = 500, seed: int = 0
) -> Residuals | None:
    """Residuals along up to ``n_pieces`` stretches of the data, evenly spread; None where there are too few."""
    tracks = [piece.track for one in _spread(series, n_pieces) for piece in api.pieces(one, result.scaler)]
    multiple = -(-max(len(track.y) for track in tracks) // _MULTIPLE) * _MULTIPLE
    lead = result.model.encoder.lead
    steps, errors = [], []
    for i, track in enumerate(tracks):
        segment = as_one_segment(track, lead, multiple)
        key_path, key_filter = jax.random.split(jax.random.fold_in(jax.random.key(seed), i))
        n = len(track.y) - 1
        # The made-up lead mirrors the first samples, which the first states and forecasts have thus seen.
        seen = min(lead, n)
        z = np.asarray(standardised_increments(result.model, segment, key=key_path))[:n]
        expected = predict_steps(result.model, segment, n_particles=n_particles, key=key_filter)
        error = (track.y[1:] - np.asarray(expected.mean)[:n]) / np.asarray(expected.sd)[:n]
        steps.append(z[seen:])
        errors.append(np.where(track.mask[1:], error, np.nan)[seen:])
    try:
        return Residuals(
            _columns([f"x{d + 1}" for d in range(result.model.latent_dim)], steps), _columns(result.names, errors)
        )
    except ConfigError:  # too few
        return None


def as_one_segment(track: Track, lead: int, multiple: int) -> Segment:
    """A whole series as one segment, its length padded up to a multiple."""
    return part(whole(*track, lead, multiple))


def _columns(names: Sequence[str], stretches: list[Float[np.ndarray, "_T _P"]]) -> tuple[Whiteness, ...]:
    return tuple(whiteness(name, [z[:, k] for z in stretches]) for k, name in enumerate(names))


def _spread(series: Sequence[Series], n_pieces: int) -> list[Series]:
    """Stretches of at most ``_PIECE`` samples, evenly spread over all of the data."""
    cut = [s[k : k + _PIECE] for s in series for k in range(0, s.length, _PIECE)]
    cut = [piece for piece in cut if piece.length > 2] or [max(series, key=len)]
    return [cut[i] for i in np.unique(np.linspace(0, len(cut) - 1, n_pieces).round().astype(int))]
