"""What a training step learns from a part of the data is, on average over all parts, what it would learn from all.

Paths are fixed here (no draw, no noise), so every term of the bound, every statistic and every update of a step has an
exact answer, made in plain NumPy from the definitions in docs/theory.md.
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import digamma

from fixed_paths import DATA, KNOWN, LEAD, LENGTH, PRIOR, S, drift_of, made_model, paths
from known_models import unsure_drift
from lamperti._params import realise
from lamperti._typing import Array
from lamperti.math.normal_gamma import weights
from lamperti.model import LatentSDE, Segment
from lamperti.objective import elbo, encoder_error
from lamperti.train.step import Rates, conjugate_updates, make_step, score, start_state

RHO = 0.3
N_SEGMENTS = DATA.batch.y.shape[0]
PARTS = list(itertools.combinations(range(N_SEGMENTS), 2))


class Exact(NamedTuple):
    """Sums over all segments, averaged over the two paths."""

    emission: float
    initial: float
    transition: float
    entropy: float
    count: float
    squares: np.ndarray
    shift: np.ndarray
    gram: np.ndarray
    x: np.ndarray  # [B, S, T, D]
    y: np.ndarray
    mask: np.ndarray


def exact() -> Exact:
    x = paths()
    model = realise(made_model())
    d, e = model.dynamics, model.emission
    y, mask = (np.asarray(a)[:, LEAD:] for a in (DATA.batch.y, DATA.batch.mask))
    dt = np.asarray(DATA.batch.dt)[:, LEAD:]
    C, c, r = (np.asarray(a) for a in (e.C, e.c, e.noise))
    each = -0.5 * ((y[:, None] - x @ C.T - c) ** 2 / r + np.log(2 * np.pi * r))
    away = x[:, :, 0] - KNOWN.m0
    first = -0.5 * (
        np.einsum("bsi,ij,bsj->bs", away, np.linalg.inv(KNOWN.P0), away) + np.linalg.slogdet(2 * np.pi * KNOWN.P0)[1]
    )
    A, spread, f = drift_of(d, x[:, :, :-1])
    dx, steps = np.diff(x, axis=2), dt[:, None, :, None]
    alpha, g = np.asarray(d.q.shape), np.asarray(d.diffusion)
    residual = dx - steps * f
    terms = digamma(alpha) - np.log(alpha * g) - np.log(2 * np.pi * steps) - residual**2 / (g * steps) - steps * spread
    centred = dx - steps * (x[:, :, :-1] @ np.asarray(d.mean.weight).T + np.asarray(d.mean.bias))
    return Exact(
        emission=np.where(mask[:, None], each, 0.0).sum() / S,
        initial=first.sum() / S,
        transition=0.5 * terms.sum() / S,
        entropy=-0.1 * (x**2).sum() / S,
        count=float(dt.size),
        squares=(centred**2 / steps).sum(axis=(0, 1, 2)) / S,
        shift=np.einsum("bstdm,bstd->dm", A, centred) / S,
        gram=np.einsum("bt,bstdm,bstdn->dmn", dt, A, A) / S,
        x=x,
        y=y,
        mask=mask,
    )


EXACT = exact()
SCALE = DATA.n_transitions / EXACT.count


@eqx.filter_jit
def learned(model: LatentSDE, batch: Segment, n_transitions: Array, rho: Array, keep: Array | None = None):
    realised = realise(model)
    terms, sampled = elbo(realised, batch, weights=weights(realised.dynamics.q), n_samples=S,
                          n_transitions=n_transitions, key=jax.random.key(0))  # fmt: skip
    return terms, sampled.statistics, conjugate_updates(model, sampled, batch, keep, rho)[0]


def over_all_parts():
    """Terms, statistics and updates from every pair of segments, with a leading axis."""
    index = jnp.asarray(PARTS)
    batches = jax.tree.map(lambda a: a[index], DATA.batch)
    n, rho = jnp.asarray(float(DATA.n_transitions)), jnp.asarray(RHO)
    dynamic, static = eqx.partition(made_model(), eqx.is_array)
    return jax.lax.map(lambda batch: eqx.filter(learned(eqx.combine(dynamic, static), batch, n, rho), eqx.is_array),
                       batches)  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    return over_all_parts()


@pytest.fixture(scope="module")
def full():
    return learned(made_model(), DATA.batch, jnp.asarray(float(DATA.n_transitions)), jnp.asarray(RHO))


@pytest.mark.parametrize("name", ["emission", "initial", "transition", "entropy"])
def test_term_of_the_bound_is_the_sum_over_the_data_set_in_full_and_on_average_over_minibatches(name, parts, full):
    assert DATA.n_transitions == 34 and EXACT.count == 30
    np.testing.assert_allclose(getattr(full[0], name), SCALE * getattr(EXACT, name), rtol=1e-6)
    np.testing.assert_allclose(np.mean(getattr(parts[0], name)), SCALE * getattr(EXACT, name), rtol=1e-6)


def test_divergence_from_the_prior_is_counted_once_whatever_the_batch(parts, full):
    whole = float(realise(made_model()).dynamics.kl())
    np.testing.assert_allclose(full[0].kl, whole, rtol=1e-12)
    np.testing.assert_allclose(parts[0].kl, whole, rtol=1e-12)
    np.testing.assert_allclose(full[0].total, SCALE * sum(EXACT[:4]) - whole, rtol=1e-6)


@pytest.mark.parametrize("name", ["count", "squares", "shift", "gram"])
def test_statistic_of_the_natural_step_is_that_of_the_data_set(name, parts, full):
    wanted = SCALE * getattr(EXACT, name)
    np.testing.assert_allclose(getattr(full[1], name), wanted, rtol=1e-8)
    np.testing.assert_allclose(np.mean(getattr(parts[1], name), axis=0), wanted, rtol=1e-8)


def test_natural_step_goes_its_share_of_the_way_to_the_posterior_of_the_data_set(parts, full):
    """In natural parameters, where the step is linear; the rate with the energy mu' Sigma^-1 mu / 2."""
    q, p = unsure_drift(), PRIOR

    def second(rate, shift, prec):
        return rate + 0.5 * np.einsum("...i,...ij,...j->...", shift, np.linalg.inv(prec), shift)

    q_rate = np.asarray(q.shape * made_model().dynamics.diffusion.value)  # the rate that is in force
    wanted = {
        "shape": (1 - RHO) * q.shape + RHO * (p.shape + 0.5 * SCALE * EXACT.count),
        "shift": (1 - RHO) * q.shift + RHO * SCALE * EXACT.shift,
        "prec": (1 - RHO) * q.prec + RHO * (p.prec + SCALE * EXACT.gram),
        "second": (1 - RHO) * second(q_rate, q.shift, q.prec) + RHO * (p.rate + 0.5 * SCALE * EXACT.squares),
    }
    for updated in (full[2].dynamics.q, parts[2].dynamics.q):
        found = {name: np.asarray(getattr(updated, name)) for name in ("shape", "shift", "prec")}
        found["second"] = second(np.asarray(updated.rate), found["shift"], found["prec"])
        for name, value in wanted.items():
            got = found[name] if found[name].ndim == np.ndim(value) else found[name].mean(axis=0)
            np.testing.assert_allclose(got, value, rtol=1e-8, err_msg=f"{name} of the drift's posterior")


