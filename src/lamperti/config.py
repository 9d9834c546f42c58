"""Configuration at the edge: frozen, checked, TOML-loadable. Numerics take values, never these objects."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lamperti._errors import ConfigError, SeriesError
from lamperti._numbers import plain
from lamperti.data.local import open_local

_MOST_DIMENSIONS = 12  # of a drift that is not linear


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Every option with its default and what it is, for ``help``."""
        lines = [
            f"- {name}: {field.description} (default: {field.default!r})" for name, field in cls.model_fields.items()
        ]
        cls.__doc__ = f"{cls.__doc__}\n\n" + "\n".join(lines)

    def __init__(self, *unnamed: Any, **values: Any):
        if unnamed:
            first = next(iter(type(self).model_fields))
            raise ConfigError(
                f"options of {type(self).__name__} go by name; got {unnamed[0]!r} without one. Write for example "
                f"{type(self).__name__}({first}={unnamed[0]!r})."
            )
        values = {name: plain(value) for name, value in values.items()}
        for name, field in type(self).model_fields.items():
            if isinstance(values.get(name), bool) and field.annotation not in (bool, bool | None):  # True is no 1
                raise ConfigError(f"{type(self).__name__}.{name}: input should be no truth value; got {values[name]}.")
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(_explain(type(self), error)) from None

    @classmethod
    def from_toml(cls, path: str | Path, table: str) -> Self:
        """Read one table of a TOML file; a missing table gives the defaults."""
        try:
            with open_local(Path(path)) as file:
                values = tomllib.loads(file.read().decode())
        except (SeriesError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigError(f"{path} is not a readable TOML file: {error}") from None
        unknown = sorted(set(values) - {"model", "fit"})
        if unknown:
            raise ConfigError(f"{path} has an unknown table or entry {unknown[0]!r}. Use the tables [model] and [fit].")
        options = values.get(table, {})
        if not isinstance(options, dict):
            raise ConfigError(f"{path}: {table} must be a table; write [{table}] on a line and its options below.")
        try:
            return cls(**options)
        except ConfigError as error:
            raise ConfigError(f"{path}, table [{table}]: {error}") from None


class ModelConfig(_Config):
    """What is learned. The defaults suit one noisy scalar channel."""

    latent_dim: int | None = Field(
        default=None,
        ge=1,
        le=32,
        description="latent dimension, up to 12, of a linear model in closed form up to 32; by cross-validated "
        "predictions when left out",
    )
    kernel: str | None = Field(
        default=None,
        max_length=200,  # a few dozen parts; thousands of them would exhaust the stack
        description="se, matern12, matern32, matern52, rq, linear, constant; sums and products as se+linear; when left "
        "out se, or linear+constant where no other drift predicts better",
    )
    shared_kernel: bool = Field(default=True, description="one kernel for all coordinates (faster), or one each")
    n_inducing: int = Field(default=64, ge=2, le=1024, description="inducing inputs of the drift")
    inducing: Literal["kmeans", "grid"] = Field(
        default="kmeans", description="how inducing inputs are placed at the start"
    )
    lengthscale: float = Field(
        default=1.5, gt=0, description="kernel lengthscale at the start, in units of the latent sd"
    )
    linear_mean: bool = Field(
        default=True, description="a linear prior mean of the drift; False is the paper's zero mean"
    )
    encoder: Literal["window", "conv-gru"] = Field(
        default="window", description="causal window network, or the paper's"
    )
    window: int | None = Field(
        default=None, ge=1, description="samples of the encoder's window; from the autocorrelation"
    )
    coordinates: Literal["components", "predictive", "autoregressive", "level-free", "regressed"] | None = Field(
        default=None,
        description="what latent coordinates start from: principal components of a window, or the functions of it that "
        "predict best; or those of a model that is not trained: linear in closed form (autoregressive), in which the "
        "level of the data may drop out (level-free), or the newest sample with functions of a window that add most to "
        "it, and a regressed drift of at least 128 inducing inputs (regressed); chosen by held-out data when left out",
    )
    newest: int | None = Field(
        default=None,
        ge=1,
        le=12,
        description="of coordinates='regressed': samples at the end of the window that the state holds each by itself; "
        "by forecasts of held-out data when left out",
    )
    bounded: bool | None = Field(
        default=None,
        description="pull paths back that leave the region of the data; when left out, wherever the data has no trend",
    )
    log: tuple[str, ...] | None = Field(
        default=None,
        description="channels whose logarithm is modelled, as suits those that vary in proportion to their level; when "
        "left out, where a linear model in closed form is taken and held-out data say so",
    )
    encoder_sd: float = Field(default=0.5, gt=0, description="sd of the encoder's potentials at the start")
    n_components: int = Field(
        default=10, ge=1, description="principal components of the window that the network sees; at least latent_dim"
    )
    lag: int | None = Field(default=None, ge=1, description="lag of conv-gru's delay vectors; from mutual information")
    potentials: Literal["emission", "emission*encoder", "encoder"] = Field(
        default="emission",
        description="what tells the chain of the states: the emission's likelihood, with the encoder at the first "
        "state only or at every state, or the paper's encoder alone",
    )
    smoother: Literal["sigma-point", "linearised", "linearised-parallel", "moment-matching", "particle"] = Field(
        default="sigma-point", description="how the drift is made affine around the states; see docs/theory.md"
    )
    relinearise: int = Field(
        default=0, ge=0, le=5, description="re-linearisations at the smoothed means, of smoother = linearised"
    )
    n_particles: int = Field(default=200, ge=10, description="particles of the particle smoother")
    diffusion_step: Literal["scale-free", "natural"] = Field(
        default="scale-free",
        description="gradient on log diffusion through the whole bound, or the paper's conjugate step",
    )
    jitter: float = Field(default=1e-6, gt=0, description="added to the diagonal of k(Z, Z)")

    @model_validator(mode="after")
    def _few_unless_linear(self) -> Self:
        if (self.latent_dim or 1) > _MOST_DIMENSIONS and self.coordinates not in ("autoregressive", "level-free"):
            raise ValueError(
                f"a latent_dim of {self.latent_dim} is for linear models only; use at most {_MOST_DIMENSIONS}, or "
                "coordinates='autoregressive'."
            )
        if self.window == 1 and self.coordinates not in ("autoregressive", "level-free"):
            raise ValueError("a window of 1 is for linear models only; use 2 or more, or coordinates='autoregressive'.")
        return self


class FitConfig(_Config):
    """How it is learned."""

    seed: int = Field(default=0, ge=0, lt=2**63, description="of everything random in training")
    max_iterations: int = Field(default=1500, ge=1, description="training steps at most")
    max_minutes: float | None = Field(
        default=None,
        gt=0,
        description="stop (and anneal) by the clock as well; training only: compiling comes on top, and the "
        "likelihood fit (up to two fifths of it)",
    )
    batch_size: int = Field(default=16, ge=1, description="segments an iteration")
    segment_length: int = Field(default=100, ge=2, description="samples of a segment's chain")
    n_samples: int = Field(default=4, ge=1, description="paths drawn from each chain")
    learning_rate: float = Field(default=2e-3, gt=0, description="Adam, networks")
    kernel_rate: float = Field(default=1e-2, gt=0, description="Adam, kernel and inducing inputs")
    diffusion_rate: float = Field(default=1e-2, gt=0, description="Adam, log diffusion")
    natural_rate: float = Field(default=0.4, gt=0, le=1, description="natural step and closed-form emission")
    start_rate: float = Field(default=0.5, gt=0, le=1, description="natural rate of the first iterations")
    start_iterations: int = Field(default=20, ge=0, description="iterations with start_rate")
    span_rate: float = Field(default=0.0, ge=0, le=1, description="share of segments with a span of potentials masked")
    encoder_follow: float = Field(
        default=1.0,
        ge=0,
        description="weight that keeps the encoder's means on the chain",
    )
    gauge_at: tuple[int, ...] = Field(
        default=(150, 400), description="iterations at which coordinates are turned (gauge move)"
    )
    calibrate: bool = Field(
        default=True, description="fit noises, loadings and mean drift to the likelihood when training is done"
    )
    forecasts: bool = Field(
        default=True,
        description="then fit them, and noise of the motion that depends on the state, to forecasts at several "
        "horizons; kept where held-out data clearly gain",
    )
    compare_linear: bool = Field(
        default=True,
        description="keep a linear model in closed form instead where it forecasts held-out data clearly better; only "
        "where dimension, window, kernel and coordinates are left to the data",
    )
    compare_regressed: bool = Field(
        default=True,
        description="keep a model whose state is read off a window, with a regressed drift, instead where it forecasts "
        "held-out data clearly better; under the same conditions",
    )
    validation_fraction: float = Field(
        default=0.1, ge=0, lt=1, description="share of the data held out to stop and select"
    )
    validate_every: int = Field(default=25, ge=1, description="iterations from one validation to the next")
    patience: int = Field(default=20, ge=1, description="validations without a gain before training stops")


@dataclass(frozen=True, eq=False)
class Config:
    """The configuration in force, with what was chosen from the data filled in."""

    model: ModelConfig
    fit: FitConfig


def _explain(cls: type[BaseModel], error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "value"
    if first["type"] == "extra_forbidden":
        close = get_close_matches(name, cls.model_fields, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Known options: {', '.join(cls.model_fields)}."
        return f"{cls.__name__} has no option {name!r}. {hint}"
    if first["type"] == "value_error":  # our own
        return f"{cls.__name__}: {first['msg'].removeprefix('Value error, ')}"
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"{cls.__name__}.{name}: {message}; got {first['input']!r}."
