"""Is a fit to be trusted? Plain computations on a fitted model and data. Nothing here draws or prints."""

from lamperti.diagnostics.fixed_points import FixedPoint, fixed_points
from lamperti.diagnostics.whiteness import Whiteness, whiteness

__all__ = ["FixedPoint", "Whiteness", "fixed_points", "whiteness"]
