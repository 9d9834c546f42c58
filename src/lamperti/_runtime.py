"""Process-wide settings of jax, made once when lamperti is imported.

Three things are set, each of which the environment can overrule:

* ``PJRT_NPROC``: jaxlib's CPU client can deadlock on machines with two cores when two batched triangular
  solves run at once (docs/adr/0004). A pool of eight threads avoids it. Left alone when already set.
* 64-bit floats: the natural parameters of the drift lose their small diffusion in 32 bits (docs/adr/0002).
  This switch holds for the whole process, so arrays that *you* make with jax are 64-bit too.
* The persistent compilation cache, so that a second run starts in seconds. ``JAX_COMPILATION_CACHE_DIR``
  chooses the folder; ``LAMPERTI_CACHE=off`` turns it off.
"""

import os
import sys
import warnings
from pathlib import Path

from lamperti._errors import ForkError, LampertiWarning

_MIN_POOL = 8


def configure() -> None:
    """Prepare the process; called by ``import lamperti`` before anything imports jax."""
    already = sys.modules.get("jax") is not None
    if "PJRT_NPROC" not in os.environ and (os.cpu_count() or 1) < _MIN_POOL:
        os.environ["PJRT_NPROC"] = str(_MIN_POOL)

    import jax

    if already and not getattr(jax.config, "jax_enable_x64", False) and _backend_started():
        warnings.warn(
            "lamperti switches jax to 64-bit floats for this process; jax was already running in 32 bits. "
            "Import lamperti before using jax, or set JAX_ENABLE_X64=1.",
            LampertiWarning,
            stacklevel=3,
        )
    jax.config.update("jax_enable_x64", True)
    _use_compilation_cache(jax)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_note_fork, after_in_child=_take_note)


class _Fork:
    """Whether this process is a copy of one in which jax had started threads, which a copy does not have."""

    pending = False
    happened = False


def _note_fork() -> None:
    _Fork.pending = _backend_started()


def _take_note() -> None:
    _Fork.happened = _Fork.happened or _Fork.pending


def refuse_fork() -> None:
    """Raise `ForkError` where jax would wait for ever for threads that the fork has not copied."""
    if _Fork.happened:
        raise ForkError(
            "this process is a fork of one that had used lamperti (or jax) already, and jax does not work in a fork. "
            'Start workers with multiprocessing.get_context("spawn").'
        )


def _backend_started() -> bool:
    from jax._src import xla_bridge

    return bool(getattr(xla_bridge, "_backends", {}))


def _use_compilation_cache(jax) -> None:
    if os.environ.get("LAMPERTI_CACHE", "").lower() in {"off", "0", "no"} or jax.config.jax_compilation_cache_dir:
        return
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user whom the system does not know, as in some containers: nowhere to keep anything
        return
    jax.config.update("jax_compilation_cache_dir", str(root / "lamperti" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
