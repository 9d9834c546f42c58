import numpy as np
import pytest

from lamperti._errors import LampertiError
from lamperti.data import systems
from lamperti.evaluation import equation
from lamperti.evaluation.equation import Alignment

DT = 0.1
T = np.array([[1.0, 0.5], [-0.3, 2.0]])
OFFSET = np.array([0.2, -1.0])


@pytest.fixture(scope="module")
def rotation():
    return systems.ornstein_uhlenbeck(40, 300, DT, seed=0)


def latent_equation(system, scale=1.0):
    """The exact sampled equation of a linear system in coordinates z with x = T z + OFFSET."""
    A = (system.transition_matrix(DT) - np.eye(2)) / DT

    def drift(z):
        return scale * np.linalg.solve(T, A @ (z @ T.T + OFFSET).T).T

    return drift


def test_alignment_recovers_the_affine_map(rotation):
    x = rotation.states.reshape(-1, 2)
    z = np.linalg.solve(T, (x - OFFSET).T).T
    found = Alignment.fit(z, x)
    np.testing.assert_allclose(found.matrix, T, atol=1e-9)
    np.testing.assert_allclose(found.to_latent(x), z, atol=1e-9)
    with pytest.raises(LampertiError, match="true dimension"):
        Alignment.fit(z[:, :1], x)


def test_simulated_moments_are_the_closed_form_of_a_linear_system(rotation):
    x = rotation.states[:5, 0]
    exact = equation.true_moments(rotation.system, x, DT)
    nonlinear = systems.double_well().system
    drawn = equation.true_moments(nonlinear, x, 1e-3, n_draws=20_000, seed=1, substeps=1)
    # one Euler step: the moments are drift and squared gain themselves
    error = np.array([1e-12, 0.5 / np.sqrt(1e-3 * 20_000)])
    assert np.all(np.abs(drawn.drift - nonlinear.drift(x)) <= 5 * error)
    assert drawn.diffusion[:, 1, 1] == pytest.approx(0.25, rel=5 * np.sqrt(2 / 20_000))
    F = rotation.system.transition_matrix(DT)
    np.testing.assert_allclose(exact.drift, (x @ F.T - x) / DT)


def test_kramers_moyal_tends_to_the_truth_in_each_bin(rotation):
    bins = equation.occupied_bins(rotation.states[:, :-1].reshape(-1, 2), bins=6)
    seen = equation.kramers_moyal(rotation.states, DT, bins)
    truth = equation.true_moments(rotation.system, bins.x, DT)
    counts = np.bincount(bins.member[bins.member >= 0])
    error = np.sqrt(truth.diffusion[:, 0, 0] / DT / counts)
    # the drift is linear, so the mean increment of a bin is the drift at its mean state
    assert np.all(np.abs(seen.drift - truth.drift) < 5 * error[:, None])
    assert bins.share.sum() == pytest.approx(1)
    with pytest.raises(LampertiError, match="states\\[:, :-1\\]"):
        equation.kramers_moyal(rotation.states[:-1], DT, bins)


def test_the_true_equation_has_no_error_and_a_wrong_one_the_error_it_was_given(rotation):
    system = rotation.system
    Q = system.process_covariance(DT) / DT
    alignment = Alignment(T, OFFSET)
    isotropic = Alignment(np.eye(2), OFFSET)  # in these coordinates the diffusion is diagonal
    A = (system.transition_matrix(DT) - np.eye(2)) / DT

    def diffusion(z):
        return np.broadcast_to(np.diag(Q), z.shape)

    right = equation.equation_error(
        lambda z: (z + OFFSET) @ A.T, diffusion, isotropic, system, rotation.states, DT, bins=6
    )
    assert right.drift < 1e-9 and right.diffusion < 1e-9
    assert 0 < right.drift_of_kramers_moyal < 0.2 and right.drift_ratio < 1e-6
    wrong = equation.equation_error(
        latent_equation(system, scale=1.3), lambda z: 2 * diffusion(z), alignment, system, rotation.states, DT, bins=6
    )
    assert wrong.drift == pytest.approx(0.3)
    assert wrong.drift_ratio == pytest.approx(0.3 / right.drift_of_kramers_moyal)
    assert wrong.diffusion_ratio > 1


def test_eigenvalues_of_a_linear_drift_do_not_depend_on_the_coordinates(rotation):
    z = np.linalg.solve(T, (rotation.states.reshape(-1, 2) - OFFSET).T).T
    found = equation.drift_eigenvalues(latent_equation(rotation.system), z)
    np.testing.assert_allclose(found, equation.euler_eigenvalues(rotation.system, DT), atol=1e-9)
    lam = -0.3 + 3j
    np.testing.assert_allclose(found[1], (np.exp(lam * DT) - 1) / DT)


def test_too_little_data_for_any_bin_is_refused(rotation):
    with pytest.raises(LampertiError, match="no bin holds 20 samples"):
        equation.occupied_bins(rotation.states[0, :15])
