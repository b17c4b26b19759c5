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


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_features_are_orthonormal_by_exact_moments(dimension, degree):
    grid, mass = quadrature(dimension)
    features = hermite_features(grid, degree)
    gram = features.T @ (mass[:, None] * features)
    np.testing.assert_allclose(gram, np.eye(feature_dimension(dimension, degree)), atol=1e-12)
    np.testing.assert_allclose(mass @ features, 0, atol=1e-12)


def test_features_are_orthonormal_by_sampling():
    n = 40_000
    features = hermite_features(np.random.default_rng(1).standard_normal((n, 6)), 2)
    gram = features.T @ features / n
    # The largest variance of an entry is E[F^4] - 1 = 14 for a square; 5.5 standard errors.
    assert np.abs(gram - np.eye(21)).max() < 5.5 * math.sqrt(14 / n)


@pytest.mark.parametrize("dimension", [1, 2, 5, 6])
def test_degree_two_features_are_the_multi_index_polynomials(dimension):
    x = np.random.default_rng(2).standard_normal((7, dimension))
    first, second = index_pairs(dimension)
    pairs = {tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)}
    assert pairs == set(itertools.combinations_with_replacement(range(dimension), 2))
    assert len(first) == feature_dimension(dimension, 2)
    features = hermite_features(x, 2)
    for column, (i, j) in enumerate(zip(first, second, strict=True)):
        powers = np.bincount([i, j], minlength=dimension)
        expected = np.ones(len(x))
        for coordinate, power in enumerate(powers):
            value = hermeval(x[:, coordinate], [0] * power + [1])
            expected = expected * value / math.sqrt(math.factorial(power))
        np.testing.assert_allclose(features[:, column], expected, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
@given(dimension=st.integers(1, 9), columns=st.integers(1, 12), seed=st.integers(0, 99))
def test_feature_map_equals_the_matrix(degree, dimension, columns, seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal((columns, dimension))
    fmap = FeatureMap(dimension, degree, dtype=torch.float64)
    features = hermite_features(x, degree)
    block = torch.from_numpy(x.T.copy())
    np.testing.assert_allclose(fmap.features(block).numpy(), features.T, atol=1e-12)

    vectors = torch.from_numpy(random.standard_normal((3, fmap.size)))
    folded, shift = fmap.fold(vectors)
    projected = (folded @ fmap.raw(block) - shift[:, None]).numpy()
    np.testing.assert_allclose(projected, vectors.numpy() @ features.T, atol=1e-11)

    weights = torch.from_numpy(random.standard_normal((3, columns)))
    back = fmap.unfold(weights @ fmap.raw(block).T, weights.sum(1)).numpy()
    np.testing.assert_allclose(back, weights.numpy() @ features, atol=1e-11)


def test_bad_arguments():
    with pytest.raises(ValueError, match="degree must be one of"):
        feature_dimension(4, 3)
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        feature_dimension(0, 2)
    with pytest.raises(ValueError, match="n x d"):
        hermite_features(np.zeros(4), 2)
    with pytest.raises(ValueError, match="chunk"):
        FeatureMap(4, 2, chunk=0)
