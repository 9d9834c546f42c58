"""Kernels built from the names in a configuration."""

import jax.numpy as jnp
import numpy as np
import pytest

from lamperti._errors import ConfigError
from lamperti.kernels import KERNEL_NAMES, Linear, Matern32, Product, SquaredExponential, Sum, by_name


def test_lengthscale_is_given_to_every_coordinate():
    kernel = by_name("se", dim=3, lengthscale=2.0)
    assert isinstance(kernel, SquaredExponential)
    np.testing.assert_array_equal(kernel.lengthscale, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_every_named_kernel_depends_on_x_over_lengthscale(name):
    x, z = jnp.array([[0.3, -1.0]]), jnp.array([[1.0, 0.4]])
    unit, double = by_name(name, 2, 1.0), by_name(name, 2, 2.0)
    np.testing.assert_allclose(double.gram(2 * x, 2 * z), unit.gram(x, z), rtol=1e-12)


def test_sums_and_products_of_names_bind_like_arithmetic():
    kernel = by_name(" Matern32 + SE*linear", dim=2, lengthscale=1.0)
    assert isinstance(kernel, Sum)
    assert isinstance(kernel.left, Matern32)
    assert isinstance(kernel.right, Product)
    assert isinstance(kernel.right.right, Linear)


def test_unknown_name_lists_the_choices_and_a_close_one():
    with pytest.raises(ConfigError) as error:
        by_name("se+matern23", dim=2, lengthscale=1.0)
    message = str(error.value)
    assert "unknown kernel 'matern23' in 'se+matern23'" in message
    assert "Did you mean 'matern" in message
    assert all(name in message for name in KERNEL_NAMES)


@pytest.mark.parametrize("name", ["", "se+", "*"])
def test_a_missing_name_is_refused(name):
    with pytest.raises(ConfigError, match="unknown kernel ''"):
        by_name(name, dim=2, lengthscale=1.0)


def test_dim_and_lengthscale_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="dim"):
        by_name("se", dim=0, lengthscale=1.0)
    with pytest.raises(ConfigError, match="lengthscale"):
        by_name("se", dim=1, lengthscale=-1.0)
