"""BLAS on one thread while we train.

Training factorises many small matrices, one after another, by the LAPACK that jax takes from scipy. OpenBLAS shares
those of 32 rows and more among threads and lets each wait for the next in a busy loop: no faster, and a second core
is lost all the time (docs/adr/0017).
"""

import threading
from contextlib import AbstractContextManager
from types import TracebackType

from threadpoolctl import threadpool_limits


class _OneThread(AbstractContextManager):
    """Counted, because the setting is the process's: the last of several trainings that end puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                import scipy.linalg  # noqa: F401  (a library that is loaded later would not be limited)

                self._limits = threadpool_limits(1, user_api="blas")
            self._users += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limits is not None:
                self._limits.restore_original_limits()


one_blas_thread = _OneThread()
"""Used as a context; the process's own setting is back afterwards."""
