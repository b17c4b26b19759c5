import numpy as np
import pytest

from spectral_laws.fitting.recovery_windows import (
    error_window,
    squared_weights,
    tail_law,
    tail_sum,
)
from spectral_laws.recovery.scaling_laws import tail_mse
from spectral_laws.recovery.teacher import draw_weights


def test_weights_and_tail_sum_are_those_of_the_recovery_room():
    weights = draw_weights(17, 0.7, np.random.default_rng(3))
    squares = squared_weights(17, 0.7)
    assert squares == pytest.approx(weights**2, rel=1e-12)
    sizes = np.geomspace(100, 1e5, 50)
    assert tail_sum(sizes, 300.0, squares) == pytest.approx(tail_mse(sizes, 300, weights))


def test_the_window_runs_from_the_third_direction_to_half_of_them():
    squares = draw_weights(19, 0.7, np.random.default_rng(3)) ** 2
    assert error_window(19, 0.7, 300.0) == pytest.approx((300 / squares[2], 300 / squares[8]))
    assert error_window(17, 0.7, 300.0) is None


@pytest.mark.parametrize("gamma", [0.4, 0.8])
def test_the_law_is_of_the_error_or_of_what_is_explained(gamma):
    log_n, log_law = tail_law(1e3, 1e5, 300.0, 30, gamma)
    assert np.exp(log_n[[0, -1]]) == pytest.approx([1e3, 1e5])
    tail = tail_mse(np.exp(log_n), 300, draw_weights(30, gamma, np.random.default_rng(0)))
    assert np.exp(log_law) == pytest.approx(tail if gamma > 0.5 else 1 - tail, rel=1e-9)
