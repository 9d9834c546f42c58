"""``lamperti demo``."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from lamperti._errors import ConfigError
from lamperti._text import visible
from lamperti.api import fit as fit_series
from lamperti.api import forecast, simulate
from lamperti.cli._output import output_folder
from lamperti.cli._run import RUN_FILES, exit_code, summary, told_of, write_run
from lamperti.cli._say import is_quiet
from lamperti.config import FitConfig, ModelConfig
from lamperti.data import systems
from lamperti.data.systems import Simulated
from lamperti.progress import ProgressLine
from lamperti.results import FitResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_TRAIN, _N_SHOWN = 60, 5
_NOISE = 0.1
_HORIZON_SHARE = 0.25
_MAX_ITERATIONS = 20_000  # the clock ends a demo
_FILES = (*RUN_FILES, "phase_space.png", "forecast.png", "free_run.png", "training.png")


@dataclass(frozen=True)
class _Setting:
    simulate: Callable[..., Simulated]
    n_samples: int
    dt: float
    latent_dim: int


_SYSTEMS = {
    "lorenz": _Setting(systems.lorenz, 400, 0.02, 3),
    "rossler": _Setting(systems.rossler, 400, 0.2, 4),
    "ou": _Setting(systems.ornstein_uhlenbeck, 400, 0.1, 2),
    "van_der_pol": _Setting(systems.van_der_pol, 400, 0.2, 2),
    "double_well": _Setting(systems.double_well, 400, 0.2, 2),
    "fitzhugh_nagumo": _Setting(systems.fitzhugh_nagumo, 400, 1.0, 2),
    "lotka_volterra": _Setting(systems.lotka_volterra, 300, 0.005, 2),
    "excited_oscillator": _Setting(systems.excited_oscillator, 400, 1.0, 2),
}


def demo(
    system: Annotated[str, Parameter(name="SYSTEM")] = "lorenz",
    /,
    *,
    out: Path | None = None,
    minutes: float = 2.5,
    max_iterations: int = _MAX_ITERATIONS,
    seed: int = 0,
) -> int:
    """Simulate a system, observe one noisy coordinate, recover its state space, and draw what was found.

    Args:
        system: lorenz, rossler, ou, van_der_pol, double_well, fitzhugh_nagumo, lotka_volterra or excited_oscillator
        out: folder of the figures and the model; demo-SYSTEM by default
        minutes: training time; calibration may take two fifths of it on top
        max_iterations: stop earlier than by the clock
        seed: of the data and of training
    """
    name = system.replace("-", "_").lower()
    if name not in _SYSTEMS:
        near = get_close_matches(name, _SYSTEMS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(_SYSTEMS)}."
        raise ConfigError(f"there is no demo of {system!r}. {hint}")
    setting = _SYSTEMS[name]
    place = Path(f"demo-{name}") if out is None else out
    fit_config = FitConfig(seed=seed, max_minutes=minutes, max_iterations=max_iterations)
    console = Console(highlight=False, markup=False, quiet=is_quiet())
    with output_folder(place, "demo", _FILES) as folder:
        data = setting.simulate(_N_TRAIN + _N_SHOWN, setting.n_samples, setting.dt, observation_noise=_NOISE, seed=seed)
        console.print(
            f"{name}: {_N_TRAIN} series of {setting.n_samples} samples of one coordinate, {_NOISE:.0%} noise; "
            f"training for {minutes:g} minutes after compiling",
            soft_wrap=True,
        )
        with ProgressLine(quiet=is_quiet()) as progress:
            result = fit_series(
                data.series[:_N_TRAIN], ModelConfig(latent_dim=setting.latent_dim), fit_config, progress=progress
            )
        console.print(f"{summary(result)}; drawing", soft_wrap=True)
        write_run(result, folder)
        _draw(result, data, folder, seed)
        written = sorted(file.name for file in folder.iterdir())
    console.print(f"{visible(str(place))}: {', '.join(written)}", soft_wrap=True)
    return exit_code(result)


def _draw(result: FitResult, data: Simulated, folder: Path, seed: int) -> None:
    """The figures, from series that training has not seen."""
    from lamperti import viz  # loads matplotlib

    unseen = data.series[_N_TRAIN:]
    n = len(unseen[0])
    horizon = round(_HORIZON_SHARE * n)
    past, future = unseen[0].split(n - horizon)

    def fan() -> "Figure":
        return viz.forecast_fan(forecast(result, past, horizon=horizon, seed=seed), past, future)

    def free_run() -> "Figure":
        return viz.free_run(simulate(result, n_steps=n, n_paths=len(unseen), seed=seed), unseen)

    drawn: dict[str, Callable[[], "Figure"]] = {
        "phase_space": lambda: viz.phase_space(result, unseen[0], seed=seed),
        "forecast": fan,
        "free_run": free_run,
    }
    if result.history.records:
        drawn["training"] = lambda: viz.training(result.history)
    for name, draw in drawn.items():
        with told_of(f"the figure {name}"):
            viz.write_png(draw(), folder / f"{name}.png")
