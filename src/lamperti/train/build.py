"""From standardised series and a configuration to a model that is ready to train, and how."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lamperti._compile import compiled, to_jax
from lamperti._errors import ConfigError, SeriesError
from lamperti._typing import Array, Float, PRNGKeyArray, Scalar
from lamperti.config import ModelConfig
from lamperti.data.correlation import first_minimum_lag
from lamperti.data.free_running import SHAKE, Delays, free_drift
from lamperti.data.linear_law import LinearLaw
from lamperti.data.regressed import DelayCoordinates, coordinates_of, delay_coordinates
from lamperti.data.starts import (
    CLOSED_FORM,
    MOST_CHANNELS,
    REGRESSED,
    Choice,
    choose_start,
    equal_steps,
    linear_law,
    of_delays,
    of_law,
    start_of,
)
from lamperti.data.windows import Track, interpolate
from lamperti.model import LatentSDE
from lamperti.train import linear, regressed, start
from lamperti.train.parts import make_encoder, make_kernels, make_smoother, skeleton, told_by

LINEAR_KERNEL = "linear+constant"


def choose(config: ModelConfig, tracks: Sequence[Track], *, trending: bool = False) -> tuple[ModelConfig, Choice]:
    """Fill in what the user left to the data: latent dimension, window, coordinates, lag; and why.

    ``trending``: whether the data has no stationary law."""
    arrays = [interpolate(t) for t in tracks]
    n_channels = arrays[0].shape[1]
    if config.latent_dim and config.window and config.window * n_channels < config.latent_dim:
        raise ConfigError(
            f"latent_dim is {config.latent_dim}, but a window of {config.window} samples has only "
            f"{config.window * n_channels} components. Use a longer window or a smaller latent_dim."
        )
    lag = config.lag or first_minimum_lag(arrays).lag
    if config.coordinates == "autoregressive" or config.coordinates == "level-free":
        choice = _closed_form(config, arrays)
    elif config.coordinates == "regressed":
        choice = _regressed(config, arrays)
        return regressed_config(config.model_copy(update={"lag": lag}), choice.delays, arrays), choice
    else:
        choice = choose_start(
            arrays,
            dimension=config.latent_dim,
            window=config.window,
            coordinates=config.coordinates,
            closed_form=leaves_form_open(config, tracks),
            trending=trending,
        )
        if choice.coordinates == REGRESSED:
            return regressed_config(config.model_copy(update={"lag": lag}), choice.delays, arrays), choice
    n_components = min(max(config.n_components, choice.dimension), choice.window * n_channels)
    if choice.coordinates in CLOSED_FORM:
        n_components = choice.dimension
    chosen = {
        "latent_dim": choice.dimension,
        "window": choice.window,
        "coordinates": choice.coordinates,
        "kernel": config.kernel or (LINEAR_KERNEL if choice.linear else "se"),
        "lag": lag,
        "n_components": n_components,
    }
    return config.model_copy(update=chosen), choice


def leaves_form_open(config: ModelConfig, tracks: Sequence[Track]) -> bool:
    """Whether a linear model in closed form may take the place of a trained one: the user has asked for no part of
    another, and the steps are equal."""
    parts = ("kernel", "window", "coordinates", "encoder", "linear_mean", "potentials", "smoother", "diffusion_step")
    default = ModelConfig()
    return equal_steps(tracks) and all(getattr(config, part) == getattr(default, part) for part in parts)


def _closed_form(config: ModelConfig, arrays: Sequence[Float[np.ndarray, "_ P"]]) -> Choice:
    if config.kernel not in (None, LINEAR_KERNEL) or config.encoder != "window":
        raise ConfigError(
            f"coordinates={config.coordinates!r} is a linear model, with kernel={LINEAR_KERNEL!r} and "
            "encoder='window'; leave both out, or choose coordinates='predictive'."
        )
    if arrays[0].shape[1] > MOST_CHANNELS:
        raise ConfigError(
            f"coordinates={config.coordinates!r} takes at most {MOST_CHANNELS} channels; got {arrays[0].shape[1]}. "
            "Select some, or choose coordinates='predictive'."
        )
    return of_law(_law(config, arrays), asked=config.latent_dim is not None)


def _law(config: ModelConfig, arrays: Sequence[Float[np.ndarray, "_ P"]]) -> LinearLaw:
    level_free = config.coordinates == "level-free"
    law = linear_law(arrays, dimension=config.latent_dim, window=config.window, level_free=level_free)
    if law is None:
        raise SeriesError(
            f"the data is too short for coordinates={config.coordinates!r} (longest series: {max(map(len, arrays))} "
            "samples). Use a longer series, a shorter window, or coordinates='predictive'."
        )
    return law


def _regressed(config: ModelConfig, arrays: Sequence[Float[np.ndarray, "_ P"]]) -> Choice:
    if config.kernel not in (None, "se") or config.encoder != "window" or not config.shared_kernel:
        raise ConfigError(
            "coordinates='regressed' has kernel='se', shared by all coordinates, and encoder='window'; leave them out, "
            "or choose coordinates='predictive'."
        )
    return of_delays(_coordinates(config, arrays), asked=config.latent_dim is not None)


def _coordinates(config: ModelConfig, arrays: Sequence[Float[np.ndarray, "_ P"]]) -> DelayCoordinates:
    found = delay_coordinates(arrays, dimension=config.latent_dim, window=config.window, newest=config.newest)
    if found is None:
        raise SeriesError(
            f"the data is too short for coordinates='regressed' (longest series: {max(map(len, arrays))} samples). Use "
            "a longer series, or coordinates='predictive'."
        )
    return found


def regressed_config(config: ModelConfig, delays: Delays, arrays: Sequence[Float[np.ndarray, "_ P"]]) -> ModelConfig:
    """The configuration of a model with a regressed drift in coordinates of a window of these data."""
    drift = free_drift(min(sum(map(len, arrays)), regressed.MAX_POINTS))
    chosen = {
        "latent_dim": delays.dimension,
        "window": delays.window,
        "newest": delays.newest,
        "coordinates": REGRESSED,
        "kernel": "se",
        "n_components": delays.dimension,
        "n_inducing": max(config.n_inducing, drift.centres),
        "lengthscale": drift.width * float(np.sqrt(delays.dimension / 2)),
    }
    return config.model_copy(update=chosen)


def coordinates_asked(config: ModelConfig, tracks: Sequence[Track]) -> DelayCoordinates:
    """Of a configuration of that kind, which has been through `choose`, for these data."""
    assert config.latent_dim is not None and config.window is not None
    delays = Delays(config.latent_dim, config.window, config.newest or 1)
    return coordinates_of([interpolate(t) for t in tracks], delays)


def linear_config(config: ModelConfig, law: LinearLaw) -> ModelConfig:
    """The configuration of a model with this linear law in place of what would be trained."""
    chosen = {
        "latent_dim": law.dimension,
        "window": law.window,
        "coordinates": start_of(law),
        "kernel": LINEAR_KERNEL,
        "n_components": law.dimension,
    }
    return config.model_copy(update=chosen)


def build_model(config: ModelConfig, tracks: Sequence[Track], *, seed: int) -> LatentSDE:
    """The model at its start; ``config`` has been through `choose`."""
    rng = np.random.default_rng(seed)
    dim, window = config.latent_dim, config.window
    if dim is None or window is None:
        raise ConfigError("latent_dim and window must be chosen first; call choose(config, tracks).")
    # First, because an unknown name and parts that do not go together are cheap to refuse.
    skeleton(config, tracks[0].y.shape[1]).check()
    if config.coordinates == "autoregressive" or config.coordinates == "level-free":
        return closed_form_model(config, _law(config, [interpolate(t) for t in tracks]), tracks, seed=seed)
    if config.coordinates == "regressed":
        return regressed_model(config, coordinates_asked(config, tracks), tracks, seed=seed)
    picture = start.linear_picture(
        tracks,
        dim=dim,
        window=window,
        n_components=config.n_components,
        coordinates=config.coordinates or "components",
        rng=rng,
    )
    Z = start.inducing_inputs(picture.x, config.n_inducing, config.inducing, rng)
    share = sum(len(t.dt) for t in tracks) / len(picture.x)
    return _assemble(config, jax.tree.map(to_jax, picture), to_jax(Z), jnp.asarray(share), key=jax.random.key(seed))


@compiled
def _assemble(
    config: ModelConfig,
    picture: start.LinearPicture,
    Z: Float[Array, "M D"],
    share: Scalar,
    *,
    key: PRNGKeyArray,
) -> LatentSDE:
    dim, window = Z.shape[1], config.window or 1
    return LatentSDE(
        encoder=make_encoder(config, start.start_skip(picture, dim, window), picture.y.shape[1], key=key),
        dynamics=start.start_dynamics(
            picture,
            Z,
            make_kernels(config, dim),
            share=share,
            linear_mean=config.linear_mean,
            diffusion_step=config.diffusion_step,
            jitter=config.jitter,
        ),
        emission=start.start_emission(picture),
        initial=start.start_initial(picture),
        smoother=make_smoother(config.smoother, relinearise=config.relinearise, n_particles=config.n_particles),
        told_by=told_by(config),
    )


def closed_form_model(config: ModelConfig, law: LinearLaw, tracks: Sequence[Track], *, seed: int) -> LatentSDE:
    """A linear model as it is, with the uncertainty that its slopes have after these data."""
    rng = np.random.default_rng(seed)
    picture = linear.picture_of(law, tracks, rng)
    Z = start.inducing_inputs(picture.x, config.n_inducing, config.inducing, rng)
    share = sum(len(t.dt) for t in tracks) / len(picture.x)
    law = jax.tree.map(to_jax, linear.LawArrays.of(law))
    return _settle(config, law, jax.tree.map(to_jax, picture), to_jax(Z), jnp.asarray(share), key=jax.random.key(seed))


@compiled
def _settle(
    config: ModelConfig,
    law: linear.LawArrays,
    picture: start.LinearPicture,
    Z: Float[Array, "M D"],
    share: Scalar,
    *,
    key: PRNGKeyArray,
) -> LatentSDE:
    dim, window = Z.shape[1], config.window or 1
    return LatentSDE(
        encoder=linear.certain(
            make_encoder(config, start.start_skip(picture, dim, window), picture.y.shape[1], key=key)
        ),
        dynamics=linear.dynamics_of(law, picture, Z, make_kernels(config, dim), share=share, jitter=config.jitter),
        emission=linear.emission_of(law, picture),
        initial=linear.initial_of(law),
        smoother=make_smoother(config.smoother, relinearise=config.relinearise, n_particles=config.n_particles),
        told_by=told_by(config),
    )


def regressed_model(
    config: ModelConfig, coordinates: DelayCoordinates, tracks: Sequence[Track], *, seed: int, shake: float = SHAKE
) -> LatentSDE:
    """A model whose state is read off a window, with the drift that a regression gives on shaken states."""
    rng = np.random.default_rng(seed)
    picture = regressed.picture_of(coordinates, tracks, rng)
    Z = start.inducing_inputs(picture.x, config.n_inducing, "kmeans", rng)
    share = sum(len(t.dt) for t in tracks) / len(picture.x)
    return _assemble_regressed(
        config,
        jax.tree.map(to_jax, picture),
        to_jax(Z),
        jnp.asarray(share),
        jnp.asarray(shake),
        key=jax.random.key(seed),
    )


@compiled
def _assemble_regressed(
    config: ModelConfig,
    picture: start.LinearPicture,
    Z: Float[Array, "M D"],
    share: Scalar,
    shake: Scalar,
    *,
    key: PRNGKeyArray,
) -> LatentSDE:
    dim, window = Z.shape[1], config.window or 1
    encoder = make_encoder(config, start.start_skip(picture, dim, window), picture.y.shape[1], key=key)
    return LatentSDE(
        encoder=linear.certain(encoder, regressed.ENCODER_SD),
        dynamics=regressed.dynamics_of(
            picture,
            Z,
            make_kernels(config, dim),
            share=share,
            jitter=config.jitter,
            shake=shake,
            key=jax.random.fold_in(key, 1),
        ),
        emission=regressed.emission_of(picture),
        initial=start.start_initial(picture),
        smoother=make_smoother(config.smoother, relinearise=config.relinearise, n_particles=config.n_particles),
        told_by=told_by(config),
    )
