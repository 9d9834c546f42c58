"""Emissions: how a state shows itself in the data."""

from lamperti.emissions.linear_gaussian import LinearGaussian

__all__ = ["LinearGaussian"]
