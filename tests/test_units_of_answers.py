"""Every public quantity in other units of value and time is the same quantity, converted: to 1e-8, and without a fit.

The units differ by powers of ten, so that numbers in tables keep their digits.
"""

import numpy as np
import pytest

import lamperti as lp
from fixed_paths import drift_of
from known_models import Known, unsure_drift
from lamperti.data.scaling import Scaler
from lamperti.diagnostics import fixed_points, lyapunov
from lamperti.diagnostics.held_out import check_forecasts
from lamperti.diagnostics.long_run import likeness
from lamperti.diagnostics.residuals import residuals
from lamperti.diagnostics.slices import slices
from lamperti.diagnostics.summary import summarise

KNOWN = Known()
SLOPE, OFFSET, UNIT = np.array([1000.0, 0.01]), np.array([0.0, 0.0]), 100.0
SHIFTED = np.array([4.0e5, -7.0])
POINTS = np.random.default_rng(4).normal(size=(5, 2))


def pair(offset=OFFSET, **parts):
    """The same fitted model for data in two units."""
    model = KNOWN.model(**parts)
    return KNOWN.result(model), KNOWN.in_units(SLOPE, offset, UNIT).result(model)


def recorded(offset=OFFSET, n=40, seed=1):
    """The same data in two units."""
    dt = KNOWN.step * np.random.default_rng(seed).uniform(0.8, 1.2, size=n - 1)
    usual = KNOWN.simulated(dt, seed=seed, missing=0.1)
    other = lp.Series(SLOPE * usual.values + offset, times=UNIT * usual.times, mask=usual.mask, names=usual.names)
    return usual, other


def same(found, wanted, what=""):
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8 * np.nanstd(wanted), err_msg=what)


def test_drift_and_diffusion_of_a_known_equation_are_per_unit_of_the_users_time():
    result = KNOWN.result()
    same(result.drift(POINTS)[0], POINTS @ KNOWN.A.T + KNOWN.b, "drift")
    same(result.diffusion(POINTS)[0], np.broadcast_to(KNOWN.g, POINTS.shape), "diffusion")


def test_the_uncertainty_of_drift_and_diffusion_is_that_of_the_posterior_per_unit_of_time():
    """Var f = (P + A Sigma A') g; 1 / lam has an inverse-Gamma law."""
    q = unsure_drift()
    result = KNOWN.result(gp=q)
    shape, g = np.asarray(q.shape), KNOWN.g
    spread = drift_of(result.model.dynamics, POINTS)[1]
    same(result.drift(POINTS)[1], np.sqrt(spread * KNOWN.g * KNOWN.step) / KNOWN.step, "sd of the drift")
    mean = shape * g / (shape - 1)
    same(result.diffusion(POINTS[0])[0], mean, "mean of the diffusion")
    same(result.diffusion(POINTS[0])[1], mean / np.sqrt(shape - 2), "sd of the diffusion")


@pytest.mark.parametrize("what", ["drift", "diffusion"])
def test_drift_and_diffusion_and_their_sds_go_with_the_unit_of_time(what):
    usual, other = pair(gp=unsure_drift())
    for a, b in zip(getattr(usual, what)(POINTS), getattr(other, what)(POINTS), strict=True):
        same(b * UNIT, a)


def test_standardisation_takes_out_every_unit():
    usual, other = recorded(SHIFTED)
    a, b = Scaler.from_series([usual]), Scaler.from_series([other])
    same(b.shift, SLOPE * a.shift + SHIFTED)
    same(b.scale, SLOPE * a.scale)
    same(b.time_unit, UNIT * a.time_unit)
    same(b.values(other.values), a.values(usual.values))
    same(b.steps(other.steps), a.steps(usual.steps))


def test_embedded_states_have_no_unit_and_times_have_that_of_the_data():
    usual, other = (lp.embed(r, s) for r, s in zip(pair(SHIFTED), recorded(SHIFTED), strict=True))
    same(other.mean, usual.mean)
    same(other.cov, usual.cov)
    same(other.times, UNIT * usual.times)


@pytest.mark.parametrize("start", ["filter", "encoder"])
def test_forecasts_are_in_the_units_of_the_data(start):
    options = dict(horizon=6, n_samples=64, start=start)
    results, series = pair(SHIFTED, gp=unsure_drift()), recorded(SHIFTED)
    usual, other = (lp.forecast(r, s, **options) for r, s in zip(results, series, strict=True))
    same(other.states, usual.states, "states")
    same(other.samples, SLOPE * usual.samples + SHIFTED, "samples")
    same(other.mean, SLOPE * usual.mean + SHIFTED, "mean")
    same(other.sd, SLOPE * usual.sd, "sd")
    same(np.array(other.interval(0.8)), SLOPE * np.array(usual.interval(0.8)) + SHIFTED, "interval")
    same(other.times, UNIT * usual.times, "times")
    same(other.least_ess, usual.least_ess, "effective particles")


def test_simulations_are_in_the_units_of_the_data():
    usual, other = (lp.simulate(r, n_steps=6, n_paths=3) for r in pair(SHIFTED, gp=unsure_drift()))
    same(other.states, usual.states, "states")
    same(other.samples, SLOPE * usual.samples + SHIFTED, "samples")
    same(other.times, UNIT * usual.times, "times")
    same(usual.times, KNOWN.step * np.arange(1, 7), "times since the start")


