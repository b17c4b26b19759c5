"""Random ReLU features against their kernel."""

import numpy as np
import pytest

from spectral_laws.recovery.kernels import arc_cosine_kernel, fit_kernel_ridge
from spectral_laws.recovery.random_features import RandomFeatures, fit_random_features
from spectral_laws.recovery.ridge import fit_dual, fit_primal

RANDOM = np.random.default_rng(9)
X, Z = RANDOM.standard_normal((60, 4)), RANDOM.standard_normal((50, 4))
Y = 1.0 + X[:, 0] ** 2 - X[:, 1] * X[:, 2]


def test_mean_of_the_products_is_the_arc_cosine_kernel():
    draws = 400
    products = np.array(
        [
            features(X[:6]) @ features(Z[:5]).T
            for features in (RandomFeatures.draw(4, 50, k, seed=1) for k in range(draws))
        ]
    )
    error = products.std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(products.mean(axis=0) - arc_cosine_kernel(X[:6], Z[:5])) < 5 * error)
    assert error.max() < 0.05


def test_predictions_approach_kernel_ridge_regression():
    exact = fit_kernel_ridge(X, Y, kernel=arc_cosine_kernel, ridges=[0.01]).predict(Z)[:, 0]

    def distance(count):
        gaps = []
        for k in range(8):
            features = RandomFeatures.draw(4, count, k, seed=2)
            (fit,) = fit_random_features(features(X), Y, [60], ridges=[0.01])
            predicted = features(Z) @ fit.coefficients + fit.label_mean
            gaps.append(np.mean((predicted - exact) ** 2))
        return np.mean(gaps)

    near, far = distance(16000), distance(1000)
    # The variance of a mean over N features falls as 1/N: 16 times.
    assert 8 < far / near < 32
    assert near < 1e-3 * exact.var()


def test_dual_and_primal_forms_agree_where_they_meet():
    features = RandomFeatures.draw(4, 40, seed=3)
    phi = features(X)
    ridges = [1e-4, 1e-2, 1.0]
    sizes = [10, 40, 41, 60]
    fits = fit_random_features(phi, Y, sizes, ridges=ridges)
    for n, fit in zip(sizes, fits, strict=True):
        centred = Y[:n] - Y[:n].mean()
        system = phi[:n].T @ phi[:n] + fit.ridge * np.eye(40)
        np.testing.assert_allclose(
            fit.coefficients, np.linalg.solve(system, phi[:n].T @ centred), rtol=1e-6, atol=1e-8
        )
    # Beside the switch from one form to the other.
    primal = fit_primal(phi[:40], Y[:40], ridges=ridges, name="k")
    assert (fits[1].ridge, fits[1].loo_error) == (primal.ridge, pytest.approx(primal.loo_error))
    dual = fit_dual(phi[:41] @ phi[:41].T, Y, [41], ridges=ridges, name="k")[0]
    assert (fits[2].ridge, fits[2].loo_error) == (dual.ridge, pytest.approx(dual.loo_error))


def test_streams_are_named():
    first, again = (RandomFeatures.draw(4, 5, 1, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert not np.allclose(first.weights, RandomFeatures.draw(4, 5, 2, seed=3).weights)


def test_features_of_a_known_layer():
    features = RandomFeatures(np.array([[3.0, 0.0], [0.0, -1.0]]), np.array([0.5, 0.25]))
    expected = [[3.5 / np.sqrt(2), 0.0], [0.0, 1.25 / np.sqrt(2)]]
    inputs = np.sqrt(2) * np.array([[1.0, 1.0], [-1.0, -1.0]])
    np.testing.assert_allclose(features(inputs), expected)


@pytest.mark.parametrize(("dimension", "count"), [(0, 3), (3, 0)])
def test_bad_sizes(dimension, count):
    with pytest.raises(ValueError, match="at least 1"):
        RandomFeatures.draw(dimension, count)
