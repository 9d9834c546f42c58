"""Simulated systems with a known law, each observed in its first coordinate."""

from lamperti.data.systems._simulate import Simulated, System
from lamperti.data.systems.chaotic import lorenz, rossler
from lamperti.data.systems.chemical import brusselator
from lamperti.data.systems.linear import excited_oscillator, ornstein_uhlenbeck
from lamperti.data.systems.oscillators import (
    double_well,
    duffing,
    fitzhugh_nagumo,
    hindmarsh_rose,
    van_der_pol,
)
from lamperti.data.systems.population import lotka_volterra

__all__ = [
    "Simulated",
    "System",
    "brusselator",
    "double_well",
    "duffing",
    "excited_oscillator",
    "fitzhugh_nagumo",
    "hindmarsh_rose",
    "lorenz",
    "lotka_volterra",
    "ornstein_uhlenbeck",
    "rossler",
    "van_der_pol",
]