def test_the_eigenvalues_of_a_known_equation_are_rates_per_unit_of_time():
    usual, other = (fixed_points(r.drift, r.states, r.scaler.time_unit) for r in pair())
    (a,), (b,) = usual, other
    exact = np.log(1 + np.linalg.eigvals(KNOWN.A) * KNOWN.step) / KNOWN.step  # of the flow that the steps are of
    np.testing.assert_allclose(np.sort_complex(a.eigenvalues), np.sort_complex(exact), rtol=1e-6)
    np.testing.assert_allclose(a.x, -np.linalg.solve(KNOWN.A, KNOWN.b), atol=1e-6)
    assert a.period == pytest.approx(2 * np.pi / np.abs(exact.imag[0]), rel=1e-6)
    np.testing.assert_allclose(b.eigenvalues * UNIT, a.eigenvalues, rtol=1e-7)
    np.testing.assert_allclose(b.multipliers, a.multipliers, rtol=1e-7)
    assert b.kind == a.kind and b.period == pytest.approx(UNIT * a.period, rel=1e-7)


def test_the_exponent_of_a_known_equation_is_a_rate_per_unit_of_time():
    """Of the stepped linear equation: log |1 + mu h| / h, whatever the noise."""
    usual, other = (lyapunov(r, n_paths=8, n_steps=400) for r in pair())
    exact = np.log(np.abs(1 + np.linalg.eigvals(KNOWN.A) * KNOWN.step)).max() / KNOWN.step
    assert usual.mean == pytest.approx(exact, rel=0.02)
    assert other.mean * UNIT == pytest.approx(usual.mean, rel=1e-6)


def number(cell: str) -> complex:
    """A number of a table."""
    return complex(cell.replace("i", "j").rstrip(",%"))


def numbers(row) -> np.ndarray:
    return np.array([number(word) for cell in row for word in cell.replace(" to ", " ").split()])


def test_the_numbers_of_the_summary_are_in_the_units_of_the_data():
    usual, other = (summarise(r) for r in pair(gp=unsure_drift()))
    a, b = dict(usual.facts), dict(other.facts)
    assert float(b["Time step:"]) == pytest.approx(UNIT * float(a["Time step:"]))
    assert float(a["Time step:"]) == KNOWN.step
    (channels, states, *rest), (other_channels, other_states, *other_rest) = usual.tables, other.tables
    for p in range(2):
        share = np.array([SLOPE[p]] * 3 + [1.0])  # mean, sd, noise sd; noise share
        np.testing.assert_allclose(numbers(other_channels[p + 1][1:]), share * numbers(channels[p + 1][1:]), rtol=1e-9)
        first = numbers(channels[p + 1][1:])
        wanted = [KNOWN.shift[p], KNOWN.scale[p], np.sqrt(KNOWN.r[p]), 100 * KNOWN.r[p] / KNOWN.scale[p] ** 2]
        np.testing.assert_allclose(first.real, wanted, rtol=0.01)
    for d in range(2):
        share = np.array([1 / UNIT] * 4 + [1.0] * 2)  # diffusion, its sd, rms drift, sd of drift; range
        np.testing.assert_allclose(numbers(other_states[d + 1][1:]), share * numbers(states[d + 1][1:]), rtol=1e-9)
    for a, b in zip(rest, other_rest, strict=True):
        assert a[0][0] == "fixed point"
        for one, two in zip(a[1:], b[1:], strict=True):
            assert one[:2] == two[:2] and one[3] == two[3]
            np.testing.assert_allclose(numbers(two[2:3]), numbers(one[2:3]) / UNIT, rtol=1e-9)


def test_slices_through_the_equation_go_with_the_unit_of_time():
    for a, b in zip(*(slices(r, n_points=5) for r in pair(gp=unsure_drift())), strict=True):
        same(b.x, a.x)
        for name in ("drift", "drift_sd", "diffusion", "diffusion_sd"):
            same(UNIT * getattr(b, name), getattr(a, name), name)


def test_residuals_have_no_unit():
    options = dict(n_pieces=1, n_particles=50)
    usual, other = (residuals(r, [s], **options) for r, s in zip(pair(SHIFTED), recorded(SHIFTED), strict=True))
    for a, b in zip(usual.increments + usual.one_step, other.increments + other.one_step, strict=True):
        same(b.values, a.values, a.name)


def test_likeness_of_free_paths_has_no_unit_but_in_its_frequencies():
    pairs = zip(pair(), recorded(n=64), strict=True)
    whole = [(r, lp.Series(np.nan_to_num(s.values), times=s.times, names=s.names)) for r, s in pairs]
    usual, other = (likeness(r, [s], n_paths=3)[0] for r, s in whole)
    for p, (a, b) in enumerate(zip(usual, other, strict=True)):
        same(UNIT * b.frequency, a.frequency, "frequency")
        assert a.frequency[-1] == pytest.approx(0.5 / KNOWN.step)
        same(b.step, UNIT * a.step, "step")
        same(b.model, SLOPE[p] * a.model, "paths")
        for name in ("sd_ratio", "roughness_ratio", "value_distance", "spectrum_distance", "escape_share"):
            np.testing.assert_allclose(getattr(b, name), getattr(a, name), rtol=1e-6, atol=1e-12, err_msg=name)


def test_scores_of_forecasts_are_in_the_units_of_the_data():
    options = dict(horizon=3, n_origins=6, n_samples=20)
    usual, other = (
        check_forecasts(r, [s], **options) for r, s in zip(pair(SHIFTED), recorded(SHIFTED, n=80), strict=True)
    )
    same(other.step, UNIT * usual.step)
    for name in ("crps", "climatology", "persistence"):
        a, b = getattr(usual, name), getattr(other, name)
        same(b / SLOPE, a, name)
    same(other.pit, usual.pit, "probability transforms")
    for level, share in usual.coverage.items():
        same(other.coverage[level], share, "coverage")
