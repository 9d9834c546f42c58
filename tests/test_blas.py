"""BLAS has one thread while we train, and its own number afterwards."""

import pytest
from tests.fitted import FIT, MODEL, data
from threadpoolctl import threadpool_info, threadpool_limits

import lamperti as lp
from lamperti._blas import one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    import scipy.linalg  # noqa: F401

    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def test_one_thread_inside_and_the_former_number_after():
    with one_blas_thread:
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_last_of_several_puts_it_back():
    one_blas_thread.__enter__()
    one_blas_thread.__enter__()
    one_blas_thread.__exit__(None, None, None)
    assert blas_threads() == {1}
    one_blas_thread.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_an_error_puts_it_back():
    with pytest.raises(RuntimeError, match="boom"), one_blas_thread:
        raise RuntimeError("boom")
    assert blas_threads() == {2}


def test_training_has_one_thread():
    seen = []
    lp.fit(data().series, MODEL, FIT, progress=lambda _: seen.append(blas_threads()))
    assert seen and all(threads == {1} for threads in seen)
    assert blas_threads() == {2}
