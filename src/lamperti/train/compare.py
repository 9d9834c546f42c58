"""Two models beside each other: the CRPS of their forecasts of the same data from the same origins."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from lamperti._compile import compiled
from lamperti._typing import PRNGKeyArray
from lamperti.data.holding import Judged
from lamperti.data.windows import segment
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.model import LatentSDE, Segment
from lamperti.train.fitted import Fitted
from lamperti.train.forecast_fit import Scores, forecast_scores, gained, segment_length
from lamperti.train.loop import as_segment

_SEGMENTS, _FEWEST = 64, 4  # that are forecast, and without which no standard error can be told
_SHORTEST = 24  # samples of a segment
_PATHS = 64


class Gain(NamedTuple):
    """Share by which the CRPS of the second model is lower than that of the first, averaged over horizons."""

    share: float
    se: float

    def clearly(self, least: float) -> bool:
        return self.share > max(least, self.se)


def compare_forecasts(first: LatentSDE, second: LatentSDE, judged: Sequence[Judged], *, seed: int) -> Gain | None:
    """How much better the second forecasts these data; None where there is too little of it to tell.

    A state that is read off a long window sees the data before: without its past it would forecast from what was made
    up."""
    models = (first, second)
    if not judged or not all(isinstance(m.emission, LinearGaussian) for m in models):
        return None
    lead = max(m.encoder.lead for m in models)
    most = max(len(one.track.y) - one.first for one in judged)
    length = min(segment_length(lead + 1, most), max(most // _FEWEST, _SHORTEST))
    if length > most:
        return None
    segments = segment([one.track for one in judged], length, lead)
    batch = as_segment(segments.cover(_SEGMENTS, [one.first for one in judged]))
    if len(batch.y) < _FEWEST:
        return None
    key = jax.random.key(seed)
    before, after = (_scores(m, _without(batch, lead - m.encoder.lead), key=key) for m in models)
    return Gain(*gained(before, after))


def _without(batch: Segment, n: int) -> Segment:
    """Segments with a shorter lead, the same samples after it."""
    return Segment(batch.y[:, n:], batch.mask[:, n:], batch.dt[:, n:], batch.link[:, n:])


@compiled
def _scores(model: LatentSDE, batch: Segment, *, key: PRNGKeyArray) -> Scores:
    return forecast_scores(Fitted.of(model), model, batch, _PATHS, key=key)
