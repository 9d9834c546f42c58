"""Kernels against their contract, against tinygp, and against finite differences."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from tinygp.kernels.distance import L2Distance

from lamperti import kernels
from lamperti._errors import ConfigError
from lamperti._params import PositiveParam, positive, realise
from lamperti.interfaces import AbstractKernel
from lamperti.kernels import (
    Constant,
    Kernel,
    Linear,
    Mapped,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Scaled,
    SquaredExponential,
    Sum,
    trainable,
)
from lamperti.kernels._stationary import squared_distances
from lamperti.testing._kernels import check_kernel

LENGTHSCALE = np.array([0.7, 1.6])
PERIOD = np.array([2.0, 3.5])
SIMPLE = {
    "se": SquaredExponential(LENGTHSCALE, 1.7),
    "se shared": SquaredExponential(0.8, 1.7),
    "matern12": Matern12(LENGTHSCALE, 1.7),
    "matern32": Matern32(LENGTHSCALE, 1.7),
    "matern52": Matern52(LENGTHSCALE, 1.7),
    "rq": RationalQuadratic(LENGTHSCALE, 1.7, 0.6),
    "periodic": Periodic(PERIOD, LENGTHSCALE, 1.7),
    "linear": Linear([0.5, 2.0]),
    "constant": Constant(1.7),
}
COMPOSITE = {
    "sum": SIMPLE["se"] + SIMPLE["linear"],
    "product": SIMPLE["matern32"] * SIMPLE["periodic"],
    "scaled": 2.5 * SIMPLE["matern52"],
    "mapped": Mapped(SIMPLE["matern52"], jnp.asarray([[1.0, 0.5], [-0.3, 0.8]])),
    "nested": 0.5 * (SIMPLE["se"] + SIMPLE["matern12"]) * SIMPLE["linear"] + SIMPLE["constant"],
}
ALL = SIMPLE | COMPOSITE
SMOOTH = ["se", "matern32", "matern52", "rq"]


def points(n, dim=2, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, dim)))


@pytest.mark.parametrize("name", [*SIMPLE, "product", "nested"])
def test_every_kernel_keeps_the_contract(name):
    check_kernel(ALL[name], dim=2)


def test_a_kernel_works_on_one_coordinate():
    check_kernel(Matern32(0.5) + Linear(2.0), dim=1)


def test_every_exported_kernel_class_is_abstract_or_final():
    classes = [c for c in vars(kernels).values() if inspect.isclass(c) and issubclass(c, AbstractKernel)]
    assert len(classes) >= 13
    assert all(inspect.isabstract(c) != getattr(c, "__final__", False) for c in classes)


class _Broken(Kernel):
    """A squared exponential with one promise broken."""

    promise: str = eqx.field(static=True)

    def __call__(self, x, z):
        if self.promise == "not symmetric":
            return jnp.exp(-0.5 * jnp.sum((x - 0.9 * z) ** 2))
        if self.promise == "positive semi-definite":
            return jnp.exp(-0.5 * jnp.sum((x - z) ** 2)) - 0.9
        if self.promise == "not finite where two points coincide":
            return jnp.exp(-jnp.linalg.norm(x - z))
        return jnp.exp(-0.5 * jnp.sum((x - z) ** 2))

    def gram(self, x, z):
        return super().gram(x, z) * (1.001 if self.promise == "gram disagrees" else 1.0)

    def diagonal(self, x):
        return super().diagonal(x) + (0.001 if self.promise == "diagonal disagrees" else 0.0)


@pytest.mark.parametrize(
    "promise",
    [
        "not symmetric",
        "positive semi-definite",
        "not finite where two points coincide",
        "gram disagrees",
        "diagonal disagrees",
    ],
)
def test_the_contract_check_names_the_broken_promise(promise):
    with pytest.raises(AssertionError, match=promise):
        check_kernel(_Broken(promise), dim=2)


def tinygp_oracle(name):
    """The tinygp kernel of the same covariance, with its inputs divided by the lengthscales."""
    tg = tinygp.kernels
    l2 = L2Distance()  # the default of all but ExpSquared is the sum of absolute differences
    oracle = {
        "se": tg.ExpSquared(),
        "matern12": tg.Exp(distance=l2),
        "matern32": tg.Matern32(distance=l2),
        "matern52": tg.Matern52(distance=l2),
        "rq": tg.RationalQuadratic(alpha=0.6, distance=l2),
    }[name]
    return tinygp.transforms.Linear(1.0 / LENGTHSCALE, 1.7 * oracle)


@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52", "rq"])
def test_stationary_kernels_agree_with_tinygp(name):
    x, z = points(6), points(4, seed=1)
    np.testing.assert_allclose(ALL[name].gram(x, z), tinygp_oracle(name)(x, z), rtol=1e-11)


def test_periodic_linear_and_constant_agree_with_tinygp():
    x, z = points(6, dim=1), points(4, dim=1, seed=1)
    tg = tinygp.kernels
    ours = Periodic(1.4, 0.6, 1.7)
    oracle = 1.7 * tg.ExpSineSquared(scale=jnp.asarray(1.4), gamma=jnp.asarray(2.0 / 0.6**2))
    np.testing.assert_allclose(ours.gram(x, z), oracle(x[:, 0], z[:, 0]), rtol=1e-12)
    np.testing.assert_allclose(Linear(0.3).gram(x, z), (0.3 * tg.DotProduct())(x, z), rtol=1e-12)
    np.testing.assert_allclose(Constant(0.3).gram(x, z), tg.Constant(0.3)(x, z), rtol=1e-12)


def test_periodic_kernel_repeats_along_each_coordinate():
    x, z = points(5), points(3, seed=1)
    kernel = ALL["periodic"]
    for shift in ([PERIOD[0], 0.0], [0.0, PERIOD[1]]):
        np.testing.assert_allclose(kernel.gram(x + jnp.array(shift), z), kernel.gram(x, z), rtol=1e-10)


def test_rational_quadratic_tends_to_the_squared_exponential():
    x = points(6)
    wide = RationalQuadratic(LENGTHSCALE, 1.7, 1e9)
    np.testing.assert_allclose(wide.gram(x, x), SIMPLE["se"].gram(x, x), rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_gram_of_many_points_is_positive_semidefinite(name):
    eigenvalues = np.linalg.eigvalsh(ALL[name].gram(points(30), points(30)))
    assert eigenvalues[0] > -1e-11 * eigenvalues[-1]


def central_differences(function, at, h=1e-5):
    steps = h * jnp.eye(len(at))
    return jax.vmap(lambda e: (function(at + e) - function(at - e)) / (2 * h))(steps)


@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52", "rq", "periodic", "nested"])
def test_gradients_agree_with_central_differences(name):
    @eqx.filter_jit
    def gradients(kernel, x, z):
        def by_call(a):
            return kernel(a, z[0])

        def by_gram(a):
            return kernel.gram(a[None], z)[0, 0]

        return jax.grad(by_call)(x), jax.grad(by_gram)(x), central_differences(by_call, x)

    by_call, by_gram, numeric = gradients(ALL[name], points(1)[0], points(2, seed=3))
    np.testing.assert_allclose(by_call, numeric, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(by_gram, numeric, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["rq", "periodic", "nested"])
def test_parameter_gradients_agree_with_central_differences(name):
    x, z = points(4), points(3, seed=1)
    parameters, unravel = ravel_pytree(trainable(ALL[name]))

    @jax.jit
    def gradients(parameters):
        def total(flat):
            return jnp.sum(jnp.sin(realise(unravel(flat)).gram(x, z)))

        return jax.grad(total)(parameters), central_differences(total, parameters)

    exact, numeric = gradients(parameters)
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("through", ["call", "gram"])
def test_curvature_at_coincident_points_is_that_of_the_formula(name, through):
    kernel = ALL[name]
    # Two inducing inputs, so that the common centre is not the point itself.
    z = jnp.array([[0.3, -0.2], [5.0, 4.0]])

    def value(x):
        return kernel(x, z[0]) if through == "call" else kernel.gram(x[None], z)[0, 0]

    # -k''(0) l^2 / variance: nu / (nu - 1) for a Matern of order nu.
    curvature = {"se": 1.0, "matern32": 3.0, "matern52": 5.0 / 3.0, "rq": 1.0}[name]
    expected = -curvature * 1.7 / LENGTHSCALE**2 * np.eye(2)
    slope, bend = jax.jit(lambda x: (jax.grad(value)(x), jax.jacrev(jax.jacfwd(value))(x)))(z[0])
    np.testing.assert_allclose(bend, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["matern12", "matern32"])
def test_gradient_of_a_gram_with_its_own_points_is_finite_and_right(name):
    kernel, z = ALL[name], points(4)

    @jax.jit
    def gradients(z):
        def total(flat):
            return jnp.sum(jnp.cos(kernel.gram(flat.reshape(z.shape), flat.reshape(z.shape))))

        return jax.grad(total)(z.ravel()), central_differences(total, z.ravel())

    exact, numeric = gradients(z)
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-8)
    assert np.all(np.isfinite(gradients(jnp.zeros_like(z))[0]))


def test_squared_distances_survive_a_large_common_shift():
    x, z = points(5), points(4, seed=1)
    exact = np.sum((np.asarray(x)[:, None] - np.asarray(z)) ** 2, axis=-1)
    np.testing.assert_allclose(squared_distances(x + 1e5, z + 1e5), exact, rtol=1e-8)


def test_distance_of_coincident_points_is_exactly_zero_and_never_negative():
    z = points(50, seed=4) + 3.0
    r2 = np.asarray(squared_distances(z, z))
    assert np.all(np.diag(r2) == 0.0)
    assert r2.min() >= 0.0


def test_a_nan_input_is_not_hidden_by_the_clamp():
    x = points(2).at[0, 0].set(jnp.nan)
    assert np.isnan(squared_distances(x, points(2, seed=1))[0]).all()


def test_operators_build_sums_products_and_scalings():
    a, b, x = SIMPLE["se"], SIMPLE["linear"], points(5)
    built = [(a + b, Sum), (a * b, Product), (3.0 * a, Scaled), (a * jnp.asarray(3.0), Scaled)]
    assert all(type(kernel) is kind for kernel, kind in built)
    ga, gb = a.gram(x, x), b.gram(x, x)
    for (kernel, _), expected in zip(built, [ga + gb, ga * gb, 3.0 * ga, 3.0 * ga], strict=True):
        np.testing.assert_allclose(kernel.gram(x, x), expected, rtol=1e-12)
    assert isinstance(np.float64(3.0) * a, Scaled)
    assert isinstance(a * positive(3.0), Scaled)


def test_operators_refuse_what_is_no_kernel():
    with pytest.raises(TypeError):
        SIMPLE["se"] + 1.0
    with pytest.raises(TypeError):
        SIMPLE["se"] * "linear"


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.integers(0, 1000))
def test_scaling_distributes_over_sums(factor, lengthscale, seed):
    a, b, x = SquaredExponential(lengthscale), Linear(lengthscale), points(4, seed=seed)
    np.testing.assert_allclose(
        (factor * (a + b)).gram(x, x), (factor * a + factor * b).gram(x, x), rtol=1e-10, atol=1e-12
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.05, 20.0), st.sampled_from([Matern12, Matern32, Matern52]))
def test_stationary_kernels_do_not_see_a_shift(seed, lengthscale, kind):
    kernel, x, z = kind(lengthscale), points(4, seed=seed), points(3, seed=seed + 1)
    np.testing.assert_allclose(kernel.gram(x + 7.0, z + 7.0), kernel.gram(x, z), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in ALL if name != "mapped"])  # axes are no parameter
def test_trainable_holds_parameters_and_realise_gives_the_kernel_back(name):
    kernel, is_param = ALL[name], lambda leaf: isinstance(leaf, PositiveParam)
    parameters = trainable(kernel)
    leaves = jax.tree.leaves(parameters, is_leaf=is_param)
    assert len(leaves) == len(jax.tree.leaves(kernel))
    assert all(is_param(leaf) for leaf in leaves)
    assert eqx.tree_equal(realise(parameters), kernel, rtol=1e-14)
    assert eqx.tree_equal(trainable(parameters), parameters)


def test_constructors_accept_parameters_and_keep_them():
    kernel = SquaredExponential(positive([1.0, 2.0]), positive(3.0))
    assert isinstance(kernel.lengthscale, PositiveParam)
    np.testing.assert_allclose(realise(kernel).lengthscale, [1.0, 2.0])


def test_fields_are_strongly_typed_so_that_nothing_recompiles():
    traces = []

    @jax.jit
    def run(kernel):
        traces.append(1)
        return jax.tree.map(lambda leaf: 1.1 * leaf, kernel)

    run(run(2 * SquaredExponential(1.0) + Constant()))
    assert len(traces) == 1


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, -2.0]])
def test_parameters_that_are_not_positive_are_refused(bad):
    with pytest.raises(ConfigError, match="positive and finite"):
        SquaredExponential(bad)
