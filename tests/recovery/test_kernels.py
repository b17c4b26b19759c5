"""Kernels and kernel ridge regression against closed forms, Monte Carlo and another library."""

from functools import partial

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge
from sklearn.metrics.pairwise import polynomial_kernel as scikit_polynomial
from sklearn.metrics.pairwise import rbf_kernel as scikit_rbf

from spectral_laws.recovery.kernels import (
    arc_cosine_kernel,
    baseline_kernels,
    fit_kernel_ridge,
    polynomial_kernel,
    rbf_kernel,
)

RANDOM = np.random.default_rng(4)
X, Y = RANDOM.standard_normal((40, 3)), 2.0 + RANDOM.standard_normal(40)
Z = RANDOM.standard_normal((7, 3))


@pytest.mark.parametrize("power", [2, 4, 6])
def test_polynomial_kernel_equals_scikit_learn(power):
    reference = scikit_polynomial(X, Z, degree=power, gamma=1 / 3, coef0=1.0)
    np.testing.assert_allclose(polynomial_kernel(X, Z, power=power) * 2.0**power, reference)


def test_rbf_kernel_equals_scikit_learn():
    np.testing.assert_allclose(rbf_kernel(X, Z), scikit_rbf(X, Z, gamma=1 / 6))
    np.testing.assert_allclose(np.diag(rbf_kernel(X, X)), 1.0, rtol=0, atol=1e-14)


def test_arc_cosine_kernel_is_the_mean_over_random_relu_features():
    x, z = X[:5], Z[:4]
    total, squares, rounds, count = 0.0, 0.0, 20, 100_000
    for _ in range(rounds):
        w, b = RANDOM.standard_normal((3, count)), RANDOM.standard_normal(count)
        left, right = (np.maximum(v @ w / np.sqrt(3) + b, 0.0) for v in (x, z))
        total = total + left @ right.T
        squares = squares + (left**2) @ (right**2).T
    mean = total / (rounds * count)
    error = np.sqrt((squares / (rounds * count) - mean**2) / (rounds * count))
    assert np.all(np.abs(arc_cosine_kernel(x, z) - mean) < 5 * error)
    assert error.max() < 4e-3


def test_arc_cosine_kernel_at_special_angles():
    # z = (x / sqrt d, 1): the same point is at angle 0, k = |z|^2 / 2; (1, 1) and (-1, 1) at pi/2,
    # k = |z| |z'| / (2 pi).
    np.testing.assert_allclose(
        np.diag(arc_cosine_kernel(X, X)), ((X**2).sum(1) / 3 + 1) / 2, rtol=1e-12
    )
    one = np.array([[1.0]])
    assert arc_cosine_kernel(one, -one)[0, 0] == pytest.approx(2 / (2 * np.pi), rel=1e-12)
    # Opposite and far from the bias, at x and -x: units with |w x| < b alone are active on both
    # sides, k -> (4/3) phi(0) E[max(b, 0)^3] / x = 4 / (3 pi x).
    assert arc_cosine_kernel(1e3 * one, -1e3 * one)[0, 0] == pytest.approx(
        4 / (3 * np.pi * 1e3), rel=1e-4
    )


@pytest.mark.parametrize("name", ["polynomial", "arc_cosine", "rbf"])
def test_kernels_are_one_at_the_typical_length_and_positive(name):
    kernel = baseline_kernels(2)[name]
    sphere = X * np.sqrt(3) / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(np.diag(kernel(sphere, sphere)), 1.0)
    matrix = kernel(X, X)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10


@pytest.mark.parametrize("name", ["polynomial", "arc_cosine", "rbf"])
def test_kernels_do_not_change_under_rotation(name):
    kernel = baseline_kernels(1)[name]
    rotation = np.linalg.qr(RANDOM.standard_normal((3, 3)))[0]
    np.testing.assert_allclose(kernel(X @ rotation, Z @ rotation), kernel(X, Z), rtol=1e-10)


@pytest.mark.parametrize("power", [2, 4])
def test_predictions_equal_scikit_learn(power):
    new = RANDOM.standard_normal((3000, 3))  # more rows than are predicted at a time
    kernel = partial(polynomial_kernel, power=power)
    ours = fit_kernel_ridge(X, Y, kernel=kernel, ridges=[0.3], sample_sizes=[11, 40])
    for column, n in enumerate([11, 40]):
        reference = ScikitKernelRidge(
            alpha=0.3 * 2.0**power, kernel="poly", degree=power, gamma=1 / 3, coef0=1
        )
        mean = Y[:n].mean()
        reference.fit(X[:n], Y[:n] - mean)
        np.testing.assert_allclose(
            ours.predict(new)[:, column], reference.predict(new) + mean, rtol=1e-8, atol=1e-8
        )


def test_all_inputs_are_used_where_no_sample_sizes_are_given():
    fit = fit_kernel_ridge(X, Y, kernel=rbf_kernel, ridges=[0.1])
    same = fit_kernel_ridge(X, Y, kernel=rbf_kernel, ridges=[0.1], sample_sizes=[40])
    assert fit.sample_sizes == (40,)
    np.testing.assert_array_equal(fit.dual, same.dual)


def test_a_polynomial_is_learnt_exactly_from_enough_samples():
    inputs = RANDOM.standard_normal((60, 3))
    labels = inputs[:, 0] * inputs[:, 1] - inputs[:, 2] ** 2 + 0.5
    kernel = partial(polynomial_kernel, power=2)
    fit = fit_kernel_ridge(inputs, labels, kernel=kernel, ridges=[1e-9])
    target = Z[:, 0] * Z[:, 1] - Z[:, 2] ** 2 + 0.5
    np.testing.assert_allclose(fit.predict(Z)[:, 0], target, atol=1e-6)
