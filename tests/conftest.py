"""What every test shares: run-time checks of shapes and types, and compiled programs kept between runs."""

import gc
import os
import signal
from pathlib import Path

from jaxtyping import install_import_hook

_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# Most of the suite's time goes into compiling small programs that run once: unoptimised code takes half of it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# A shell starts its background jobs deaf to Ctrl-C, which the tests press; lamperti leaves a deaf process deaf.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Must come before anything imports lamperti: annotations are checked in modules that are imported from here on.
# Left out: ``config``, because beartype refuses ``typing.Self`` on a method that is decorated by itself, as the hook
# does; ``interfaces``, because a stack of affine steps has a leading axis that its fields do not name.
_PACKAGE = Path(__file__).parents[1] / "src" / "lamperti"
# The edge of the library and its data refuse bad input with errors of their own, which the tests provoke.
_EDGE = {"api", "baselines", "bench", "cli", "data", "diagnostics", "evaluation"}
_EDGE |= {"fitting", "io", "report", "results", "runs", "viz"}
_UNCHECKED = {"__init__", "__pycache__", "config", "interfaces"} | _EDGE
_CHECKED = sorted({path.stem for path in _PACKAGE.iterdir()} - _UNCHECKED)
install_import_hook([f"lamperti.{name}" for name in _CHECKED], "beartype.beartype")

# The library lets go of its own programs, but tests compile many besides, op by op and to compare with. Each takes a
# few of the memory maps that Linux grants a process (65,530); beyond them the compiler dies of a segmentation fault.
_MAPS, _MANY_MAPS = Path("/proc/self/maps"), 25_000


def pytest_runtest_teardown(item, nextitem):
    """Let go of compiled programs between files, when there are many; what is needed again comes from the cache."""
    between_files = nextitem is None or nextitem.path != item.path
    if between_files and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MANY_MAPS:
        import jax

        jax.clear_caches()
        gc.collect()
