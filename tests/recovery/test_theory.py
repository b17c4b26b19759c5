"""Thresholds, tail sums and bulk edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.teacher import power_law_weights
from spectral_laws.recovery.theory import (
    _right_edge,
    asymptotic_mse,
    bulk_edges,
    recovered_count,
    tail_mse,
    thresholds,
)


@given(
    gamma=st.floats(0.05, 2), d1=st.integers(1, 50), ratio=st.floats(0.01, 1e5), signs=st.booleans()
)
def test_recovered_count_is_the_formula(gamma, d1, ratio, signs):
    weights = power_law_weights(d1, gamma) * (-1 if signs else 1)
    D = 1000
    m = (weights[0] ** 2 * ratio) ** (1 / (2 * gamma))
    count = int(recovered_count(ratio * D, D, weights))
    if abs(m - round(m)) > 1e-6 * max(m, 1):  # not on a step
        assert count == min(math.floor(m), d1)
    tail = sum(w**2 for w in weights[count:])
    assert float(tail_mse(ratio * D, D, weights)) == pytest.approx(tail, abs=1e-12)


def test_thresholds():
    np.testing.assert_allclose(thresholds([0.8, -0.6], 300), [300 / 0.64, 300 / 0.36])
    with pytest.raises(ValueError, match="zero"):
        thresholds([1.0, 0.0], 10)


def test_tail_goes_from_one_to_zero_in_steps():
    weights = power_law_weights(4, 0.4)
    limits = thresholds(weights, 100)
    sizes = np.concatenate([[1.0], limits * 1.0001])
    np.testing.assert_allclose(
        tail_mse(sizes, 100, weights), 1 - np.append(0, np.cumsum(weights**2)), atol=1e-12
    )


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


@pytest.mark.parametrize("gamma", [0.8, 1.0, 1.5])
def test_tail_sum_approaches_the_power_law_above_one_half(gamma):
    D, gaps = 1000, []
    for d1 in (100, 1000, 10_000, 300_000):
        weights = power_law_weights(d1, gamma)
        # Halfway between steps, in the window 3 <= m <= 60.
        sizes = np.geomspace(3.5, 60.5, 30) ** (2 * gamma) * D / weights[0] ** 2
        law = asymptotic_mse(sizes, dimension=D, degree=1, n_directions=d1, gamma=gamma)
        assert slope(sizes, law) == pytest.approx(-1 + 1 / (2 * gamma))
        gaps.append(abs(slope(sizes, tail_mse(sizes, D, weights)) - slope(sizes, law)))
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 0.03


@pytest.mark.parametrize(("gamma", "accuracy"), [(0.2, 0.01), (0.4, 0.06)])
def test_tail_sum_approaches_the_law_below_one_half(gamma, accuracy):
    # The first correction to sum_{i <= m} i^(-2 gamma) is relatively m^(2 gamma - 1): slow at 0.4.
    D, gaps = 100, []
    for d1 in (100, 1000, 10_000, 100_000):
        weights = power_law_weights(d1, gamma)
        sizes = np.geomspace(thresholds(weights, D)[d1 // 20], 0.9 * d1 * D, 40)
        law = asymptotic_mse(sizes, dimension=D, degree=1, n_directions=d1, gamma=gamma)
        assert slope(sizes, 1 - law) == pytest.approx(1 / (2 * gamma) - 1)
        gaps.append(abs(slope(sizes, 1 - tail_mse(sizes, D, weights)) - slope(sizes, 1 - law)))
    assert gaps[0] > gaps[-1]
    assert gaps[-1] < accuracy


def test_asymptotic_law_refuses_what_it_does_not_cover():
    inside = {"dimension": 10, "degree": 2, "n_directions": 5}
    for gamma in (0.0, 0.5):
        with pytest.raises(ValueError, match="no power law"):
            asymptotic_mse(200, gamma=gamma, **inside)
    with pytest.raises(ValueError, match="above d"):
        asymptotic_mse(50, gamma=1.0, **inside)
    with pytest.raises(ValueError, match="below d1"):
        asymptotic_mse(1000, gamma=0.3, **inside)


@pytest.mark.parametrize("c", [0.01, 0.5, 4.0])
def test_edge_of_unit_weights_is_marchenko_pasturs(c):
    assert _right_edge(np.ones(5), c) == pytest.approx((1 + math.sqrt(c)) ** 2, rel=1e-9)


@pytest.mark.parametrize("c", [0.02, 0.4, 3.0])
def test_edge_is_the_minimum_of_z(c):
    y = np.random.default_rng(0).standard_normal(300) ** 3
    y -= y.mean()

    def z(m):
        return -1 / m + np.mean(y / (1 + c * y * m))

    pole = -1 / (c * y.max())
    best = minimize_scalar(z, bounds=(pole * (1 - 1e-9), pole * 1e-6), method="bounded")
    assert bulk_edges(y, c)[1] <= best.fun + 1e-9
    assert bulk_edges(y, c)[1] == pytest.approx(best.fun, rel=1e-3)


def test_small_aspect_ratio_is_the_semicircle():
    y = np.random.default_rng(0).standard_normal(20_000)
    low, high = bulk_edges(y, 1e-4)
    expected = 2 * math.sqrt(1e-4) * y.std()
    assert high == pytest.approx(expected, rel=0.02)
    assert low == pytest.approx(-expected, rel=0.02)


@given(seed=st.integers(0, 100), c=st.floats(0.01, 10), scale=st.floats(0.1, 10))
def test_edges_scale_mirror_and_ignore_a_shift(seed, c, scale):
    y = np.random.default_rng(seed).exponential(size=50)
    low, high = bulk_edges(y, c)
    assert low < 0 < high
    assert bulk_edges(-y, c) == pytest.approx((-high, -low), rel=1e-6)
    assert bulk_edges(scale * y + 3, c) == pytest.approx((scale * low, scale * high), rel=1e-6)


@pytest.mark.parametrize("kind", ["uniform", "skewed", "gaussian"])
@pytest.mark.parametrize("ratio", [0.25, 1.5])
def test_edges_of_a_simulated_bulk(kind, ratio):
    """Gaussian features that do not depend on the labels; 4 % is 2.5 D^(-2/3) at D = 500."""
    random = np.random.default_rng(11)
    D = 500
    n = int(D / ratio)
    y = {
        "uniform": random.uniform(size=n),
        "skewed": random.choice([0.0, 1.0], p=[0.8, 0.2], size=n),
        "gaussian": random.standard_normal(n),
    }[kind]
    features = random.standard_normal((n, D))
    centred = y - y.mean()
    values = np.linalg.eigvalsh(features.T @ (centred[:, None] * features) / n)
    low, high = bulk_edges(y, D / n)
    slack = 0.04 * (high - low)
    assert low - slack <= values[0]
    assert values[-1] <= high + slack
    if kind == "gaussian":
        # The few largest labels carry less than one eigenvalue of mass: the edge they make
        # bounds the spectrum but is not reached.
        assert values[-1] > 0.75 * high
        assert values[0] < 0.75 * low
    else:
        assert values[-1] == pytest.approx(high, abs=slack)
        assert values[0] == pytest.approx(low, abs=slack)


def test_edges_refuse_bad_labels():
    with pytest.raises(ValueError, match="all equal"):
        bulk_edges(np.ones(10), 0.5)
    with pytest.raises(ValueError, match="aspect_ratio"):
        bulk_edges(np.arange(4.0), 0.0)
    with pytest.raises(NumericalError, match="labels of bulk_edges"):
        bulk_edges([1.0, math.nan], 0.5)
