"""Differences of scores at origins that overlap."""

import numpy as np
import pytest
from scipy.signal import lfilter

from lamperti.evaluation.paired import block_mean, blocks_of


def test_with_blocks_of_one_the_error_is_that_of_independent_values():
    d = np.array([1.0, 2.0, 4.0, 5.0, np.nan])
    found = block_mean(d, np.arange(5))
    assert (found.mean, found.n, found.blocks) == (3.0, 4, 4)
    assert found.se == pytest.approx(np.std(d[:4], ddof=1) / 2)


def test_copies_in_a_block_count_once():
    d = np.random.default_rng(0).normal(size=12)
    once, thrice = block_mean(d, np.arange(12)), block_mean(np.repeat(d, 3), np.repeat(np.arange(12), 3))
    assert thrice.se == pytest.approx(once.se) and thrice.mean == pytest.approx(once.mean)
    assert thrice.margin(1.959964) == pytest.approx(2.201 * thrice.se, rel=1e-3)  # Student's, 11 degrees of freedom


def test_one_block_says_nothing():
    found = block_mean(np.ones(5), np.zeros(5, int))
    assert np.isnan(found.se) and not found.beyond() and found.margin() == np.inf
    assert block_mean(np.full(3, np.nan), np.arange(3)).n == 0


def test_blocks_do_not_reach_over_series():
    series, row = np.array([0, 0, 0, 1, 1, 1]), np.array([5, 9, 15, 5, 6, 30])
    assert blocks_of(series, row, 10).tolist() == [1, 1, 2, 3, 3, 5]
    assert len(set(blocks_of(series, row, 1).tolist())) == 6


def test_forecasts_that_are_equally_good_are_seldom_told_apart():
    """Scores over a horizon of 8, at origins 2 apart: moving averages of noise."""
    rng, sure = np.random.default_rng(1), 0
    row = np.arange(0, 96, 2)
    blocks = blocks_of(np.zeros(len(row), int), row, 8)
    for _ in range(400):
        d = lfilter(np.ones(8), 1.0, rng.normal(size=104))[8:][row]
        sure += block_mean(d, blocks).beyond()
    assert sure / 400 < 0.12  # 0.05 if blocks did not touch
    naive = [block_mean(lfilter(np.ones(8), 1.0, rng.normal(size=104))[8:][row], row).beyond() for _ in range(200)]
    assert np.mean(naive) > 0.25
