"""What was understood of data, and what may be wrong with it."""

from lamperti.data.checking.problems import Problem
from lamperti.data.checking.report import ChannelSummary, Check, SeriesSummary, Suggestion, check, examine
from lamperti.data.checking.sampling import Gap, Sampling

__all__ = ["ChannelSummary", "Check", "Gap", "Problem", "Sampling", "SeriesSummary", "Suggestion", "check", "examine"]
