"""``result.plot``: the figures of a result, from the data that it was fitted to unless others are given."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from lamperti._errors import ConfigError
from lamperti.api import forecast
from lamperti.data.series import Series, as_series_list
from lamperti.diagnostics.held_out import check_forecasts
from lamperti.diagnostics.residuals import residuals
from lamperti.results import FitResult
from lamperti.viz.checks import diagnostics
from lamperti.viz.dimensions import dimensions
from lamperti.viz.equation import drift
from lamperti.viz.forecasts import forecast_fan
from lamperti.viz.phase import phase_space
from lamperti.viz.training import training

_SHARE = 4  # a forecast is of the last quarter of a series
_LONGEST = 200


class Plots:
    """Figures of one result; write them with ``figure.savefig("name.svg")``."""

    def __init__(self, result: FitResult):
        self.result = result

    def phase_space(self, data: Any = None, *, seed: int = 0) -> Figure:
        """The learned phase space with one series in it."""
        return phase_space(self.result, self._longest(data), seed=seed)

    def forecast(self, data: Any = None, *, horizon: int | None = None, seed: int = 0) -> Figure:
        """A forecast of the end of a series (its last quarter, 200 samples at most) beside what happened."""
        series = self._longest(data)
        ahead = horizon or max(min(series.length // _SHARE, _LONGEST), 1)
        if not 0 < ahead < series.length - 1:
            raise ConfigError(f"horizon must leave two samples of the {series.length} to start from; got {ahead}.")
        past, future = series.split(series.length - ahead)
        return forecast_fan(forecast(self.result, past, horizon=ahead, seed=seed), past, future)

    def drift(self) -> Figure:
        """Drift and diffusion with their uncertainty, along lines through the middle of the data."""
        return drift(self.result)

    def training(self) -> Figure:
        """The bound and its terms over the iterations."""
        return training(self.result.history)

    def dimensions(self) -> Figure:
        """The curve that the latent dimension was chosen from: error by number of coordinates, and the one taken."""
        return dimensions(self.result.dimensions)

    def diagnostics(self, data: Any = None, *, seed: int = 0) -> Figure:
        """Residuals and calibration; forecasts are checked on the part that training has not seen."""
        series = self._series(data)
        return diagnostics(residuals(self.result, series, seed=seed), check_forecasts(self.result, series, seed=seed))

    def _longest(self, data: Any) -> Series:
        return max(self._series(data), key=len)

    def _series(self, data: Any) -> Sequence[Series]:
        if data is not None:
            return as_series_list(data)
        if not self.result.data:
            raise ConfigError(
                "a model that was read from a file does not hold its data. Pass it: plot.forecast(series)."
            )
        return self.result.data
