"""Is a fit to be trusted? Plain computations on a fitted model and data, and the caveats that they raise.

`diagnose` does everything; each part can also be called by itself. Nothing here draws or prints.
"""

from lamperti.diagnostics.caveats import Caveat
from lamperti.diagnostics.diagnose import Diagnostics, Effort, diagnose
from lamperti.diagnostics.fixed_points import FixedPoint, fixed_points
from lamperti.diagnostics.held_out import ForecastCheck, check_forecasts
from lamperti.diagnostics.long_run import Likeness, likeness, lyapunov
from lamperti.diagnostics.residuals import Residuals, residuals
from lamperti.diagnostics.slices import Slice, slices
from lamperti.diagnostics.verdict import Verdict, judge
from lamperti.diagnostics.whiteness import Whiteness, whiteness

__all__ = [
    "Caveat",
    "Diagnostics",
    "Effort",
    "FixedPoint",
    "ForecastCheck",
    "Likeness",
    "Residuals",
    "Slice",
    "Verdict",
    "Whiteness",
    "check_forecasts",
    "diagnose",
    "fixed_points",
    "judge",
    "likeness",
    "lyapunov",
    "residuals",
    "slices",
    "whiteness",
]
