"""While we train BLAS has one thread and malloc keeps what is freed; both are as before afterwards."""

import ctypes
import platform
import resource

import pytest
from tests.fitted import FIT, MODEL, data
from threadpoolctl import threadpool_info, threadpool_limits

import lamperti as lp
from lamperti._process import while_training


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    import scipy.linalg  # noqa: F401

    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def test_one_thread_inside_and_the_former_number_after():
    with while_training:
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_last_of_several_puts_it_back():
    while_training.__enter__()
    while_training.__enter__()
    while_training.__exit__(None, None, None)
    assert blas_threads() == {1}
    while_training.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_an_error_puts_it_back():
    with pytest.raises(RuntimeError, match="boom"), while_training:
        raise RuntimeError("boom")
    assert blas_threads() == {2}


def test_training_has_one_thread():
    seen = []
    lp.fit(data().series, MODEL, FIT, progress=lambda _: seen.append(blas_threads()))
    assert seen and all(threads == {1} for threads in seen)
    assert blas_threads() == {2}


BLOCK = 256 * 2**20  # beyond what glibc keeps by itself


def faults_of_a_second_block() -> int:
    """Pages that the system maps when a block is taken, filled and freed a second time."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes, libc.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    before = 0
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        block = libc.malloc(BLOCK)
        libc.memset(block, 1, BLOCK)
        libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.fixture
def malloc_of_glibc(monkeypatch):
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("another C library has another malloc")
    for name in ("GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"):
        monkeypatch.delenv(name, raising=False)


def test_freed_memory_is_kept_while_training_and_given_back_after(malloc_of_glibc):
    pages = BLOCK // resource.getpagesize()
    with while_training:
        assert faults_of_a_second_block() < pages // 10
    assert faults_of_a_second_block() > pages // 2


def test_settings_of_malloc_in_the_environment_are_respected(malloc_of_glibc, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    with while_training:
        assert faults_of_a_second_block() > BLOCK // resource.getpagesize() // 2
