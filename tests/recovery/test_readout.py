"""Second layer and scalar readout."""

import numpy as np
import pytest

from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent

RANDOM = np.random.default_rng(1)


def test_second_latent_is_the_inner_product_with_he2():
    h = RANDOM.standard_normal((20, 3))
    layer = RANDOM.standard_normal((3, 3))
    layer = layer + layer.T
    expected = [np.sum(layer * (np.outer(v, v) - np.eye(3))) for v in h]
    np.testing.assert_allclose(second_latent(layer, h), expected, atol=1e-12)


def test_polynomials_of_the_latent_are_fitted_exactly():
    latent = 3.0 + 2.0 * RANDOM.standard_normal(400)
    labels = 0.3 * latent**3 - latent + 5.0
    fit = ScalarReadout.fit(latent, labels, degree=3, ridge=0.0)
    inside = np.linspace(latent.min(), latent.max(), 50)
    np.testing.assert_allclose(fit.predict(inside), 0.3 * inside**3 - inside + 5.0, atol=1e-8)


def test_readout_is_constant_beyond_the_readout_sample():
    latent = RANDOM.standard_normal(400)
    fit = ScalarReadout.fit(latent, latent**3, degree=5, ridge=0.0)
    ends = fit.predict(np.array([latent.min(), latent.max()]))
    np.testing.assert_array_equal(fit.predict(np.array([-100.0, 100.0])), ends)


def test_ridge_is_the_stated_objective():
    latent, labels = RANDOM.standard_normal(300), RANDOM.standard_normal(300)
    fit = ScalarReadout.fit(latent, labels, degree=2, ridge=0.5)
    v = (latent - latent.mean()) / latent.std()
    design = np.column_stack([np.ones(300), v, (v**2 - 1) / np.sqrt(2)])

    def objective(c):
        return np.mean((labels - design @ c) ** 2) + 0.5 * np.sum(c[1:] ** 2)

    best = objective(fit.coefficients)
    for k in range(3):
        for step in (-1e-3, 1e-3):
            assert objective(fit.coefficients + step * np.eye(3)[k]) > best


def test_latent_that_is_constant_gives_the_mean():
    labels = RANDOM.standard_normal(100)
    for value in (0.0, 3.7):
        fit = ScalarReadout.fit(np.full(100, value), labels)
        np.testing.assert_array_equal(fit.predict(np.arange(4.0)), np.full(4, labels.mean()))


def test_affine_changes_of_the_latent_change_nothing():
    latent, labels = RANDOM.standard_normal(300), RANDOM.standard_normal(300)
    first = ScalarReadout.fit(latent, labels).predict(latent)
    second = ScalarReadout.fit(5 * latent - 2, labels).predict(5 * latent - 2)
    np.testing.assert_allclose(first, second, atol=1e-10)


def test_normalised_mse():
    labels = np.array([1.0, 2.0, 3.0, 6.0])
    assert normalised_mse(np.full(4, labels.mean()), labels) == pytest.approx(1.0)
    assert normalised_mse(labels, labels) == 0.0
    with pytest.raises(ValueError, match="all equal"):
        normalised_mse(labels, np.ones(4))


def test_bad_arguments():
    with pytest.raises(ValueError, match="degree >= 1"):
        ScalarReadout.fit(np.arange(5.0), np.arange(5.0), degree=0)
    with pytest.raises(ValueError, match="ridge >= 0"):
        ScalarReadout.fit(np.arange(5.0), np.arange(5.0), ridge=-1.0)
    with pytest.raises(ValueError, match="one length"):
        ScalarReadout.fit(np.arange(5.0), np.arange(4.0))
