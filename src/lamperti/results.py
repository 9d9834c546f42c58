"""What the public functions give back, in the user's units of value and time."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lamperti._compile import to_jax
from lamperti._errors import ConfigError
from lamperti._numbers import as_points, is_real
from lamperti._shown import Shown, figures
from lamperti._typing import Float
from lamperti.config import Config
from lamperti.data.dates import DATES, as_dates, span_text
from lamperti.data.dimensions import DimensionCurve
from lamperti.data.scaling import Scaler
from lamperti.data.series import Series
from lamperti.data.tabular import Columns, coordinates, dated, frame_of, labels_of, load_xarray, paths_dataset
from lamperti.data.training_data import TrainingData
from lamperti.forecasting import diffusion_moments, drift_moments
from lamperti.model import LatentSDE
from lamperti.train.history import History, Record

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from lamperti.diagnostics.summary import Summary
    from lamperti.diagnostics.verdict import Verdict
    from lamperti.viz.accessor import Plots


@dataclass(frozen=True, eq=False, repr=False)
class FitResult(Shown):
    """A fitted model with everything needed to use it.

    ``forecast``, ``simulate`` and ``embed`` are the functions of these names; ``plot`` and ``summary`` show it."""

    model: LatentSDE
    history: History
    config: Config
    scaler: Scaler
    names: tuple[str, ...]
    states: Float[np.ndarray, "K D"]  # a sample of the states that the training data went through
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""
    repairs: tuple[str, ...] = ()  # what was done to the training data on request, a sentence each
    data: tuple[Series, ...] = ()  # what it was fitted to; empty for a model that was read from a file
    trained_on: TrainingData | None = None  # which rows of it training saw, to know them again; None in older files
    dimensions: DimensionCurve | None = None  # how the latent dimension was chosen, and why; None in older files

    def __repr__(self) -> str:
        h = self.history
        return (
            f"FitResult({', '.join(self.names)}; {self.model.latent_dim} latent dimensions; {h.what_was_kept()}; "
            "print(result.summary()) tells more)"
        )

    def _facts(self) -> dict[str, str]:
        return {
            "channels": ", ".join(self.names),
            "latent dimensions": str(self.model.latent_dim),
            "training": self.history.what_was_kept(),
            "more": "print(result.summary()), result.plot.phase_space(), result.forecast(series)",
        }

    def forecast(self, series: Any, **options: Any) -> "Forecast":
        """Sampled futures of a series; options as of `lamperti.forecast`."""
        from lamperti import api  # which stands above the results, as do figures and summary

        return api.forecast(self, series, **options)

    def simulate(self, **options: Any) -> "Simulation":
        """Free-running paths; options as of `lamperti.simulate`."""
        from lamperti import api

        return api.simulate(self, **options)

    def embed(self, series: Any) -> "Embedding":
        """The state at every sample of a series, as `lamperti.embed` gives it."""
        from lamperti import api

        return api.embed(self, series)

    @property
    def step_unit(self) -> str:
        """The unit of lengths of time and of rates: that of the times; where these are dates, one that suits them, as
        "h" or "months". Empty where it is not known."""
        return self.scaler.duration_unit or ("s" if self.time_unit == DATES else self.time_unit)

    @property
    def step(self) -> float:
        """The step of the training data in ``step_unit``."""
        return self.scaler.step

    def drift(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the drift dx/dt at latent points x [..., D], per ``step_unit``; NaN where x is."""
        return self._per_unit(drift_moments, x)

    def diffusion(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the diffusion g (variance of the increments per ``step_unit``) at x [..., D]."""
        return self._per_unit(diffusion_moments, x)

    def _per_unit(self, moments: Callable[..., Any], x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd at points, from per step to per ``step_unit``."""
        points = as_points(x, self.model.latent_dim)
        found = moments(self.model, to_jax(points.reshape(-1, points.shape[-1])))
        mean, sd = (np.asarray(a).reshape(points.shape) for a in found)
        return mean / self.step, sd / self.step

    @property
    def plot(self) -> "Plots":
        """Figures: ``plot.phase_space()``, ``.forecast()``, ``.drift()``, ``.training()``, ``.diagnostics()``,
        ``.dimensions()``."""
        from lamperti.viz.accessor import Plots  # here, because it loads matplotlib

        return Plots(self)

    def summary(self) -> "Summary":
        """A table of what was learned, and how; ``print`` it."""
        from lamperti.diagnostics.summary import summarise

        return summarise(self)

    @cached_property
    def verdict(self) -> "Verdict":
        """The model beside simple methods on what training held out; computed when it is first asked for (seconds).
        `lamperti.diagnostics.judge(result, data)` does the same with other data."""
        from lamperti.diagnostics.refitted import or_refitted  # which stands above the results
        from lamperti.diagnostics.verdict import judge

        return or_refitted(judge(self), self, self.data)

    def to_dataframe(self) -> "pd.DataFrame":
        """The history of training, a row a record (nats a transition), by iteration."""
        records = [dataclasses.asdict(record) for record in self.history.records]
        names = [field.name for field in dataclasses.fields(Record)]
        columns = {name: np.array([np.nan if r[name] is None else r[name] for r in records]) for name in names}
        return frame_of(columns, "iteration", {})

    def to_xarray(self) -> "xr.Dataset":
        """The history of training as a dataset over ``iteration``."""
        load_xarray()
        return self.to_dataframe().to_xarray()


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Shown):
    """Posterior of the state at every sample of a series."""

    mean: Float[np.ndarray, "T D"]
    cov: Float[np.ndarray, "T D D"]
    times: Float[np.ndarray, " T"]
    time_unit: str = ""

    def _facts(self) -> dict[str, str]:
        n, dim = self.mean.shape
        return {"states": f"{n} of {dim} coordinates", "times": span_text(self.times, self.time_unit)}

    def plot(self) -> "Figure":
        """The states in time, with two standard deviations."""
        return figures().states(self)

    def columns(self) -> Columns:
        """As a table: ``time``, ``x1``, ..., ``cov_x1_x1``, ..."""
        rows, columns = np.triu_indices(self.mean.shape[1])
        covs = {f"cov_x{i + 1}_x{j + 1}": self.cov[:, i, j] for i, j in zip(rows, columns, strict=True)}
        return {"time": self.times, **coordinates(self.mean), **covs}

    def to_dataframe(self) -> "pd.DataFrame":
        """A row a sample, by time (dates in UTC where the series had dates): means of the states and the upper triangle
        of their covariances."""
        return frame_of(dated(self.columns(), self.time_unit), "time", labels_of(self.time_unit))

    def to_xarray(self) -> "xr.Dataset":
        """``mean`` (time, state) and ``cov`` (time, state, other_state)."""
        states = list(coordinates(self.mean))
        return load_xarray().Dataset(
            {"mean": (("time", "state"), self.mean), "cov": (("time", "state", "other_state"), self.cov)},
            {"time": as_dates(self.times, self.time_unit), "state": states, "other_state": states},
            labels_of(self.time_unit),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Shown):
    """Sampled futures of a series."""

    samples: Float[np.ndarray, "S H P"]
    states: Float[np.ndarray, "S H D"]
    times: Float[np.ndarray, " H"]
    names: tuple[str, ...]
    least_ess: float  # smallest share of effective particles in the filter over the context
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""

    def _facts(self) -> dict[str, str]:
        n, steps = self.samples.shape[:2]
        return {
            "forecast": f"{n} futures of {steps} steps",
            "channels": ", ".join(self.names),
            "times": span_text(self.times, self.time_unit),
        }

    def plot(self, context: Series | None = None, truth: Series | None = None) -> "Figure":
        """Median, intervals and a few futures, after the series that it starts from and beside what followed, where
        these are given."""
        return figures().forecast_fan(self, context, truth)

    @property
    def mean(self) -> Float[np.ndarray, "H P"]:
        return self.samples.mean(axis=0)

    @property
    def sd(self) -> Float[np.ndarray, "H P"]:
        if len(self.samples) < 2:
            return np.full(self.samples.shape[1:], np.nan)  # one path says nothing of the spread
        return self.samples.std(axis=0, ddof=1)

    def quantile(self, q) -> np.ndarray:
        """Quantiles over the samples, [H, P] (or [len(q), H, P])."""
        shares = np.asarray(q)
        if shares.dtype.kind not in "fiu" or not ((shares >= 0) & (shares <= 1)).all():
            raise ConfigError(f"quantiles are shares between 0 and 1; got {q!r}.")
        return np.quantile(self.samples, q, axis=0)

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Central interval: lower and upper ends, [H, P] each."""
        if not is_real(level) or not 0.0 < level < 1.0:
            raise ConfigError(f"level must be a number between 0 and 1, such as 0.9; got {level!r}.")
        lower, upper = self.quantile([0.5 - level / 2, 0.5 + level / 2])
        return lower, upper

    def columns(self, level: float = 0.9) -> Columns:
        """As a table: ``time``, and of every channel ``_mean``, ``_sd``, ``_median``, ``_lower`` and ``_upper``."""
        lower, upper = self.interval(level)
        stats = {"mean": self.mean, "sd": self.sd, "median": self.quantile(0.5), "lower": lower, "upper": upper}
        return {"time": self.times} | {
            f"{name}_{kind}": values[:, p] for p, name in enumerate(self.names) for kind, values in stats.items()
        }

    def to_dataframe(self, level: float = 0.9) -> "pd.DataFrame":
        """A row a step, by time (dates in UTC where the series had dates): mean, sd, median and the ends of the central
        interval of every channel. ``attrs`` has the units."""
        columns = dated(self.columns(level), self.time_unit)
        return frame_of(columns, "time", labels_of(self.time_unit, dict(zip(self.names, self.units, strict=False))))

    def to_xarray(self) -> "xr.Dataset":
        """All futures: ``samples`` (sample, time, channel) and ``states`` (sample, time, state)."""
        return paths_dataset("sample", self)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Shown):
    """Free-running paths of the learned equation."""

    samples: Float[np.ndarray, "n T P"]
    states: Float[np.ndarray, "n T D"]
    times: Float[np.ndarray, " T"]  # dates after the last of training where it had dates; else since the start
    names: tuple[str, ...]
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""

    def _facts(self) -> dict[str, str]:
        n, steps = self.samples.shape[:2]
        return {
            "simulation": f"{n} paths of {steps} steps",
            "channels": ", ".join(self.names),
            "times": span_text(self.times, self.time_unit),
        }

    def plot(self) -> "Figure":
        """A few paths in time, a panel for each channel."""
        return figures().paths(self)

    def columns(self, path: int) -> Columns:
        """One path as a table: ``time``, the channels, ``x1``, ...; a channel of such a name gets ``_observed``."""
        states = coordinates(self.states[path])
        taken = {"path", "time", *states}
        names = [f"{name}_observed" if name in taken else name for name in self.names]
        return {"time": self.times, **dict(zip(names, self.samples[path].T, strict=True)), **states}

    def to_dataframe(self) -> "pd.DataFrame":
        """A row a sample, by path and time: the channels and the latent states. ``attrs`` has the units."""
        parts = [self.columns(i) for i in range(len(self.samples))]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns = dated({"path": np.repeat(np.arange(len(parts)), len(self.times)), **columns}, self.time_unit)
        labels = labels_of(self.time_unit, dict(zip(self.names, self.units, strict=False)))
        return frame_of(columns, ["path", "time"], labels)

    def to_xarray(self) -> "xr.Dataset":
        """``samples`` (path, time, channel) and ``states`` (path, time, state)."""
        return paths_dataset("path", self)
