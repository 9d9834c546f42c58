"""A model that needs no training is judged on the last quarter of the data, by one of its kind fitted to the rest."""

import warnings

import numpy as np
import pytest

import lamperti as lp
from lamperti.diagnostics.refitted import or_refitted
from lamperti.diagnostics.verdict import Verdict, judge


def seasonal(n=140):
    rng = np.random.default_rng(5)
    t = np.arange(n)
    return lp.Series(50 + 0.1 * t + 4 * np.sin(2 * np.pi * t / 12) + 0.4 * rng.normal(size=n))


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lp.LampertiWarning)
        return lp.fit(seasonal(), progress=False)


def test_a_short_record_has_a_verdict_that_says_what_it_is_of(result):
    assert judge(result).kind == "unknown"
    verdict = result.verdict
    assert verdict.kind in ("better", "as good") and verdict.table
    assert "first three quarters" in verdict.notes[0]
    assert "first three quarters" in " ".join(str(result.summary()).split())


def test_a_verdict_on_what_was_held_out_gives_way(result):
    """It is of a few stretches; this is of a quarter."""
    verdict = or_refitted(Verdict("Better.", "better"), result, [seasonal()])
    assert verdict.table and verdict.origins > 10


def test_a_verdict_on_other_data_stays(result):
    """The first rows differ, so that some are new to the model."""
    known = Verdict("Better.", "better")
    other = seasonal()
    assert or_refitted(known, result, [lp.Series(other.values[:, 0] + 1.0)]) is known


def test_of_data_too_short_to_fit_again_nothing_is_said(result):
    unknown = Verdict("Unknown.", "unknown")
    assert or_refitted(unknown, result, [seasonal(20)]) is unknown
    assert or_refitted(unknown, result, []) is unknown
