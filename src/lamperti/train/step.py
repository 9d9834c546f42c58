"""One training iteration as one program: encode, condition, smooth, sample, bound, Adam, natural step, closed forms.

The natural step and the closed-form updates of emission and initial state reuse the paths that the gradient was
estimated from. A step whose result is not finite is refused: the state stays and the status says so.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from lamperti._compile import compiled, to_jax
from lamperti._params import realise
from lamperti._typing import Array, Bool, Int, PRNGKeyArray, Scalar
from lamperti.interfaces import AbstractSmoother
from lamperti.math.normal_gamma import weights
from lamperti.model import LatentSDE, Segment
from lamperti.objective import ElboTerms, Sampled, elbo
from lamperti.smoothers import Linearised

_MIN_SPAN = 3
_SCORE_RELINEARISE = 2


class LearningRates(NamedTuple):
    """Adam's rates of the networks, of kernel and inducing inputs, and of the diffusion."""

    network: float = 2e-3
    kernel: float = 1e-2
    diffusion: float = 1e-2


class Rates(eqx.Module):
    """What the schedule changes from one iteration to the next; arrays, so that nothing is compiled again."""

    rho: Scalar  # natural step and closed-form updates
    learning: Scalar  # factor on Adam's rates


class TrainState(eqx.Module):
    """Everything that an iteration changes."""

    model: LatentSDE
    opt_state: optax.OptState
    key: PRNGKeyArray


class StepReport(eqx.Module):
    """What an iteration did: the bound's terms (of the masked chain), whether it was accepted, halvings of rho."""

    terms: ElboTerms
    accepted: Bool[Array, ""]
    halvings: Int[Array, ""]


def trainable_spec(model: LatentSDE) -> LatentSDE:
    """True at the leaves that Adam moves."""
    spec = jax.tree.map(lambda _: False, model)

    def arrays(tree):
        return jax.tree.map(eqx.is_inexact_array, tree)

    def moved(m: LatentSDE):
        d = m.dynamics
        moved = [m.encoder, d.kernels, d.amplitude, d.Z]
        if not d.mean.fixed:
            moved.append(d.mean)
        return moved if d.diffusion_step == "natural" else [*moved, d.diffusion]

    return eqx.tree_at(moved, spec, [arrays(part) for part in moved(model)])


@lru_cache(maxsize=16)
def make_optimiser(rates: LearningRates) -> optax.GradientTransformation:
    """Adam with a rate for each group of parameters. The same rates give the same object, which is part of what the
    step was compiled for."""

    def labels(params: LatentSDE) -> LatentSDE:
        tree = jax.tree.map(lambda _: "network", params)
        d = tree.dynamics
        kernel = jax.tree.map(lambda _: "kernel", (d.kernels, d.amplitude, d.Z))
        tree = eqx.tree_at(lambda m: (m.dynamics.kernels, m.dynamics.amplitude, m.dynamics.Z), tree, kernel)
        return eqx.tree_at(
            lambda m: m.dynamics.diffusion, tree, jax.tree.map(lambda _: "diffusion", d.diffusion), is_leaf=_none
        )

    groups: dict[Hashable, optax.GradientTransformation] = {
        name: optax.adam(rate) for name, rate in rates._asdict().items()
    }
    return optax.chain(optax.clip_by_global_norm(10.0), optax.multi_transform(groups, labels))


def _none(leaf) -> bool:
    return leaf is None


def start_state(model: LatentSDE, optimiser: optax.GradientTransformation, *, key: PRNGKeyArray) -> TrainState:
    # A weakly typed scalar would come back strong from the first step and make the second compile anew.
    # A copy, because the step takes its state's memory and the caller's model must stay whole.
    model = jax.tree.map(lambda a: to_jax(a) if eqx.is_inexact_array(a) else a, model)
    return TrainState(model, _first_moments(model, optimiser), key)


def optimiser_state(model: LatentSDE, optimiser: optax.GradientTransformation) -> optax.OptState:
    """Adam's averages before the first step."""
    params, _ = eqx.partition(model, trainable_spec(model))
    return optimiser.init(params)


_first_moments = compiled(optimiser_state)


class Plan(NamedTuple):
    """What is the same in all iterations. Numbers and functions here are part of the program."""

    optimiser: optax.GradientTransformation
    n_samples: int
    span_rate: float
    follow: float
    n_transitions: Scalar  # an array: data sets of many sizes share a program


class Given(NamedTuple):
    """What an iteration works with and leaves as it is."""

    plan: Plan
    batch: Segment
    rates: Rates


Step = Callable[[Segment, TrainState, Rates], tuple[TrainState, StepReport]]


def make_step(
    optimiser: optax.GradientTransformation,
    *,
    n_samples: int,
    n_transitions: int,
    span_rate: float,
    follow: float = 0.0,
) -> Step:
    """The compiled step: (batch, state, rates) -> (state, report). The memory of the state that goes in is reused."""
    plan = Plan(optimiser, n_samples, span_rate, follow, jnp.asarray(float(n_transitions)))
    return lambda batch, state, rates: _step(Given(plan, batch, rates), state)


