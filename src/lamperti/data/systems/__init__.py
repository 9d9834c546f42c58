"""Simulated systems with a known law, each observed in its first coordinate (one of them through a sensor)."""

from lamperti.data.systems._simulate import Simulated, System
from lamperti.data.systems.cells import beta_cell, morris_lecar
from lamperti.data.systems.chaotic import lorenz, lorenz_transient, rossler
from lamperti.data.systems.chemical import brusselator
from lamperti.data.systems.heart import electrocardiogram
from lamperti.data.systems.linear import excited_oscillator, ornstein_uhlenbeck
from lamperti.data.systems.oscillators import (
    double_well,
    duffing,
    fitzhugh_nagumo,
    hindmarsh_rose,
    saturated_double_well,
    van_der_pol,
)
from lamperti.data.systems.population import lotka_volterra

__all__ = [
    "Simulated",
    "System",
    "beta_cell",
    "brusselator",
    "double_well",
    "duffing",
    "electrocardiogram",
    "excited_oscillator",
    "fitzhugh_nagumo",
    "hindmarsh_rose",
    "lorenz",
    "lorenz_transient",
    "lotka_volterra",
    "morris_lecar",
    "ornstein_uhlenbeck",
    "rossler",
    "saturated_double_well",
    "van_der_pol",
]
