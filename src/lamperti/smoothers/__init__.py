"""Smoothers: from potentials and dynamics to a chain q(x)."""

from lamperti.smoothers.linearised import Linearised
from lamperti.smoothers.moment_matching import MomentMatching
from lamperti.smoothers.particle import Particle
from lamperti.smoothers.sigma_point import SigmaPoint

__all__ = ["Linearised", "MomentMatching", "Particle", "SigmaPoint"]
