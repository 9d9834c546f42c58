"""How much memory training or sampled paths will take, so that too much is refused beforehand.

Notation   B segments of N samples, S paths (or K particles) each, M inducing inputs, k kernels
           the kernel between every path's state and every inducing input: B S N M k numbers, some eight times over
           in a gradient; encoders, chains and compiled programs are small beside it
           of S paths over H steps: D states and P channels each, held several times over on their way out
           of K particles: the kernel of each at one step; a smoother also keeps them at every step, and draws S paths
           back through them, S K numbers a step
           of the likelihood: the kernel of 2D + 1 sigma points at every sample, kept for the gradient
"""

from pathlib import Path

from lamperti._errors import ConfigError
from lamperti.config import FitConfig, ModelConfig
from lamperti.smoothers.particle import MARGINAL_PATHS

_COPIES = 8  # an estimate: forward values kept for the gradient, and the gradient's own
_SCANNED = 4  # the same along a scan, which lets go of more (measured: 3.5 at three coordinates)
_KERNELS = 2  # between states and inducing inputs, without a gradient: scaled distances and what they give
_STATES = 6  # of a particle: as it was, as it is, where its step leads, the noise, in the emission
_PICKED = 3  # log-weights of every path's particles, their sums, the comparison that picks one
_PATHS = 4  # as compiled, as drawn, as NumPy's, in the user's units
_BASE = 600 * 2**20  # the process with jax and a compiled step
_MEMINFO = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def step_bytes(
    *, batch_size: int, length: int, n_paths: int, n_inducing: int, n_kernels: int, n_particles: int = 0
) -> int:
    """About what one training step needs."""
    kernels = _COPIES * length * n_paths * n_inducing * n_kernels
    return _BASE + 8 * batch_size * (kernels + _PICKED * n_paths * n_particles)


def likelihood_bytes(*, n_samples: int, dim: int, n_inducing: int, n_kernels: int) -> int:
    """About what the gradient of the likelihood of so many samples needs."""
    return _BASE + 8 * _SCANNED * n_samples * (2 * dim + 1) * n_inducing * n_kernels


def filter_bytes(*, n_particles: int, dim: int, n_inducing: int, n_kernels: int) -> int:
    """About what a particle filter needs."""
    return 8 * n_particles * (_KERNELS * n_inducing * n_kernels + _STATES * dim)


def smoother_bytes(*, n_particles: int, length: int, dim: int, n_inducing: int, n_kernels: int) -> int:
    """About what the states of one series of ``length`` samples need, by the particle smoother."""
    n_paths = max(MARGINAL_PATHS, n_particles)
    states = _STATES * length * n_paths * dim
    return 8 * (states + _KERNELS * length * n_paths * n_inducing * n_kernels + _PICKED * n_paths * n_particles)


def check_training(model: ModelConfig, fit: FitConfig, length: int, *, likelihood_of: int = 0) -> None:
    """Raise `ConfigError` when training with segments of ``length`` samples needs more than there is, or the fit of the
    likelihood of so many samples that comes after it."""
    dim = model.latent_dim or 1
    n_particles = model.n_particles if model.smoother == "particle" else 0
    sizes = {"n_inducing": model.n_inducing, "n_kernels": 1 if model.shared_kernel else dim}
    paths = {"n_paths": max(fit.n_samples, n_particles), "n_particles": n_particles}
    check_memory(step_bytes(batch_size=fit.batch_size, length=length, **paths, **sizes))
    if n_particles:  # the states that the data went through
        needed = smoother_bytes(n_particles=n_particles, length=length, dim=dim, **sizes)
        check_memory(_BASE + needed, "the particle smoother", "n_particles or segment_length")
    if fit.calibrate and likelihood_of:
        check_memory(
            likelihood_bytes(n_samples=likelihood_of, dim=dim, **sizes),
            "the likelihood fit after training",
            "n_inducing or latent_dim, or do without that fit (calibrate=False)",
        )


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
