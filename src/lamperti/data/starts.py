"""What training starts from: how many coordinates, from which window, and whether a linear model is all there is to it.

Two things are offered. A start for training, by cross-validated predictions (`coordinates`). And, where no drift that
is not linear predicts better and there is little data or a trend, a linear model in closed form (`autoregressive`),
which needs no training: of so little data, training makes a deterministic trend with noise around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lamperti._text import counted
from lamperti._typing import Float
from lamperti.data.autoregressive import Autoregression, behind, by_stretch, fit_autoregression
from lamperti.data.coordinates import KINDS, NEGLIGIBLE, Candidate, Coordinates, candidates, predict_futures
from lamperti.data.delay import LONGEST_WINDOW, window_length
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.free_running import Delays
from lamperti.data.linear_law import LinearLaw, reduce
from lamperti.data.regressed import DelayCoordinates, delay_coordinates, is_clean
from lamperti.data.windows import Track

Start = Literal["components", "predictive", "autoregressive", "level-free", "regressed"]
"""Functions of a window that training starts from, or those of a linear model that is not trained."""
CLOSED_FORM: tuple[Start, ...] = ("autoregressive", "level-free")
REGRESSED: Start = "regressed"
UNTRAINED: tuple[Start, ...] = (*CLOSED_FORM, REGRESSED)

MOST_DIMENSIONS = 6  # that are compared; each more costs training time, and a user can ask for up to 12
_USUAL_DIMENSION = 2  # where the data cannot tell
_ALIKE = 0.01  # of the error, up to which the shorter window is taken
_SHORTEST = 3
_WINDOWS = 12  # that the data must hold: two make a window and what follows it, and there are folds
_WIDEST = 1_500  # samples times channels of a window
# Samples below which a linear drift is not trained: noise of motion and of observation can hardly be told apart.
_FEW = 5_000
MOST_CHANNELS = 6  # of a linear model, whose coordinates hold the newest sample of each
_UNEVEN, _MOST_UNEVEN = 0.15, 0.02  # of a step, and share of the steps, for steps that count as equal


@dataclass(frozen=True, eq=False)
class Choice:
    """The start that is taken, and the best of each dimension that it was compared with (none: too little data)."""

    dimension: int
    window: int
    coordinates: Start
    linear: bool = False
    """Whether functions of the coordinates that are not linear predict no better."""
    curve: tuple[Candidate, ...] = ()
    linear_curve: tuple[tuple[int, float, float], ...] = ()
    """Of a linear model in closed form: dimension, error and standard error."""
    free_curve: tuple[tuple[int, float, float], ...] = ()
    """Of a model with a regressed drift: dimension, CRPS of free-running forecasts and its standard error."""
    newest: int = 1
    """Of a model with a regressed drift: samples at the end of the window that the state holds each by itself."""
    asked: bool = False
    """Whether the dimension was given, so that no other was compared."""

    @property
    def delays(self) -> Delays:
        """Of a model with a regressed drift."""
        return Delays(self.dimension, self.window, self.newest)

    @property
    def at_the_end(self) -> bool:
        """Whether the largest dimension that was compared was taken: more may be better."""
        return len(self.curve) > 1 and self.dimension == self.curve[-1].dimension

    @property
    def dimensions(self) -> DimensionCurve:
        """What is kept of the choice when training is done."""
        curve = tuple((one.dimension, one.error, one.se) for one in self.curve) or self.linear_curve or self.free_curve
        return DimensionCurve(self.dimension, curve, self.reason())

    def reason(self) -> str:
        """Why, in a sentence or two."""
        many = counted(self.dimension, "latent coordinate") + (" as asked for" if self.asked else "")
        if self.coordinates in CLOSED_FORM:
            level = ", in which the level of the data drops out" if self.coordinates == "level-free" else ""
            return (
                f"{many} of a linear model, an autoregression on {counted(self.window, 'sample')}{level}: no other "
                "drift predicts held-out data better, and there is too little data, or a trend, to train one."
            )
        if self.coordinates == REGRESSED:
            errors = ", ".join(f"{d}: {error:.3f} ± {se:.3f}" for d, error, se in self.free_curve)
            held = f", the {self.newest} newest samples and what predicts best" if self.newest > 1 else ""
            return (
                f"{many}{held} of a window of {counted(self.window, 'sample')}, with a regressed drift: the samples "
                "show no sign of observation noise, so that a window tells the state, and no training is needed. CRPS "
                f"of free-running forecasts in sds of the data by dimension, ± standard error: {errors}."
            )
        if not self.curve:
            return f"{many} and a linear drift: the data is too short to compare with others."
        if len(self.curve) == 1:
            error = f"{self.curve[0].error:.3f} ± {self.curve[0].se:.3f}"
            why = "" if self.asked else f": a window of {counted(self.window, 'sample')} has no more"
            return f"{many}{why}. No others were compared. Error in sds of the data, ± standard error: {error}."
        best = min(self.curve, key=lambda one: one.error)
        why = (
            ("it predicts" if self.dimension == 1 else "they predict") + " held-out data best"
            if best.dimension == self.dimension
            else f"the fewest that predict held-out data about as well as the best ({best.dimension})"
        )
        errors = ", ".join(f"{one.dimension}: {one.error:.3f} ± {one.se:.3f}" for one in self.curve)
        end = " More than were compared may be better." if self.at_the_end else ""
        end += " A linear drift predicts as well as any." if self.linear else ""
        return f"{many}: {why}. Error in sds of the data by dimension, ± standard error: {errors}.{end}"


def choose_start(
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    *,
    dimension: int | None = None,
    window: int | None = None,
    coordinates: Coordinates | None = None,
    closed_form: bool = False,
    trending: bool = False,
) -> Choice:
    """The smallest dimension that is not clearly behind the best in predicting data that it was not fitted to, with the
    shortest window and the coordinates that suit it. What is given is kept. Or a model that needs no training: linear,
    where that is all that little data can tell, or with a regressed drift, where samples show no sign of noise.

    ``closed_form``: whether a model may be taken that needs no training (equal steps, nothing but the dimension was
    asked for). ``trending``: whether the data has no stationary law."""
    choice, start = _to_train(arrays, dimension, window, coordinates)
    open_form = closed_form and arrays[0].shape[1] <= MOST_CHANNELS
    if open_form and (sum(map(len, arrays)) < _FEW or (trending and choice.linear)):
        fitted = fit_autoregression(arrays, level_free=None if trending else False)
        if fitted is not None and (start is None or not _clearly_better(start, fitted)):
            return of_law(reduce(fitted, arrays, dimension), asked=dimension is not None)
    if start is None or choice.linear:
        return choice
    if open_form and not trending and is_clean(arrays):
        found = delay_coordinates(arrays, dimension=dimension)
        if found is not None:
            return of_delays(found, asked=dimension is not None)
    return choice


def of_law(law: LinearLaw, *, asked: bool) -> Choice:
    """The choice of a linear model."""
    return Choice(law.dimension, law.window, start_of(law), linear=True, linear_curve=law.curve, asked=asked)


def of_delays(found: DelayCoordinates, *, asked: bool) -> Choice:
    """The choice of a model with a regressed drift."""
    return Choice(
        found.dimension, found.window, REGRESSED, free_curve=found.curve, newest=found.delays.newest, asked=asked
    )


def equal_steps(tracks: Sequence[Track]) -> bool:
    """Whether the steps, in units of the usual one, are equal but for a few."""
    dt = np.concatenate([t.dt for t in tracks])
    return len(dt) > 0 and float(np.mean(np.abs(dt - 1.0) > _UNEVEN)) <= _MOST_UNEVEN


def _clearly_better(start: Candidate, fitted: Autoregression) -> bool:
    """Whether a start predicts clearly better than a linear model: by more than a standard error, and by more than
    anyone would notice. What is predicted is the same, from the same samples."""
    if start.linear:
        return False
    rows = fitted.rows
    answers = predict_futures(start, rows.past, rows.future, rows.folds(start.window))
    squares = np.stack([rows.squares(one, rows.future) for one in answers])
    # the ridge that does best at each horizon
    best = np.argmin(np.nanmean(squares, axis=1), axis=0)
    chosen = np.take_along_axis(squares, best[None, None], axis=0)[0]
    gap, se = behind(fitted.squares, by_stretch(chosen))
    return gap > max(se, NEGLIGIBLE)


def start_of(law: LinearLaw) -> Start:
    return "level-free" if law.level_free else "autoregressive"


def linear_law(
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    *,
    dimension: int | None = None,
    window: int | None = None,
    level_free: bool | None = None,
    trending: bool = False,
) -> LinearLaw | None:
    """The linear model of these data in closed form; None where they are too short for any, or have too many
    channels. ``level_free`` is decided
    by the data where it is left out."""
    if arrays[0].shape[1] > MOST_CHANNELS:
        return None
    level_free = (None if trending else False) if level_free is None else level_free
    fitted = fit_autoregression(arrays, window=window, level_free=level_free)
    return None if fitted is None else reduce(fitted, arrays, dimension)


def _to_train(
    arrays: Sequence[Float[np.ndarray, "_ P"]],
    dimension: int | None,
    window: int | None,
    coordinates: Coordinates | None,
) -> tuple[Choice, Candidate | None]:
    """The best start for training, and the predictions that speak for it; None where there is too little data."""
    usual = window_length(arrays)
    longest, total, n_channels = max(map(len, arrays)), sum(map(len, arrays)), arrays[0].shape[1]
    offered = sorted({usual // 2, usual, 2 * usual, 4 * usual})
    windows = [w for w in offered if _SHORTEST <= w <= LONGEST_WINDOW and 4 * w <= longest and _WINDOWS * w <= total]
    least = -(-(dimension or 1) // n_channels)  # samples, of which a window has as many components as asked for
    windows = [w for w in windows if w * n_channels <= _WIDEST and w >= least] or [max(usual, least)]
    windows = [window] if window else windows
    # Channels that are no copies of each other need two coordinates at least.
    dimensions = [dimension] if dimension else list(range(min(n_channels, 2), MOST_DIMENSIONS + 1))
    found = candidates(arrays, windows, dimensions, (coordinates,) if coordinates else KINDS)
    if not found:
        dim = dimension or min(_USUAL_DIMENSION, (window or usual) * n_channels)
        # Of so little data nothing but a straight line can be learned.
        kind = coordinates or "components"
        return Choice(dim, window or max(usual, least), kind, linear=True, asked=dimension is not None), None
    best = min(found, key=lambda one: one.error)
    good = [one for one in found if not one.clearly_behind(best)]
    chosen = min(good, key=lambda one: (one.dimension, not one.linear, one.error))
    alike = [one for one in good if (one.dimension, one.linear) == (chosen.dimension, chosen.linear)]
    alike = [one for one in alike if one.error <= (1 + _ALIKE) * chosen.error]
    chosen = min(alike, key=lambda one: (one.window, one.error))
    by_dimension = {one.dimension: one for one in sorted(found, key=lambda one: -one.error)}
    curve = tuple(by_dimension[d] for d in sorted(by_dimension))
    taken = (chosen.dimension, chosen.window, chosen.coordinates, chosen.linear, curve)
    return Choice(*taken, asked=dimension is not None), chosen
