"""What the public functions give back, in the user's units of value and time."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lamperti._compile import to_jax
from lamperti._errors import ConfigError, DependencyError, SeriesError
from lamperti._numbers import is_real
from lamperti._typing import Float
from lamperti.config import FitConfig, ModelConfig
from lamperti.data.dates import as_dates
from lamperti.data.scaling import Scaler
from lamperti.data.series import DATES, Series
from lamperti.forecasting import diffusion_moments, drift_moments
from lamperti.model import LatentSDE
from lamperti.train.history import History, Record

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from lamperti.diagnostics.summary import Summary
    from lamperti.viz.accessor import Plots

Columns = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Config:
    """The configuration in force, with what was chosen from the data filled in."""

    model: ModelConfig
    fit: FitConfig


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """A fitted model with everything needed to use it."""

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

    def __repr__(self) -> str:
        h = self.history
        return (
            f"FitResult({', '.join(self.names)}; {self.model.latent_dim} latent dimensions; {h.what_was_kept()}; "
            "print(result.summary()) tells more)"
        )

    def drift(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the drift dx/dt at latent points x [..., D], per unit of the user's time; NaN where x is."""
        points = self._points(x)
        mean, sd = (np.asarray(a) for a in drift_moments(self.model, to_jax(points.reshape(-1, points.shape[-1]))))
        unit = self.scaler.time_unit
        return mean.reshape(points.shape) / unit, sd.reshape(points.shape) / unit

    def diffusion(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of the diffusion g (variance of the increments per unit of the user's time) at x [..., D]."""
        points = self._points(x)
        mean, sd = (np.asarray(a) / self.scaler.time_unit for a in diffusion_moments(self.model))
        return np.broadcast_to(mean, points.shape), np.broadcast_to(sd, points.shape)

    @property
    def plot(self) -> "Plots":
        """Figures: ``plot.phase_space()``, ``.forecast()``, ``.drift()``, ``.training()``, ``.diagnostics()``."""
        from lamperti.viz.accessor import Plots  # here, because it loads matplotlib

        return Plots(self)

    def summary(self) -> "Summary":
        """A table of what was learned, and how; ``print`` it."""
        from lamperti.diagnostics.summary import summarise  # which stands above the results

        return summarise(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """The history of training, a row a record (nats a transition), by iteration."""
        records = [dataclasses.asdict(record) for record in self.history.records]
        names = [field.name for field in dataclasses.fields(Record)]
        columns = {name: np.array([_number(r[name]) for r in records]) for name in names}
        return _frame(columns, "iteration", {})

    def to_xarray(self) -> "xr.Dataset":
        """The history of training as a dataset over ``iteration``."""
        _xarray()
        return self.to_dataframe().to_xarray()

    def _points(self, x) -> np.ndarray:
        try:
            points = np.asarray(x, dtype=float)
        except (TypeError, ValueError):
            raise SeriesError(
                f"x must be latent points, numbers [..., {self.model.latent_dim}]; got a {type(x).__name__}. States of "
                "a series: lamperti.embed(result, series).mean."
            ) from None
        if points.ndim == 0 or points.shape[-1] != self.model.latent_dim:
            raise SeriesError(
                f"x must have {self.model.latent_dim} latent coordinates along its last axis; got shape {points.shape}."
            )
        return points


@dataclass(frozen=True, eq=False)
class Embedding:
    """Posterior of the state at every sample of a series."""

    mean: Float[np.ndarray, "T D"]
    cov: Float[np.ndarray, "T D D"]
    times: Float[np.ndarray, " T"]
    time_unit: str = ""

    def columns(self) -> Columns:
        """As a table: ``time``, ``x1``, ..., ``cov_x1_x1``, ..."""
        rows, columns = np.triu_indices(self.mean.shape[1])
        covs = {f"cov_x{i + 1}_x{j + 1}": self.cov[:, i, j] for i, j in zip(rows, columns, strict=True)}
        return {"time": self.times, **_coordinates(self.mean), **covs}

    def to_dataframe(self) -> "pd.DataFrame":
        """A row a sample, by time (dates in UTC where the series had dates): means of the states and the upper triangle
        of their covariances."""
        return _frame(_dated(self.columns(), self.time_unit), "time", _labels(self.time_unit))

    def to_xarray(self) -> "xr.Dataset":
        """``mean`` (time, state) and ``cov`` (time, state, other_state)."""
        states = list(_coordinates(self.mean))
        return _xarray().Dataset(
            {"mean": (("time", "state"), self.mean), "cov": (("time", "state", "other_state"), self.cov)},
            {"time": as_dates(self.times, self.time_unit), "state": states, "other_state": states},
            _labels(self.time_unit),
        )


@dataclass(frozen=True, eq=False)
class Forecast:
    """Sampled futures of a series."""

    samples: Float[np.ndarray, "S H P"]
    states: Float[np.ndarray, "S H D"]
    times: Float[np.ndarray, " H"]
    names: tuple[str, ...]
    least_ess: float  # smallest share of effective particles in the filter over the context
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""

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
        columns = _dated(self.columns(level), self.time_unit)
        return _frame(columns, "time", _labels(self.time_unit, dict(zip(self.names, self.units, strict=False))))

    def to_xarray(self) -> "xr.Dataset":
        """All futures: ``samples`` (sample, time, channel) and ``states`` (sample, time, state)."""
        return _paths("sample", self)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Free-running paths of the learned equation."""

    samples: Float[np.ndarray, "n T P"]
    states: Float[np.ndarray, "n T D"]
    times: Float[np.ndarray, " T"]  # since the start: paths happen at no date
    names: tuple[str, ...]
    units: tuple[str, ...] = ()  # one a channel, "" where none was given
    time_unit: str = ""

    def columns(self, path: int) -> Columns:
        """One path as a table: ``time``, the channels, ``x1``, ...; a channel of such a name gets ``_observed``."""
        states = _coordinates(self.states[path])
        taken = {"path", "time", *states}
        names = [f"{name}_observed" if name in taken else name for name in self.names]
        return {"time": self.times, **dict(zip(names, self.samples[path].T, strict=True)), **states}

    def to_dataframe(self) -> "pd.DataFrame":
        """A row a sample, by path and time: the channels and the latent states. ``attrs`` has the units."""
        parts = [self.columns(i) for i in range(len(self.samples))]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns = {"path": np.repeat(np.arange(len(parts)), len(self.times)), **columns}
        labels = _labels(self.time_unit, dict(zip(self.names, self.units, strict=False)))
        return _frame(columns, ["path", "time"], labels)

    def to_xarray(self) -> "xr.Dataset":
        """``samples`` (path, time, channel) and ``states`` (path, time, state)."""
        return _paths("path", self)


def _coordinates(x: Float[np.ndarray, "T D"]) -> Columns:
    return {f"x{d + 1}": values for d, values in enumerate(x.T)}


def _number(value: Any) -> Any:
    return np.nan if value is None else value


def _dated(columns: Columns, time_unit: str) -> Columns:
    return columns | {"time": as_dates(columns["time"], time_unit)}


def _labels(time_unit: str, units: dict[str, str] | None = None) -> dict[str, Any]:
    """What there is to say of units; dates need none."""
    labels = {"time_unit": "" if time_unit == DATES else time_unit}
    known = {name: unit for name, unit in (units or {}).items() if unit}
    return {name: value for name, value in {**labels, "units": known}.items() if value}


def _frame(columns: Columns, index: str | list[str], labels: dict[str, Any]) -> "pd.DataFrame":
    import pandas as pd  # half a second, and only for those who ask

    frame = pd.DataFrame(columns).set_index(index)
    frame.attrs |= labels
    return frame


def _paths(member: str, result: Forecast | Simulation) -> "xr.Dataset":
    states = [f"x{d + 1}" for d in range(result.states.shape[-1])]
    times = as_dates(result.times, result.time_unit)
    # A coordinate, because files of xarray take no tables as attributes.
    units = {"unit": ("channel", list(result.units))} if any(result.units) else {}
    return _xarray().Dataset(
        {
            "samples": ((member, "time", "channel"), result.samples),
            "states": ((member, "time", "state"), result.states),
        },
        {"time": times, "channel": list(result.names), "state": states, **units},
        _labels(result.time_unit),
    )


def _xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise DependencyError("to_xarray needs xarray, which is not installed. pip install xarray") from None
    return xarray
