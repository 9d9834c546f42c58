"""Settings of the process while we train: one BLAS thread, and freed memory kept.

Training factorises many small matrices, one after another, by the LAPACK that jax takes from scipy. OpenBLAS shares
those of 32 rows and more among threads and lets each wait for the next in a busy loop: no faster, and a second core
is lost all the time (docs/adr/0017).
"""

import threading
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType

from threadpoolctl import threadpool_limits

from lamperti._malloc import freed_memory_kept


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
                self._settings.enter_context(freed_memory_kept())
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
