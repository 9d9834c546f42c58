"""Whether a kernel's functions are all linear (affine) in the state."""

from lamperti.interfaces import AbstractKernel
from lamperti.kernels._base import Mapped, Product, Scaled, Sum
from lamperti.kernels.constant import Constant
from lamperti.kernels.linear import Linear


def linear_in_state(kernel: AbstractKernel) -> bool:
    """True for sums, scalings and maps of linear and constant kernels: their drift is B x + c.

    >>> from lamperti.kernels import by_name
    >>> linear_in_state(by_name("linear+constant", dim=2, lengthscale=1.0))
    True
    >>> linear_in_state(by_name("linear*linear", dim=2, lengthscale=1.0))
    False
    """
    if isinstance(kernel, Sum):
        return linear_in_state(kernel.left) and linear_in_state(kernel.right)
    if isinstance(kernel, Product):
        return (isinstance(kernel.left, Constant) and linear_in_state(kernel.right)) or (
            isinstance(kernel.right, Constant) and linear_in_state(kernel.left)
        )
    if isinstance(kernel, Scaled | Mapped):
        return linear_in_state(kernel.kernel)
    return isinstance(kernel, Linear | Constant)
