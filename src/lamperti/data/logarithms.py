"""Channels whose logarithm is modelled: those that vary in proportion to their level, as flows and populations do.

Notation   y > 0: a channel      e: what an autoregression leaves of y [n], or of log y
           d = log p(y) by the regression of log y, less log p(y) by that of y: nats a sample, on data not fitted to

A linear model has noise of one size. A river varies by tenths in a drought and by hundreds in a flood: there the
logarithm has noise of one size, and forecasts of it are never negative.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from lamperti._typing import Float
from lamperti.data.bridging import tracks
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.data.windows import Track

_LAGS, _ROWS_A_LAG = 8, 12
_FOLDS, _STRETCHES = 4, 12
_FEWEST = 40  # samples
_MOST = 5.0  # nats that one sample may say
_NOTICED, _ERRORS = 0.1, 3.0  # nats a sample, and standard errors, by which the logarithm must be better

_RARE = 4.0  # sds above the mean of the logarithm, where free-running paths get to now and then
_BOX = 3.0  # ranges of the data, about its middle, that they must stay within

_T = TypeVar("_T")


def scale_and_choose(
    series: Sequence[Series],
    wanted: Sequence[str] | None,
    look: Callable[[list[Track]], _T],
    is_linear: Callable[[_T], bool],
    *,
    trending: bool,
) -> tuple[Scaler, list[Track], _T]:
    """Series in the model's units, and the choice that is made by looking at them.

    ``wanted``: channels whose logarithm is modelled. Where it is left out, they are those that tell so themselves, if a
    linear model in closed form would be taken of the values as they are; a trend of a logarithm grows without end."""
    scaler = Scaler.from_series(series, wanted or ())
    standard = tracks(series, scaler)
    found = look(standard)
    if wanted is not None or trending or not is_linear(found):
        return scaler, standard, found
    names = [name for p, name in enumerate(series[0].names) if in_proportion([s.values[:, p] for s in series])]
    if not names:
        return scaler, standard, found
    scaler = Scaler.from_series(series, names)
    standard = tracks(series, scaler)
    return scaler, standard, look(standard)


def in_proportion(channel: Sequence[Float[np.ndarray, " _T"]]) -> bool:
    """Whether a channel is clearly better told by a regression of its logarithm, and the normal law of that has no
    values far from the data: of noise that is large even in the logarithm, the exponential is enormous."""
    known = np.concatenate([y[np.isfinite(y)] for y in channel])
    if len(known) < _FEWEST or known.min() <= 0.0:
        return False
    logs = np.log(known)
    rare = np.exp(min(logs.mean() + _RARE * logs.std(), np.log(np.finfo(float).max)))
    if rare > (known.min() + known.max()) / 2 + _BOX / 2 * np.ptp(known):
        return False
    n_lags = int(np.clip(len(known) // _ROWS_A_LAG, 1, _LAGS))
    unit = float(np.median(known))
    plain, in_logs = (_rows([f(y / unit) for y in channel], n_lags) for f in (lambda y: y, np.log))
    if len(plain) < _FEWEST or np.linalg.matrix_rank(plain - plain.mean(axis=0)) <= n_lags:
        return False
    # the density of y by that of log y: divided by y
    gain = np.clip(_log_density(in_logs) - in_logs[:, -1] - _log_density(plain), -_MOST, _MOST)
    each = np.array([part.mean() for part in np.array_split(gain, _STRETCHES)])
    se = each.std(ddof=1) / np.sqrt(_STRETCHES)
    return bool(gain.mean() > max(_NOTICED, _ERRORS * se))


def _rows(channel: Sequence[Float[np.ndarray, " _T"]], n_lags: int) -> Float[np.ndarray, "n L+1"]:
    """Samples with those before them, the newest last."""
    windows = [np.lib.stride_tricks.sliding_window_view(y, n_lags + 1) for y in channel if len(y) > n_lags]
    rows = np.concatenate([np.zeros((0, n_lags + 1)), *windows])
    return rows[np.isfinite(rows).all(axis=1)]


def _log_density(rows: Float[np.ndarray, "n L+1"]) -> Float[np.ndarray, " n"]:
    """Of the newest sample by a regression on the others that was fitted to other rows, up to a constant."""
    found = np.empty(len(rows))
    for fold in np.array_split(np.arange(len(rows)), _FOLDS):
        others = np.delete(rows, fold, axis=0)
        past = np.column_stack([np.ones(len(others)), others[:, :-1]])
        w = np.linalg.lstsq(past, others[:, -1], rcond=None)[0]
        sd = max(float(np.std(others[:, -1] - past @ w)), np.finfo(float).tiny)
        left = rows[fold, -1] - np.column_stack([np.ones(len(fold)), rows[fold, :-1]]) @ w
        found[fold] = -0.5 * (left / sd) ** 2 - np.log(sd)
    return found
