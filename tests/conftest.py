"""What every test shares: run-time checks of shapes and types, and compiled programs kept between runs."""

import os
from pathlib import Path

from jaxtyping import install_import_hook

_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# Must come before anything imports lamperti: annotations are checked in modules that are imported from here on.
# Packages are named one by one because beartype refuses ``typing.Self`` on methods decorated singly, as here.
CHECKED = ("math", "dynamics", "smoothers", "testing")
install_import_hook([f"lamperti.{name}" for name in CHECKED], "beartype.beartype")
