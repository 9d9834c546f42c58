"""Models of other windows beside each other, on the end of one series, with the past that belongs to it."""

import numpy as np

import lamperti as lp
from lamperti.alternatives import rescaled
from lamperti.data.holding import Judged
from lamperti.data.regressed import delay_coordinates
from lamperti.data.windows import interpolate
from lamperti.prepared import prepare
from lamperti.train.build import regressed_config, regressed_model
from lamperti.train.compare import compare_forecasts


def test_a_long_window_is_judged_with_its_past_and_not_with_one_made_up():
    rng = np.random.default_rng(0)
    t = np.arange(2400.0)
    y = np.sin(2 * np.pi * t / 40) + 0.5 * np.sin(2 * np.pi * t / 173) + 0.02 * rng.normal(size=len(t)).cumsum() / 40
    series = [lp.Series(y)]
    walk = prepare(series, lp.ModelConfig(latent_dim=2, window=10, coordinates="predictive"), lp.FitConfig())
    arrays = [interpolate(track) for track in walk.training]
    models = []
    for window, newest in ((10, 1), (128, 3)):
        found = delay_coordinates(arrays, dimension=3 if newest == 1 else 5, window=window, newest=newest)
        assert found is not None
        config = regressed_config(walk.config.model, found.delays, arrays)
        models.append(rescaled(walk, regressed_model(config, found, walk.training, seed=0, shake=0.5)))
    with_past = compare_forecasts(models[0], models[1], walk.judged, seed=0)
    without = compare_forecasts(models[0], models[1], [Judged(t) for t in walk.held_out], seed=0)
    assert with_past is not None and without is not None
    assert with_past.share > without.share + 0.1
    assert with_past.clearly(0.02)
