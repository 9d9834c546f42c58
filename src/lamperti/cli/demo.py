"""``lamperti demo``."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from cyclopts import Parameter
from rich.console import Console

from lamperti._errors import ConfigError
from lamperti._text import visible
from lamperti.api import embed, forecast, simulate
from lamperti.api import fit as fit_series
from lamperti.cli._output import output_folder
from lamperti.cli._run import RUN_FILES, exit_code, summary, told_of, write_run
from lamperti.cli._say import is_quiet
from lamperti.config import FitConfig, ModelConfig
from lamperti.data import systems
from lamperti.data.systems import Simulated
from lamperti.diagnostics import Effort
from lamperti.emissions.linear_gaussian import LinearGaussian
from lamperti.evaluation.embedding import smooth_map
from lamperti.progress import ProgressLine
from lamperti.results import FitResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_TRAIN, _N_SHOWN = 60, 5
_NOISE = 0.1
_HORIZON_SHARE = 0.25
_MAX_ITERATIONS = 20_000  # the clock ends a demo
_FILES = (*RUN_FILES, "truth.png", "phase_space.png", "forecast.png", "free_run.png", "training.png", "report.html")
_MAPPED = 12  # series of training that tell how learned coordinates lie to the true ones
_EFFORT = Effort(origins=12, futures=100, pieces=4, paths=8, steps=800, starts=32)


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
    """Simulate a system, observe one noisy coordinate, recover its state space, and show the truth beside it.

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
        if not exit_code(result):  # who stopped it does not want to wait
            _write_report(result, data, folder, name, console)
            for sentence in compared(result, data):
                console.print(sentence, soft_wrap=True)
        written = sorted(file.name for file in folder.iterdir())
    shown = visible(str(place))
    console.print(f"{shown}: {', '.join(written)}", soft_wrap=True)
    if not exit_code(result):
        console.print(
            f"Next: look at {shown}/truth.png (the true and the learned states) and open {shown}/report.html.\n"
            "Your own data: lamperti check data.csv says what is understood of it, and what may be wrong.\n"
            "Then: lamperti fit data.csv --out run, and lamperti report run.",
            soft_wrap=True,
        )
    return exit_code(result)


def _write_report(result: FitResult, data: Simulated, folder: Path, name: str, console: Console) -> None:
    console.print("writing the report")
    with told_of("the report"):
        from lamperti.report import write_report

        title = f"Demo: one noisy coordinate of {name}"
        write_report(result, data.series[:_N_TRAIN], folder / "report.html", title=title, effort=_EFFORT)


def compared(result: FitResult, data: Simulated) -> list[str]:
    """The truth beside what was learned, in sentences; on series that training has not seen."""
    true, learned = _aligned(result, data)
    left = np.mean((np.concatenate(learned) - np.concatenate(true)) ** 2, axis=0)
    share = 1.0 - left / np.var(np.concatenate(true), axis=0)
    states = ", ".join(f"{max(r2, 0.0):.0%} of x{d + 1}" for d, r2 in enumerate(share))
    sentences = [f"true states found in the learned ones (share of variance, unseen series): {states}"]
    emission = result.model.emission
    if isinstance(emission, LinearGaussian):
        noise = result.scaler.unscale_sd(np.sqrt(np.asarray(emission.noise)))[0]
        sentences.append(f"observation noise (sd): {data.noise_sd[0]:.3g} true, {noise:.3g} learned")
    return sentences


def _aligned(result: FitResult, data: Simulated) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """True states of the unseen series, and learned ones in the same coordinates: the map is fitted to others."""
    latent = [embed(result, series).mean for series in data.series[:_MAPPED]]
    carry = smooth_map(np.concatenate(latent), np.concatenate(list(data.states[:_MAPPED])))
    return list(data.states[_N_TRAIN:]), [carry(embed(result, series).mean) for series in data.series[_N_TRAIN:]]


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
        "truth": lambda: viz.state_spaces(*_aligned(result, data)),
        "phase_space": lambda: viz.phase_space(result, unseen[0], seed=seed),
        "forecast": fan,
        "free_run": free_run,
    }
    if result.history.records:
        drawn["training"] = lambda: viz.training(result.history)
    for name, draw in drawn.items():
        with told_of(f"the figure {name}"):
            viz.write_png(draw(), folder / f"{name}.png")
