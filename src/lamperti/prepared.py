"""The data on its way to training: checked, scaled, split, with what was left to it chosen."""

from dataclasses import dataclass

import numpy as np

from lamperti.config import Config, FitConfig, ModelConfig
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.holding import Judged, held_out_from, hold_out
from lamperti.data.logarithms import scale_and_choose
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series, check_for_training
from lamperti.data.starts import CLOSED_FORM, UNTRAINED
from lamperti.data.stationarity import assess
from lamperti.data.windows import Batch, SegmentSet, Track, segment
from lamperti.model import Segment
from lamperti.train.build import choose, leaves_form_open
from lamperti.train.forecast_fit import segment_length
from lamperti.train.loop import Settings, as_segment
from lamperti.train.settings import settings_of

VALIDATION_SEGMENTS = 32
CALIBRATION_SAMPLES = 24_000


@dataclass(frozen=True, eq=False)
class PreparedData:
    """What training needs of the data."""

    series: list[Series]
    scaler: Scaler
    config: Config
    training: list[Track]
    judged: list[Judged]
    """Series whose ends are held out, with what comes before."""
    dimensions: DimensionCurve | None
    trending: bool
    """Whether the data has no stationary law."""

    @property
    def held_out(self) -> list[Track]:
        return [Track(*(a[one.first :] for a in one.track)) for one in self.judged]

    @property
    def settings(self) -> Settings:
        return settings_of(self.config.fit)

    def segments(self, lead: int) -> SegmentSet:
        """Of the training part."""
        return segment(self.training, self._length, lead)

    def validation(self, lead: int) -> Batch | None:
        """Segments of what is held out."""
        return segment(self.held_out, self._length, lead).cover(VALIDATION_SEGMENTS) if self.held_out else None

    def batch(self, lead: int) -> Segment:
        """Training segments that the likelihood is fitted to."""
        return as_segment(self.segments(lead).cover(max(CALIBRATION_SAMPLES // self._length, 1)))

    def to_forecast(self, lead: int) -> Segment:
        """Training segments, as long as forecasts need them."""
        segments = self._forecasts(self.training, lead)
        return as_segment(segments.cover(max(CALIBRATION_SAMPLES // segments.length, 1)))

    def split_forecasts(self, lead: int) -> tuple[Segment, Segment] | None:
        """The same, and held-out segments that judge them; None where nothing is held out."""
        if not self.held_out:
            return None
        return self.to_forecast(lead), as_segment(self._forecasts(self.held_out, lead).cover(VALIDATION_SEGMENTS))

    def _forecasts(self, tracks: list[Track], lead: int) -> SegmentSet:
        return segment(tracks, segment_length(lead + 1, max(len(t.y) for t in self.training)), lead)

    @property
    def _length(self) -> int:
        return min(self.config.fit.segment_length, max(len(t.y) for t in self.training))


def prepare(series: list[Series], model: ModelConfig, fit: FitConfig, *, resumed: bool = False) -> PreparedData:
    """Check and scale the data, choose what was left to it, and hold out a part.

    ``resumed``: whether the configuration is that of a run, which has what was chosen as if it had been asked for."""
    check_for_training(series)
    trending = not assess(series).stationary
    scaler, standard, (config, choice) = scale_and_choose(
        series,
        model.log,
        lambda standard: choose(model, standard, trending=trending),
        lambda found: found[1].coordinates in CLOSED_FORM,
        trending=trending,
    )
    config = config.model_copy(update={"log": tuple(filter(None, scaler.logged))})
    if config.bounded is None:
        config = config.model_copy(update={"bounded": not trending})
    open_form = model.latent_dim is None and leaves_form_open(model, standard) and choice.coordinates not in UNTRAINED
    if not (open_form or resumed):
        fit = fit.model_copy(update={"compare_linear": False, "compare_regressed": False})
    rng = np.random.default_rng(fit.seed)
    first = held_out_from([t.mask for t in standard], fit.validation_fraction, config.window or 1, rng)
    training, judged = hold_out(standard, first)
    return PreparedData(series, scaler, Config(config, fit), training, judged, choice.dimensions, trending)
