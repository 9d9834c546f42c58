"""Series, readers, scaling, segments, delay vectors and simulated systems; plain NumPy."""

from lamperti.data.checking import Check, check
from lamperti.data.correlation import (
    LagChoice,
    autocorrelation,
    average_mutual_information,
    e_folding_time,
    first_minimum_lag,
)
from lamperti.data.delay import HankelBasis, hankel, suggest_delays, window_length
from lamperti.data.reading import read
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series, as_series_list, check_for_training
from lamperti.data.windows import Batch, SegmentSet, Track, segment, whole

__all__ = [
    "Batch",
    "Check",
    "HankelBasis",
    "LagChoice",
    "Scaler",
    "SegmentSet",
    "Series",
    "Track",
    "as_series_list",
    "autocorrelation",
    "average_mutual_information",
    "check",
    "check_for_training",
    "e_folding_time",
    "first_minimum_lag",
    "hankel",
    "read",
    "segment",
    "suggest_delays",
    "whole",
    "window_length",
]
