"""The plain numbers of how a model is trained, from a configuration."""

import numpy as np

from lamperti.config import FitConfig
from lamperti.train.loop import Settings
from lamperti.train.schedule import Schedule
from lamperti.train.step import LearningRates


def settings_of(fit: FitConfig) -> Settings:
    """The plain numbers of a configuration."""
    return Settings(
        max_iterations=fit.max_iterations,
        max_seconds=np.inf if fit.max_minutes is None else 60.0 * fit.max_minutes,
        batch_size=fit.batch_size,
        n_samples=fit.n_samples,
        span_rate=fit.span_rate,
        follow=fit.encoder_follow,
        gauge_at=fit.gauge_at,
        validate_every=fit.validate_every,
        patience=fit.patience,
        rates=LearningRates(fit.learning_rate, fit.kernel_rate, fit.diffusion_rate),
        schedule=Schedule(fit.natural_rate, fit.start_rate, fit.start_iterations),
        seed=fit.seed,
    )
