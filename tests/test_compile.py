"""The same shapes are compiled once; programs that were not used lately are let go."""

import gc
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.fitted import FIT, MODEL

import lamperti as lp
from lamperti._compile import Programs, compiled, to_jax

_COMPILED = "/jax/core/compile/backend_compile_duration"
_seen: list[str] = []
"""Every program that was compiled, or taken from the cache of compiled programs on disk."""


def _note(event: str, *_: float, **about: str) -> None:
    if event == _COMPILED:
        _seen.append(about["fun_name"])


jax.monitoring.register_event_duration_secs_listener(_note)


def series(seed: int, n_samples: int = 60):
    return lp.systems.ornstein_uhlenbeck(4, n_samples, dt=0.1, observation_noise=0.1, seed=seed).series


def fit_and_use(seed: int) -> lp.FitResult:
    """A fit with everything that a fit can have, other data and other random numbers for each seed."""
    data = series(seed)
    full = FIT.model_copy(update={"seed": seed, "gauge_at": (2,), "calibrate": True, "max_iterations": 2})
    result = lp.fit(data, MODEL, full)
    lp.embed(result, data[0])
    lp.forecast(result, data[0], horizon=5, n_samples=8, n_particles=20)
    lp.simulate(result, n_steps=5)
    result.drift(result.states)
    result.diffusion(result.states)
    return result


def n_maps() -> int:
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def n_executables() -> int:
    gc.collect()
    return len(jax.devices()[0].client.live_executables())


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="memory maps are counted on Linux")
def test_fits_of_the_same_shape_compile_nothing_and_take_no_more_memory_maps():
    for seed in (1, 2):  # one fit to the likelihood is taken, the other refused: what follows it differs
        fit_and_use(seed)
    before, _ = n_maps(), _seen.clear()
    for seed in (1, 2):
        fit_and_use(seed)
    lp.fit(series(3), MODEL, FIT.model_copy(update={"seed": 3}))  # other data
    assert not _seen
    assert n_maps() < before + 50


def test_data_sets_of_other_sizes_share_the_training_step():
    lp.fit(series(0), MODEL, FIT)
    _seen.clear()
    lp.fit(series(0, n_samples=70), MODEL, FIT)
    assert "jit(_step)" not in _seen


def test_forecasts_and_embeddings_of_series_of_many_lengths_share_programs():
    result = lp.fit(series(0), MODEL, FIT)

    def use(n: int) -> None:
        one = series(9, n_samples=n)[0]
        lp.embed(result, one)
        lp.forecast(result, one, horizon=5, n_samples=8, n_particles=20)

    use(40)
    _seen.clear()
    for n in (41, 47, 52, 60):
        use(n)
    assert not _seen


def test_the_program_used_longest_ago_is_let_go():
    programs = Programs(most=2)
    double = compiled(lambda x: 2 * x, programs=programs)
    inputs = [to_jax(np.arange(n, dtype=float)) for n in (3, 4, 5)]
    before = n_executables()
    for k in (0, 1, 0, 2):  # the second goes when the third comes
        double(inputs[k])
    assert (len(programs), programs.traces, n_executables()) == (2, 3, before + 2)
    double(inputs[0])
    assert programs.traces == 3
    double(inputs[1])
    assert (len(programs), programs.traces, n_executables()) == (2, 4, before + 2)


def test_a_program_is_found_by_shapes_and_options_and_gives_back_what_is_no_array():
    programs = Programs(most=9)

    @compiled(programs=programs)
    def scaled(model, *, power):
        return model["x"] ** power, model["name"], type(power)

    for x, power in ((1.0, 2), (3.0, 2), (3.0, 2.0)):  # 2 == 2.0, but the results have other types
        out, name, kind = scaled({"x": jnp.full(3, x), "name": "n"}, power=power)
        assert (out.tolist(), name, kind) == ([x**power] * 3, "n", type(power))
    assert programs.traces == 2
    scaled({"x": jnp.ones(3, dtype=int), "name": "n"}, power=2)
    scaled({"x": jnp.ones(3), "name": "m"}, power=2)
    assert programs.traces == 4


def test_only_what_is_not_in_the_first_argument_is_donated():
    @compiled(donate=True, programs=Programs(most=1))
    def add(kept, given):
        return kept + given

    kept, given = to_jax(np.ones(4)), jax.jit(lambda: jnp.full(4, 2.0))()
    assert add(kept, given).tolist() == [3.0] * 4
    assert not kept.is_deleted() and given.is_deleted()


def test_an_array_of_jax_does_not_change_with_the_numpy_array_it_came_from():
    raw = np.zeros(1000 + 8)
    aligned = raw[(-raw.ctypes.data % 64) // 8 :][:1000]  # which jax would use in place
    taken = to_jax(aligned)
    aligned[:] = 1.0
    assert not np.asarray(taken).any()