def wanted_moments(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the emission after a step of size rho over all data, values counted where ``seen``."""
    z = np.concatenate([EXACT.x, np.ones((*EXACT.x.shape[:-1], 1))], axis=-1)
    old = made_model().emission.moments
    zz, zy, yy = [], [], []
    for p in range(2):
        rows = np.moveaxis(z, 1, 2)[seen[:, :, p]]  # [n, S, 3]
        y = EXACT.y[seen[:, :, p], p]
        zz.append(np.einsum("nsi,nsj->ij", rows, rows) / (len(y) * S))
        zy.append(np.einsum("nsi,n->i", rows, y) / (len(y) * S))
        yy.append(np.mean(y**2))
    return tuple((1 - RHO) * np.asarray(a) + RHO * np.array(b)
                 for a, b in zip((old.zz, old.zy, old.yy), (zz, zy, yy), strict=True))  # fmt: skip


def test_emission_goes_its_share_of_the_way_to_the_data_set(parts, full):
    wanted = wanted_moments(EXACT.mask)
    for name, value in zip(("zz", "zy", "yy"), wanted, strict=True):
        np.testing.assert_allclose(getattr(full[2].emission.moments, name), value, rtol=1e-8)
        np.testing.assert_allclose(np.mean(getattr(parts[2].emission.moments, name), axis=0), value, rtol=1e-8)


def test_loadings_offset_and_noise_are_the_least_squares_fit_of_the_moments(full):
    for p, (zz, zy, yy) in enumerate(zip(*wanted_moments(EXACT.mask), strict=True)):
        fit = np.linalg.solve(zz, zy)
        np.testing.assert_allclose(full[2].emission.C[p], fit[:2], rtol=1e-5)
        np.testing.assert_allclose(full[2].emission.c[p], fit[2], rtol=1e-5)
        np.testing.assert_allclose(full[2].emission.noise[p], yy - zy @ fit, rtol=1e-5)


def test_values_in_a_masked_span_do_not_count_for_the_emission():
    keep = np.ones((N_SEGMENTS, LENGTH), bool)
    keep[1, 1:4], keep[4, 3:] = False, False
    n, rho = jnp.asarray(float(DATA.n_transitions)), jnp.asarray(RHO)
    moved = learned(made_model(), DATA.batch, n, rho, jnp.asarray(keep))[2]
    for name, value in zip(("zz", "zy", "yy"), wanted_moments(EXACT.mask & keep[:, :, None]), strict=True):
        np.testing.assert_allclose(getattr(moved.emission.moments, name), value, rtol=1e-8)


def test_a_channel_that_a_batch_has_not_seen_keeps_its_emission():
    blind = eqx.tree_at(lambda b: b.mask, DATA.batch, DATA.batch.mask.at[:, :, 1].set(False))
    n, rho = jnp.asarray(float(DATA.n_transitions)), jnp.asarray(RHO)
    kept, old = learned(made_model(), blind, n, rho)[2].emission.moments, made_model().emission.moments
    for name, value in zip(("zz", "zy", "yy"), wanted_moments(EXACT.mask), strict=True):
        np.testing.assert_allclose(getattr(kept, name)[0], value[0], rtol=1e-8, err_msg="the channel that was seen")
        np.testing.assert_allclose(getattr(kept, name)[1], getattr(old, name)[1], rtol=1e-12)


def test_first_state_goes_its_share_of_the_way_to_the_first_states_of_the_data_set(parts, full):
    first = EXACT.x[:, :, 0].reshape(-1, 2)
    second = KNOWN.P0 + np.outer(KNOWN.m0, KNOWN.m0)
    for updated in (full[2].initial, jax.tree.map(lambda a: jnp.mean(a, axis=0), parts[2].initial)):
        np.testing.assert_allclose(updated.mean, (1 - RHO) * KNOWN.m0 + RHO * first.mean(axis=0), rtol=1e-8)
        wanted = (1 - RHO) * second + RHO * first.T @ first / len(first)
        np.testing.assert_allclose(updated.second, wanted, rtol=1e-5)  # less the ridge that the model adds


def test_encoders_error_is_the_mean_square_in_units_of_the_states_variance():
    rng = np.random.default_rng(0)
    mean, x = rng.normal(size=(3, 5, 2)), np.array([2.0, 0.5]) * rng.normal(size=(3, 4, 5, 2))
    counted = rng.random((3, 5)) < 0.6
    target = x.mean(axis=1)
    each = ((mean - target) ** 2 / target.reshape(-1, 2).var(axis=0)).mean(axis=-1)
    found = encoder_error(jnp.asarray(mean), jnp.asarray(x), jnp.asarray(counted))
    np.testing.assert_allclose(found, each[counted].mean(), rtol=1e-9)


def test_score_of_held_out_segments_is_their_data_terms_a_transition():
    found = score(made_model(), DATA.batch, n_samples=S, key=jax.random.key(0))
    np.testing.assert_allclose(found, sum(EXACT[:4]) / EXACT.count, rtol=1e-6)


def test_training_step_follows_the_slope_of_the_whole_bound_a_transition_and_the_natural_step():
    """With plain gradient steps: the diffusion moves by the slope of (bound / transitions), the divergence included;
    q by its natural step with its own rate, not with the learning rate."""
    learning, n = 0.5, float(DATA.n_transitions)
    step = make_step(optax.sgd(1.0), n_samples=S, n_transitions=DATA.n_transitions, span_rate=0.0)
    model = made_model()
    rates = Rates(jnp.asarray(RHO), jnp.asarray(learning))
    state, report = step(DATA.batch, start_state(model, optax.sgd(1.0), key=jax.random.key(3)), rates)
    assert bool(report.accepted)
    assert state.key != jax.random.key(3), "the next step would draw the same random numbers"

    def bound(change: float, coordinate: int) -> float:
        moved = eqx.tree_at(lambda m: m.dynamics.diffusion.raw, model,
                            model.dynamics.diffusion.raw.at[coordinate].add(change))  # fmt: skip
        return float(learned(moved, DATA.batch, jnp.asarray(n), jnp.asarray(RHO))[0].total)

    h = 1e-4
    slope = np.array([(bound(h, d) - bound(-h, d)) / (2 * h) for d in range(2)])
    moved = state.model.dynamics.diffusion.raw - model.dynamics.diffusion.raw
    np.testing.assert_allclose(moved, learning * slope / n, rtol=1e-5)
    wanted = (1 - RHO) * model.dynamics.q.shift + RHO * SCALE * EXACT.shift
    # Statistics of the kernel as it was when the paths were drawn, not as the gradient step leaves it.
    np.testing.assert_allclose(state.model.dynamics.q.shift, wanted, rtol=1e-6)
    np.testing.assert_allclose(state.model.initial.mean,
                               (1 - RHO) * KNOWN.m0 + RHO * EXACT.x[:, :, 0].mean(axis=(0, 1)), rtol=1e-8)  # fmt: skip
