"""Covariance functions, one a file, each written for one pair of points."""

from lamperti.kernels._base import Kernel, Mapped, Product, Scaled, Sum
from lamperti.kernels._fields import trainable
from lamperti.kernels._linearity import linear_in_state
from lamperti.kernels._names import KERNEL_NAMES, by_name
from lamperti.kernels._stationary import Stationary
from lamperti.kernels.constant import Constant
from lamperti.kernels.expectations import (
    KernelMoments,
    PreparedCross,
    PreparedKernel,
    expectations,
    has_expectations,
    prepare,
    prepare_cross,
    require_expectations,
)
from lamperti.kernels.linear import Linear
from lamperti.kernels.matern12 import Matern12
from lamperti.kernels.matern32 import Matern32
from lamperti.kernels.matern52 import Matern52
from lamperti.kernels.periodic import Periodic
from lamperti.kernels.rational_quadratic import RationalQuadratic
from lamperti.kernels.squared_exponential import SquaredExponential

__all__ = [
    "KERNEL_NAMES",
    "Constant",
    "Kernel",
    "KernelMoments",
    "Linear",
    "Mapped",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "PreparedCross",
    "PreparedKernel",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "by_name",
    "expectations",
    "has_expectations",
    "linear_in_state",
    "prepare",
    "prepare_cross",
    "require_expectations",
    "trainable",
]
