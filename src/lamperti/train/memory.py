"""How much memory training or sampled paths will take, so that too much is refused beforehand.

Notation   B segments of N samples, S paths (or K particles) each, M inducing inputs, k kernels
           the kernel between every path's state and every inducing input: B S N M k numbers, some eight times over
           in a gradient; encoders, chains and compiled programs are small beside it
           of S paths over H steps: D states and P channels each, held several times over on their way out
"""

from pathlib import Path

from lamperti._errors import ConfigError

_COPIES = 8  # an estimate: forward values kept for the gradient, and the gradient's own
_PATHS = 4  # as compiled, as drawn, as NumPy's, in the user's units
_BASE = 600 * 2**20  # the process with jax and a compiled step
_MEMINFO = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def step_bytes(*, batch_size: int, length: int, n_paths: int, n_inducing: int, n_kernels: int) -> int:
    """About what one training step needs."""
    return _BASE + 8 * _COPIES * batch_size * length * n_paths * n_inducing * n_kernels


def path_bytes(*, n_paths: int, n_steps: int, width: int, n_inducing: int) -> int:
    """About what sampled paths need, each step of ``width`` states and channels; and their drifts."""
    return 8 * n_paths * (_PATHS * n_steps * width + 2 * n_inducing * width)


def available_bytes() -> int | None:
    """Memory that this process may still take; None where the system does not say."""
    try:
        line = next(line for line in _MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return None
    try:
        return min(free, int(_LIMIT.read_text()) - int(_USED.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return free


def check_memory(
    needed: int, what: str = "training", less: str = "batch_size, segment_length, n_samples, n_particles or n_inducing"
) -> None:
    """Raise `ConfigError` when ``what`` needs more than there is; ``less`` names what to make smaller."""
    free = available_bytes()
    if free is not None and needed > free:
        raise ConfigError(
            f"{what} would take about {needed / 1e9:.1f} GB of memory; {free / 1e9:.1f} GB are free. Use a smaller "
            f"{less}."
        )
