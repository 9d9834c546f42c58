"""Baselines beside independent implementations of the same method."""

import warnings

import numpy as np
import pytest

from lamperti.baselines.echo_state import Network, dense
from lamperti.baselines.havok import HavokModel


def test_havok_has_the_eigenvalues_that_pydmd_finds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it imports is not ours to mend
        pydmd = pytest.importorskip("pydmd")
    # two tones, finely sampled: steps and time derivatives say the same
    dt = 0.02
    t = dt * np.arange(2000)
    y = np.sin(2 * t) + 0.5 * np.cos(3.3 * t)
    theirs = pydmd.HAVOK(svd_rank=5, delays=40).fit(y, dt)
    ours = HavokModel.learn([y[:, None]], 40, 5, np.random.default_rng(0))
    rates = np.log(np.linalg.eigvals(ours.A).astype(complex)) / dt
    np.testing.assert_allclose(np.sort(np.abs(rates.imag)), np.sort(np.abs(theirs.eigs.imag)), atol=0.02)
    np.testing.assert_allclose(np.sort(np.abs(rates.imag)), [2, 2, 3.3, 3.3], atol=0.02)


def test_reservoir_moves_as_that_of_reservoirpy():
    nodes = pytest.importorskip("reservoirpy.nodes")
    u = np.random.default_rng(0).normal(size=(30, 1))
    theirs = nodes.Reservoir(20, lr=0.3, sr=0.9, input_connectivity=1.0, seed=1)
    theirs.initialize(u)
    ours = Network(dense(theirs.W), dense(theirs.Win), np.zeros((20, 1)), np.zeros(1), 0.3, np.zeros(1), np.ones(1))
    np.testing.assert_allclose(ours.states(u), theirs.run(u), atol=1e-12)
