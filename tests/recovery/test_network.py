"""The network baseline."""

import numpy as np
import pytest
import torch

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.network import fit_network
from spectral_laws.settings.recovery import NetworkBaseline

RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((400, 3))
Y = 100.0 + 7.0 * X[:, 0] * X[:, 1]
SETTINGS = NetworkBaseline(width=24, epochs=60, batch_size=32, learning_rate=1e-2, weight_decay=0.1)


def test_it_learns_a_product():
    fit = fit_network(X, Y, SETTINGS, seed=1)
    new = RANDOM.standard_normal((2000, 3))
    error = np.mean((fit.predict(new) - (100.0 + 7.0 * new[:, 0] * new[:, 1])) ** 2) / 49.0
    assert error < 0.2
    assert fit.validation_error / 49.0 == pytest.approx(error, rel=1.0)


def test_validation_error_is_that_of_the_last_fifth_with_the_kept_weights():
    fit = fit_network(X, Y, SETTINGS, seed=1)
    assert np.mean((fit.predict(X[320:]) - Y[320:]) ** 2) == pytest.approx(
        fit.validation_error, rel=1e-4
    )
    assert (fit.mean, fit.scale) == (Y[:320].mean(), Y[:320].std())
    assert 1 <= fit.epoch <= 60


def test_held_out_labels_choose_the_epoch_and_nothing_else():
    # Noise of the held-out labels may move the chosen epoch but not the course of training.
    short = SETTINGS.model_copy(update={"epochs": 1})
    noisy = Y.copy()
    noisy[320:] += RANDOM.standard_normal(80)
    first, second = fit_network(X, Y, short, seed=1), fit_network(X, noisy, short, seed=1)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.validation_error != second.validation_error


def test_overfitting_is_stopped_before_the_end():
    noise = RANDOM.standard_normal(60)
    fit = fit_network(X[:60], noise, SETTINGS.model_copy(update={"weight_decay": 0.0}), seed=1)
    assert fit.epoch < 60


def test_seed_decides_everything_and_the_global_generator_nothing():
    torch.manual_seed(1)
    first = fit_network(X[:50], Y[:50], SETTINGS, seed=5)
    torch.manual_seed(2)
    again = fit_network(X[:50], Y[:50], SETTINGS, seed=5)
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    other = fit_network(X[:50], Y[:50], SETTINGS, seed=6)
    assert not np.allclose(first.predict(X), other.predict(X))


@pytest.mark.slow
def test_it_does_not_depend_on_the_labels_units():
    first = fit_network(X, Y, SETTINGS, seed=1).predict(X)
    scaled = fit_network(X, 1000.0 * (Y - 100.0), SETTINGS, seed=1).predict(X)
    np.testing.assert_allclose(scaled / 1000.0 + 100.0, first, rtol=0, atol=0.2)


@pytest.mark.slow
def test_weight_decay_is_used():
    strong = SETTINGS.model_copy(update={"weight_decay": 50.0})
    weights = [
        sum(
            float(p.detach().square().sum())
            for p in fit_network(X, Y, s, seed=1).network.parameters()
        )
        for s in (SETTINGS, strong)
    ]
    assert weights[1] < 0.5 * weights[0]


def test_too_few_or_equal_labels():
    with pytest.raises(ValueError, match="at least 5 samples, got 4"):
        fit_network(X[:4], Y[:4], SETTINGS)
    with pytest.raises(ValueError, match="all equal"):
        fit_network(X[:20], np.ones(20), SETTINGS)


def test_runaway_training_is_reported():
    wild = SETTINGS.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(NumericalError, match="validation error of the network with n = 40"):
        fit_network(X[:40], Y[:40], wild)
