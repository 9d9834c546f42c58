"""Contract checks: run them on your own kernels, transitions, smoothers, encoders and emissions.

Each returns nothing, or raises AssertionError with the promise that is broken.
"""

from lamperti.testing._dense import DensePath, dense_path
from lamperti.testing._emissions import check_emission
from lamperti.testing._encoders import check_encoder
from lamperti.testing._kernels import check_kernel
from lamperti.testing._linear import LinearTransition
from lamperti.testing._smoothers import check_smoother
from lamperti.testing._transitions import check_transition

__all__ = [
    "DensePath",
    "LinearTransition",
    "check_emission",
    "check_encoder",
    "check_kernel",
    "check_smoother",
    "check_transition",
    "dense_path",
]
