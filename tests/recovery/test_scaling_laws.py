"""Thresholds, recovered counts and tail sums."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.recovery.scaling_laws import (
    asymptotic_mse,
    recovered_count,
    tail_mse,
    thresholds,
)
from spectral_laws.recovery.teacher import power_law_weights


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
