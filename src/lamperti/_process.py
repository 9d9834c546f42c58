"""Settings of the process while we train: one BLAS thread, and freed memory kept.

Training factorises many small matrices, one after another, by the LAPACK that jax takes from scipy. OpenBLAS shares
those of 32 rows and more among threads and lets each wait for the next in a busy loop: no faster, and a second core
is lost all the time (docs/adr/0017).

Every step takes the same blocks of memory and frees them. glibc's malloc gives blocks of more than 32 MiB back to the
system at once, which then has to find, clear and map the same pages again: a sixth of a step (docs/adr/0019).
"""

import ctypes
import os
import platform
import threading
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType

from threadpoolctl import threadpool_limits

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names in malloc.h
_MIB = 2**20
_KEEPING = {_MMAP_THRESHOLD: 1024 * _MIB, _TRIM_THRESHOLD: 2047 * _MIB, _TOP_PAD: 64 * _MIB}
# glibc cannot be asked for its settings. These are what it arrives at by itself once a large block was freed.
_USUAL = {_MMAP_THRESHOLD: 32 * _MIB, _TRIM_THRESHOLD: 64 * _MIB, _TOP_PAD: _MIB // 8}


class _WhileTraining(AbstractContextManager):
    """Counted, because the settings are the process's: the last of several trainings that end puts them back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._settings = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._settings.enter_context(_one_blas_thread())
                self._settings.enter_context(_freed_memory_kept())
            self._users += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._settings.close()


while_training = _WhileTraining()
"""Used as a context; the process's own settings are back afterwards."""


@contextmanager
def _one_blas_thread():
    import scipy.linalg  # noqa: F401  (a library that is loaded later would not be limited)

    limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        limits.restore_original_limits()


@contextmanager
def _freed_memory_kept():
    if platform.libc_ver()[0] != "glibc" or _malloc_is_set():
        yield
        return
    libc = ctypes.CDLL(None)
    _mallopt(libc, _KEEPING)
    try:
        yield
    finally:
        _mallopt(libc, _USUAL)
        libc.malloc_trim(ctypes.c_size_t(0))


def _malloc_is_set() -> bool:
    """Whoever started the process chose for themselves."""
    return "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(n.startswith("MALLOC_") for n in os.environ)


def _mallopt(libc: ctypes.CDLL, options: dict[int, int]) -> None:
    for name, value in options.items():
        libc.mallopt(ctypes.c_int(name), ctypes.c_int(value))
