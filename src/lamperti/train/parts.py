"""The parts of a model by their names in a configuration, and the shape of the whole without its values."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from lamperti._errors import ConfigError
from lamperti._params import positive
from lamperti._typing import PRNGKeyArray
from lamperti.config import ModelConfig
from lamperti.data.starts import UNTRAINED
from lamperti.dynamics.initial import standard_initial
from lamperti.dynamics.mean import LinearMean, zero_mean
from lamperti.dynamics.sparse_gp import SparseGPDynamics
from lamperti.emissions.linear_gaussian import EmissionMoments, LinearGaussian
from lamperti.encoders import ConvGRU, HankelSkip, WindowMLP
from lamperti.interfaces import AbstractEncoder, AbstractKernel, AbstractSmoother
from lamperti.kernels import by_name, trainable
from lamperti.math.normal_gamma import prior
from lamperti.model import LatentSDE, ToldBy
from lamperti.smoothers import Linearised, MomentMatching, Particle, SigmaPoint


def told_by(config: ModelConfig) -> ToldBy:
    return "window" if config.coordinates in UNTRAINED else config.potentials


def make_kernels(config: ModelConfig, dim: int) -> tuple[AbstractKernel, ...]:
    return tuple(
        by_name(config.kernel or "se", dim, config.lengthscale) for _ in range(1 if config.shared_kernel else dim)
    )


def skeleton(config: ModelConfig, n_channels: int) -> LatentSDE:
    """A model with the parts and shapes that `build_model` gives, but no values: what a model file is read into."""
    dim, window = config.latent_dim, config.window
    if dim is None or window is None:
        raise ConfigError("latent_dim and window must be chosen first; call choose(config, tracks).")
    width, ones = window * n_channels, lambda: positive(jnp.ones(dim))

    def parts() -> LatentSDE:
        zeros = jnp.zeros
        skip = HankelSkip(
            zeros(width), zeros((config.n_components, width)), zeros((dim, config.n_components)), jnp.eye(dim), window
        )
        weak = prior(jnp.ones(dim), jnp.ones(dim), config.n_inducing)
        moments = EmissionMoments(
            zeros((n_channels, dim + 1, dim + 1)), zeros((n_channels, dim + 1)), zeros(n_channels)
        )
        return LatentSDE(
            encoder=make_encoder(config, skip, n_channels, key=jax.random.key(0)),
            dynamics=SparseGPDynamics(
                kernels=tuple(trainable(k) for k in make_kernels(config, dim)),
                amplitude=ones(),
                Z=zeros((config.n_inducing, dim)),
                mean=LinearMean(zeros((dim, dim)), zeros(dim)) if config.linear_mean else zero_mean(dim),
                diffusion=ones(),
                q=weak,
                prior=weak,
                jitter=jnp.asarray(config.jitter),
                axes=jnp.eye(dim),
                diffusion_step=config.diffusion_step,
            ),
            emission=LinearGaussian(zeros((n_channels, dim)), zeros(n_channels), jnp.ones(n_channels), moments),
            initial=standard_initial(dim),
            smoother=make_smoother(config.smoother, relinearise=config.relinearise, n_particles=config.n_particles),
            told_by=told_by(config),
        )

    return eqx.filter_eval_shape(parts)


def make_encoder(config: ModelConfig, skip: HankelSkip, n_channels: int, *, key: PRNGKeyArray) -> AbstractEncoder:
    if config.encoder == "conv-gru":
        return ConvGRU(skip, n_channels, lag=config.lag or 1, start_sd=config.encoder_sd, key=key)
    return WindowMLP(skip, start_sd=config.encoder_sd, key=key)


def make_smoother(
    name: Literal["sigma-point", "linearised", "linearised-parallel", "moment-matching", "particle"],
    *,
    relinearise: int,
    n_particles: int,
) -> AbstractSmoother:
    """The smoother by its name in the configuration."""
    if name == "sigma-point":
        return SigmaPoint()
    if name == "moment-matching":
        return MomentMatching()
    if name == "particle":
        return Particle(n_particles)
    return Linearised("associative" if name == "linearised-parallel" else "sequential", relinearise)
