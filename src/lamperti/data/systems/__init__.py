"""Simulated systems with a known law, each observed in its first coordinate."""

from lamperti.data.systems._simulate import Simulated, System
from lamperti.data.systems.chaotic import lorenz, rossler
from lamperti.data.systems.linear import excited_oscillator, ornstein_uhlenbeck
from lamperti.data.systems.oscillators import double_well, fitzhugh_nagumo, van_der_pol
from lamperti.data.systems.population import lotka_volterra

__all__ = [
    "Simulated",
    "System",
    "double_well",
    "excited_oscillator",
    "fitzhugh_nagumo",
    "lorenz",
    "lotka_volterra",
    "ornstein_uhlenbeck",
    "rossler",
    "van_der_pol",
]
