"""The teacher: rows, weights, labels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.hermite import hermite_features, index_pairs
from spectral_laws.recovery.teacher import Teacher, power_law_weights

from .test_hermite import quadrature


@given(n_directions=st.integers(1, 60), gamma=st.floats(0, 3))
def test_weights_are_a_normalised_power_law(n_directions, gamma):
    weights = power_law_weights(n_directions, gamma)
    assert math.isclose(float(np.sum(weights**2)), 1.0, rel_tol=1e-12)
    ratios = weights / weights[0]
    np.testing.assert_allclose(ratios, np.arange(1, n_directions + 1) ** -gamma, rtol=1e-12)


def test_drawn_weights_have_random_signs():
    teacher = Teacher.draw(dimension=20, n_directions=200, gamma=0.4, seed=3)
    np.testing.assert_allclose(np.abs(teacher.weights), power_law_weights(200, 0.4))
    # 200 fair signs: outside 60..140 with probability below 1e-7.
    assert 60 < np.count_nonzero(teacher.weights > 0) < 140


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_orthonormal_rows(degree):
    teacher = Teacher.draw(dimension=12, degree=degree, n_directions=5, gamma=0.4, seed=1)
    np.testing.assert_allclose(teacher.directions @ teacher.directions.T, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(teacher.unit_directions, teacher.directions, atol=1e-12)


def test_gaussian_rows_have_variance_one_over_d():
    teacher = Teacher.draw(dimension=40, n_directions=20, gamma=0.4, rows="gaussian", seed=1)
    size = teacher.feature_dimension
    variance = float(np.mean(teacher.directions**2)) * size
    assert abs(variance - 1) < 5 * math.sqrt(2 / (20 * size))
    np.testing.assert_allclose(np.linalg.norm(teacher.unit_directions, axis=1), 1.0)
    assert np.abs(np.linalg.norm(teacher.directions, axis=1) - 1).max() > 1e-3


def test_labels_follow_the_formula():
    teacher = Teacher.draw(dimension=6, n_directions=3, gamma=0.7, seed=2)
    x = np.random.default_rng(0).standard_normal((10, 6))
    features = hermite_features(x, 2)
    expected = np.zeros(10)
    for weight, row in zip(teacher.weights, teacher.directions, strict=True):
        expected += weight * ((features @ row) ** 2 - 1) / math.sqrt(2)
    np.testing.assert_allclose(teacher.labels(x), expected, atol=1e-12)


def test_linear_labels_have_mean_zero_and_variance_one_exactly():
    teacher = Teacher.draw(dimension=3, degree=1, n_directions=2, gamma=0.4, seed=4)
    grid, mass = quadrature(3)
    labels = teacher.labels(grid)
    assert abs(mass @ labels) < 1e-12
    assert math.isclose(mass @ labels**2, 1.0, rel_tol=1e-12)


def test_quadratic_label_moments_by_quadrature_and_by_sampling():
    teacher = Teacher.draw(dimension=3, n_directions=2, gamma=0.4, seed=4)
    grid, mass = quadrature(3, order=9)
    exact = [float(mass @ teacher.labels(grid) ** k) for k in (1, 2, 4)]
    assert abs(exact[0]) < 1e-12  # E[h1_i^2] = 1 for unit rows, so h2 is centred exactly
    n = 200_000
    labels = teacher.labels(np.random.default_rng(5).standard_normal((n, 3)))
    assert abs(np.mean(labels**2) - exact[1]) < 5 * math.sqrt((exact[2] - exact[1] ** 2) / n)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_label_variance_in_closed_form(degree, seed):
    """One for degree 1; the fourth cumulants of quadratic forms besides for degree 2."""
    teacher = Teacher.draw(dimension=4, degree=degree, n_directions=3, gamma=0.7, seed=seed)
    expected = 1.0
    if degree == 2:
        first, second = index_pairs(4)
        matrices = []
        for row in teacher.directions:
            matrix = np.zeros((4, 4))
            matrix[first, second] = matrix[second, first] = row / np.where(
                first == second, 1.0, math.sqrt(2.0)
            )
            matrices.append(matrix)
        for weight, a in zip(teacher.weights, matrices, strict=True):
            for other, b in zip(teacher.weights, matrices, strict=True):
                cumulant = 8 * np.trace(a @ a @ b @ b) + 4 * np.trace(a @ b @ a @ b)
                expected += weight * other * cumulant / 2
        assert abs(expected - 1.0) > 0.1
    grid, mass = quadrature(4, order=9)
    assert math.isclose(mass @ teacher.labels(grid) ** 2, expected, rel_tol=1e-11)


def test_cubic_labels_are_centred():
    teacher = Teacher.draw(dimension=3, degree=3, n_directions=4, gamma=0.4, seed=4)
    grid, mass = quadrature(3, order=7)
    assert abs(mass @ teacher.labels(grid)) < 1e-12


def test_readouts_share_everything_else():
    identity = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7, replicate=2)
    tanh = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7, replicate=2, readout="tanh")
    np.testing.assert_array_equal(identity.directions, tanh.directions)
    np.testing.assert_array_equal(identity.weights, tanh.weights)
    x = np.random.default_rng(0).standard_normal((50, 8))
    np.testing.assert_allclose(tanh.labels(x), np.tanh(identity.labels(x)), atol=1e-14)
    relu = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7, replicate=2, readout="relu")
    np.testing.assert_array_equal(identity.directions, relu.directions)
    h2 = identity.labels(x)
    assert (h2 > 0).any()
    assert (h2 < 0).any()
    np.testing.assert_array_equal(relu.labels(x), np.where(h2 > 0, h2, 0.0))


def test_noise_changes_neither_the_teacher_nor_its_own_labels():
    plain = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7)
    noisy = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7, noise=0.5)
    assert (plain.noise, noisy.noise) == (0.0, 0.5)
    np.testing.assert_array_equal(plain.directions, noisy.directions)
    x = np.random.default_rng(0).standard_normal((50, 8))
    np.testing.assert_array_equal(plain.labels(x), noisy.labels(x))


def test_replicates_and_seeds_differ():
    first = Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7)
    for other in (
        Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=7, replicate=1),
        Teacher.draw(dimension=8, n_directions=3, gamma=0.4, seed=8),
    ):
        assert np.abs(first.directions - other.directions).max() > 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_directions": 0}, "n_directions must be in"),
        ({"n_directions": 22}, "n_directions must be in 1..D = 21"),
        ({"gamma": -0.1}, "gamma must be non-negative"),
        ({"gamma": math.nan}, "gamma must be non-negative"),
        ({"degree": 0}, "degree must be at least 1"),
        ({"noise": -0.1}, "noise must be non-negative"),
        ({"noise": math.inf}, "noise must be non-negative"),
        ({"rows": "sparse"}, "rows must be"),
        ({"readout": "softsign"}, "readout must be one of"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"dimension": 6, "n_directions": 2, "gamma": 0.4} | change
    with pytest.raises(ValueError, match=message):
        Teacher.draw(**arguments)


def test_inconsistent_fields_are_refused():
    with pytest.raises(ValueError, match="directions must be d1 x D"):
        Teacher(np.zeros((2, 5)), np.array([0.8, 0.6]), 3, 2)
    with pytest.raises(ValueError, match="sum of squares"):
        Teacher(np.eye(6)[:2], np.array([1.0, 0.6]), 3, 2)
    with pytest.raises(ValueError, match="decreasing"):
        Teacher(np.eye(6)[:2], np.array([0.6, -0.8]), 3, 2)
    with pytest.raises(ValueError, match="directions must not be zero"):
        Teacher(np.zeros((2, 6)), np.array([0.8, 0.6]), 3, 2)
    with pytest.raises(NumericalError, match="weights of a teacher"):
        Teacher(np.eye(6)[:2], np.array([np.nan, 0.6]), 3, 2)
