"""One small fitted model for all tests that need one: a training step is slow to compile."""

from functools import cache

import lamperti as lp

MODEL = lp.ModelConfig(latent_dim=2, n_inducing=8, window=6, lag=2, n_components=4, kernel="se")
FIT = lp.FitConfig(
    max_iterations=3,
    batch_size=4,
    segment_length=30,
    n_samples=2,
    validate_every=1,
    validation_fraction=0.25,
    calibrate=False,  # saves a compilation
)


@cache
def data() -> lp.systems.Simulated:
    return lp.systems.ornstein_uhlenbeck(4, 60, dt=0.1, observation_noise=0.1, seed=3)


WATCHED: list[int] = []
"""Iterations at which the model was shown while ``result`` was made."""


@cache
def result() -> lp.FitResult:
    return lp.fit(data().series, MODEL, FIT, watch=lambda iteration, model: WATCHED.append(iteration))
