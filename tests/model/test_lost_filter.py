"""A filter over a context that its model cannot follow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tests.fitted import data, result

from lamperti.data.bridging import tracks
from lamperti.data.windows import segment
from lamperti.forecasting import filter_context, predict_steps
from lamperti.train.loop import as_segment


def _stiff():
    """Next to no noise in the motion, and a sudden jump in the data: no particle can follow."""
    found = result()
    model = eqx.tree_at(lambda m: m.dynamics.diffusion.raw, found.model, jnp.full(2, -25.0))
    whole = as_segment(segment(tracks(data().series, found.scaler), 30, model.encoder.lead).cover(1))
    one = jax.tree.map(lambda a: a[0], whole)
    half = one.y.shape[0] // 2
    return model, eqx.tree_at(lambda s: s.y, one, one.y.at[half:].set(4.0))


def test_a_lost_filter_begins_anew_where_encoder_and_sample_say():
    """Two samples running are needed, so it begins anew at one of the last three; in between, the motion leads it away.
    One that stays lost is nowhere near."""
    model, one = _stiff()
    ends = [eqx.tree_at(lambda s: s.link, one, one.link.at[len(one.link) - k :].set(False)) for k in range(3)]
    found = [filter_context(model, end, n_samples=50, n_particles=100, key=jax.random.key(0)).x for end in ends]
    last = np.array([np.median(np.asarray(model.emission.mean(x))[:, 0]) for x in found])
    assert np.all(np.isfinite(last)) and np.abs(last - 4.0).min() < 3.0 * np.sqrt(float(model.emission.noise[0]))


def test_one_step_forecasts_come_back_as_well():
    model, one = _stiff()
    expected = predict_steps(model, one, n_particles=100, key=jax.random.key(0))
    error = np.abs(np.asarray(expected.mean)[:, 0] - np.asarray(one.y)[model.encoder.lead + 1 :, 0])
    assert np.all(np.isfinite(error)) and np.median(error[-8:]) < 3.0  # 3.9 without


def test_a_single_outlier_is_passed_over():
    """In the middle and at the end: the state is that of a filter that has not seen it."""
    model, one = _stiff()
    calm = eqx.tree_at(lambda s: s.y, one, jnp.zeros_like(one.y))
    for at in (one.y.shape[0] // 2, one.y.shape[0] - 1):
        spoiled = eqx.tree_at(lambda s: s.y, calm, calm.y.at[at].set(9.0))
        clean, odd = (
            np.asarray(
                model.emission.mean(filter_context(model, s, n_samples=50, n_particles=100, key=jax.random.key(0)).x)
            )
            for s in (calm, spoiled)
        )
        assert abs(np.median(odd) - np.median(clean)) < 1.0
