"""What glibc's malloc does with freed memory; nothing on another C library, or where the environment sets malloc.

Every training step takes the same blocks of memory and frees them. glibc's malloc gives blocks of more than 32 MiB back
to the system at once, which then has to find, clear and map the same pages again: a sixth of a step (docs/adr/0019).
A compiler frees what it has used in small pieces, which malloc keeps: some fifty megabytes for each shape of a model.
"""

import ctypes
import functools
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names in malloc.h
_MIB = 2**20
_KEEPING = {_MMAP_THRESHOLD: 1024 * _MIB, _TRIM_THRESHOLD: 2047 * _MIB, _TOP_PAD: 64 * _MIB}
# glibc cannot be asked for its settings. These are what it arrives at by itself once a large block was freed.
_USUAL = {_MMAP_THRESHOLD: 32 * _MIB, _TRIM_THRESHOLD: 64 * _MIB, _TOP_PAD: _MIB // 8}


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Within it, freed memory is kept for the next step; afterwards it is given back."""
    libc = _libc()
    if libc is None:
        yield
        return
    _mallopt(libc, _KEEPING)
    try:
        yield
    finally:
        _mallopt(libc, _USUAL)
        give_back()


def give_back() -> None:
    """Give all that is free back to the system."""
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(ctypes.c_size_t(0))


def _libc() -> ctypes.CDLL | None:
    """The C library, if it is one whose malloc is ours to set: whoever started the process may have chosen."""
    chosen = "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(n.startswith("MALLOC_") for n in os.environ)
    return ctypes.CDLL(None) if _is_glibc() and not chosen else None


@functools.cache
def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"


def _mallopt(libc: ctypes.CDLL, options: dict[int, int]) -> None:
    for name, value in options.items():
        libc.mallopt(ctypes.c_int(name), ctypes.c_int(value))