@compiled(donate=True)
def _step(given: Given, state: TrainState) -> tuple[TrainState, StepReport]:
    plan, batch, rates = given
    key_next, key_span, key_elbo = jax.random.split(state.key, 3)
    model = state.model
    w = weights(model.dynamics.q)
    params, fixed = eqx.partition(model, trainable_spec(model))
    n_chain = batch.y.shape[1] - model.encoder.lead
    keep = masked_spans(key_span, batch.y.shape[0], n_chain, plan.span_rate) if plan.span_rate > 0 else None

    def loss(params):
        realised = realise(eqx.combine(params, fixed))
        terms, sampled = elbo(
            realised,
            batch,
            weights=w,
            n_samples=plan.n_samples,
            n_transitions=plan.n_transitions,
            keep=keep,
            key=key_elbo,
        )
        # The second part moves the encoder only; the bound that is reported does not have it.
        cost = -terms.total / plan.n_transitions + plan.follow * sampled.encoder_error
        return cost, (terms, jax.lax.stop_gradient(sampled))

    (_, (terms, sampled)), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = plan.optimiser.update(grads, state.opt_state, params)
    updates = jax.tree.map(lambda u: rates.learning * u, updates)
    moved: Any = eqx.combine(optax.apply_updates(params, updates), fixed)
    moved, halvings = conjugate_updates(moved, sampled, batch, keep, rates.rho)

    accepted = _all_finite((moved, opt_state, terms))
    kept = _choose(accepted, (moved, opt_state), (model, state.opt_state))
    return TrainState(kept[0], kept[1], key_next), StepReport(terms, accepted, halvings)


def conjugate_updates(
    model: LatentSDE, sampled: Sampled, batch: Segment, keep: Bool[Array, "B T"] | None, rho: Scalar
) -> tuple[LatentSDE, Int[Array, ""]]:
    """Natural step of the drift's posterior; closed-form emission and initial state."""
    realised = realise(model.dynamics)
    stepped, halvings = realised.natural_step(sampled.statistics, rho)
    lead = model.encoder.lead
    # In a masked span the path is a forecast; its error is not observation noise.
    seen = batch.mask[:, lead:] if keep is None else batch.mask[:, lead:] & keep[:, :, None]
    emission = model.emission.updated(batch.y[:, lead:], seen, sampled.x, rho)
    initial = model.initial.updated(sampled.x[:, :, 0].reshape(-1, model.latent_dim), rho)
    model = eqx.tree_at(lambda m: (m.dynamics.q, m.emission, m.initial), model, (stepped.q, emission, initial))
    return model, halvings


def masked_spans(key: PRNGKeyArray, n_series: int, length: int, rate: float) -> Bool[Array, "B T"]:
    """False inside one random span (up to a third of the chain) of a share ``rate`` of the series: there the
    dynamics alone must carry the chain."""
    key_pick, key_start, key_length = jax.random.split(key, 3)
    picked = jax.random.uniform(key_pick, (n_series, 1)) < rate
    longest = max(length // 3, _MIN_SPAN + 1)
    span = jax.random.randint(key_length, (n_series, 1), _MIN_SPAN, longest)
    start = jax.random.randint(key_start, (n_series, 1), 0, length)
    k = jnp.arange(length)
    return ~(picked & (k >= start) & (k < start + span))


@compiled
def score(model: LatentSDE, batch: Segment, *, n_samples: int, key: PRNGKeyArray) -> Scalar:
    """Bound of held-out segments with unmasked potentials: the data terms per transition.

    A chain linearised at the encoder's means is linearised anew at its own smoothed ones. Where the encoder errs on
    windows that it has not seen, the bound would otherwise say so of the drift, and a good state of the drift would be
    passed over."""
    realised = realise(eqx.tree_at(lambda m: m.smoother, model, _for_scoring(model.smoother)))
    n = jnp.sum(batch.link[:, model.encoder.lead :]).astype(float)
    w = weights(realised.dynamics.q)
    terms, _ = elbo(realised, batch, weights=w, n_samples=n_samples, n_transitions=n, key=key)
    return terms.data / n


def _for_scoring(smoother: AbstractSmoother) -> AbstractSmoother:
    if isinstance(smoother, Linearised):
        return Linearised(smoother.scan, max(smoother.relinearise, _SCORE_RELINEARISE))
    return smoother


def _all_finite(tree) -> Bool[Array, ""]:
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    return jnp.all(jnp.stack(leaves))


def _choose(accepted: Bool[Array, ""], new, old):
    def pick(a, b):
        return jnp.where(accepted, a, b) if eqx.is_array(a) else a

    return jax.tree.map(pick, new, old)
