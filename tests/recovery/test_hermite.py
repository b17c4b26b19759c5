"""Hermite features: orthonormality from exact moments, and the blockwise map against the matrix."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss, hermeval

from spectral_laws.recovery.hermite import (
    FeatureMap,
    feature_coordinates,
    feature_dimension,
    hermite_features,
    index_pairs,
)


def quadrature(dimension, order=5):
    """Tensor Gauss-Hermite rule for N(0, I_d), exact up to degree 2 order - 1 per coordinate."""
    nodes, weights = hermegauss(order)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(nodes, repeat=dimension)))
    mass = np.array([math.prod(w) for w in itertools.product(weights, repeat=dimension)])
    return grid, mass


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_features_are_orthonormal_by_exact_moments(dimension, degree):
    grid, mass = quadrature(dimension)
    features = hermite_features(grid, degree)
    gram = features.T @ (mass[:, None] * features)
    np.testing.assert_allclose(gram, np.eye(feature_dimension(dimension, degree)), atol=1e-12)
    np.testing.assert_allclose(mass @ features, 0, atol=1e-12)


@pytest.mark.parametrize(("degree", "dimension"), [(1, 20), (2, 6), (3, 4)])
def test_features_are_orthonormal_by_sampling(degree, dimension):
    n = 40_000
    x = np.random.default_rng(1).standard_normal((n, dimension))
    features = hermite_features(x, degree)
    gram = features.T @ features / n
    # The largest variance of an entry is that of He_q^2 / q!, from its exact moments.
    grid, mass = quadrature(1, order=2 * degree + 1)
    variance = float(mass @ hermite_features(grid, degree)[:, 0] ** 4) - 1.0
    np.testing.assert_allclose(variance, {1: 2, 2: 14, 3: 92}[degree])
    assert np.abs(gram - np.eye(len(gram))).max() < 5.5 * math.sqrt(variance / n)


@pytest.mark.parametrize("dimension", [1, 2, 5, 6])
def test_degree_two_features_are_all_pairs(dimension):
    first, second = index_pairs(dimension)
    pairs = {tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)}
    assert pairs == set(itertools.combinations_with_replacement(range(dimension), 2))
    assert len(first) == feature_dimension(dimension, 2)
    np.testing.assert_array_equal(feature_coordinates(dimension, 2), np.c_[first, second])


@pytest.mark.parametrize("degree", [1, 3, 4])
def test_other_degrees_are_in_lexicographic_order(degree):
    coordinates = feature_coordinates(5, degree).tolist()
    assert coordinates == sorted(coordinates)
    assert all(row == sorted(row) for row in coordinates)
    assert len({tuple(row) for row in coordinates}) == feature_dimension(5, degree)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("dimension", [1, 2, 5, 6])
def test_features_are_the_multi_index_polynomials(degree, dimension):
    x = np.random.default_rng(2).standard_normal((7, dimension))
    features = hermite_features(x, degree)
    for column, row in enumerate(feature_coordinates(dimension, degree)):
        powers = np.bincount(row, minlength=dimension)
        expected = np.ones(len(x))
        for coordinate, power in enumerate(powers):
            value = hermeval(x[:, coordinate], [0] * power + [1])
            expected = expected * value / math.sqrt(math.factorial(power))
        np.testing.assert_allclose(features[:, column], expected, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@given(dimension=st.integers(1, 7), columns=st.integers(1, 12), seed=st.integers(0, 99))
def test_feature_map_equals_the_matrix(degree, dimension, columns, seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal((columns, dimension))
    fmap = FeatureMap(dimension, degree, dtype=torch.float64)
    features = hermite_features(x, degree)
    block = torch.from_numpy(x.T.copy())
    np.testing.assert_allclose(fmap.features(block).numpy(), features.T, atol=1e-11)

    vectors = torch.from_numpy(random.standard_normal((3, fmap.size)))
    projected = (fmap.fold(vectors) @ fmap.raw(block)).numpy()
    np.testing.assert_allclose(projected, vectors.numpy() @ features.T, atol=1e-11)

    weights = torch.from_numpy(random.standard_normal((3, columns)))
    back = fmap.unfold(weights @ fmap.raw(block).T).numpy()
    np.testing.assert_allclose(back, weights.numpy() @ features, atol=1e-11)


@pytest.mark.parametrize(("degree", "expected"), [(1, 20), (2, 210), (3, 1540), (4, 8855)])
def test_number_of_features(degree, expected):
    assert feature_dimension(20, degree) == expected


def test_default_chunk_grows_with_the_threads_and_keeps_the_cache():
    before = torch.get_num_threads()
    try:
        chunks = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            chunks.append(FeatureMap(60, 2).chunk)
    finally:
        torch.set_num_threads(before)
    assert chunks == [128, 256]


def test_bad_arguments():
    with pytest.raises(ValueError, match="degree must be at least 1"):
        feature_dimension(4, 0)
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        feature_dimension(0, 2)
    with pytest.raises(ValueError, match="n x d"):
        hermite_features(np.zeros(4), 2)
    with pytest.raises(ValueError, match="chunk"):
        FeatureMap(4, 2, chunk=0)
