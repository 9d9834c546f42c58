"""Forecasts of what was observed, scored: of real recordings and of those that stand in for them.

There is no oracle here and no noise-free truth: climatology is the scale.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lamperti._typing import Bool, Float
from lamperti.bench.cells import Row
from lamperti.bench.measures import horizon_rows
from lamperti.bench.methods import Fitted
from lamperti.data.series import Series
from lamperti.evaluation import protocol
from lamperti.evaluation.climatology import Climatology


def overlap(horizons: Sequence[int], stride: int) -> int:
    """How many origins in a row have futures that overlap."""
    return -(-max(horizons) // stride)


def future_rows(
    fitted: Fitted,
    train: Series,
    series: Series,
    starts: Sequence[int],
    context: int,
    horizons: Sequence[int],
    stride: int,
) -> list[Row]:
    """Scores at every horizon of the forecasts from every start, and the share of forecasts that diverge.

    Several channels are scored in sds of the training samples, then averaged; missing samples are not scored. Standard
    errors are over blocks of origins whose futures overlap; few origins are taken as two blocks.
    """
    furthest, at = max(horizons), np.array(horizons) - 1
    samples, diverging = [], []
    for k in starts:
        found = fitted.forecast(series[k - context : k], furthest, k)
        diverging.append(diverges(found, train.values))
        samples.append(found[:, at])  # of long horizons all would not fit into memory
    truth = np.stack([series.values[k + at] for k in starts])
    climatology = Climatology.of_series([train]).crps(truth)
    scale = np.nanstd(train.values, axis=0) if train.n_channels > 1 else np.ones(1)
    scored = protocol.score_ensembles(
        _apart(np.stack(samples) / scale), _apart(truth / scale), _apart(climatology / scale),
        range(1, len(at) + 1), block=max(1, min(overlap(horizons, stride), len(starts) // 2)) * train.n_channels,
    )  # fmt: skip
    named = [replace(one, horizon=h, n_origins=len(starts)) for one, h in zip(scored, horizons, strict=True)]
    return [*horizon_rows(named), Row("diverging_share", float(np.mean(diverging)), n=len(starts))]


def diverges(samples: Float[np.ndarray, "S H P"], values: Float[np.ndarray, "T P"]) -> bool:
    """Whether any sampled future leaves a box of three times the range of the values, or is not finite."""
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    inside: Bool[np.ndarray, "S H P"] = np.abs(samples - 0.5 * (low + high)) <= 1.5 * (high - low)  # False for NaN
    return not inside.all()


def _apart(values: np.ndarray) -> np.ndarray:
    """Channels as origins of one channel, those of an origin beside each other: [R, ..., P] to [R P, ..., 1]."""
    apart = np.moveaxis(values, -1, 1)
    return apart.reshape(-1, *apart.shape[2:])[..., None]
