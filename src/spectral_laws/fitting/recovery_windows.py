"""Levels and windows in which the recovery paper's laws are read, by claims and figures alike.

The exponent of the test error, and that of the tail sum, are slopes over one window of sample
sizes, which the weights alone fix: from n = D / lambda_3^2 to D / lambda_h^2 with h = d1/2 rounded
down. It starts at the third direction because the first ones are strong enough to make the labels
heavy-tailed, which moves their thresholds by a factor of up to 4; it ends at half of the directions
because the tail sum of few remaining ones is no power law and falls to zero. Teachers of fewer than
18 directions (h below 9) have no window in which a law could show.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FAR = 4.0
"""Well above (below) the half-recovery sample size: this many times it (a quarter of it)."""
HIDDEN, RECOVERED = 0.1, 0.9
"""cos^2 of a direction that counts as hidden or as recovered."""
FIRST = 3
"""Direction whose threshold starts the window of the error."""
WIDE = 3
"""The window runs at least from direction k to direction 3 k."""
MINIMUM_SIZES = 3
"""Sample sizes an exponent needs inside its window."""
CRITICAL = 0.5
"""The gamma without a power law: above it the MSE has one, below it 1 - MSE."""
_TAIL_POINTS = 400  # the tail sum is a staircase; its slope is taken over many points


def squared_weights(n_directions: int, gamma: float) -> Vector:
    """lambda_i^2 = i^(-2 gamma) / sum_j j^(-2 gamma), i from 1: the same for every teacher."""
    squares = np.arange(1.0, n_directions + 1) ** (-2 * gamma)
    return np.asarray(squares / squares.sum())


def error_window(
    n_directions: int, gamma: float, feature_dimension: float
) -> tuple[float, float] | None:
    """First and last sample size of the error's law, both included; None if it is too narrow."""
    last = n_directions // 2
    if last < WIDE * FIRST:
        return None
    squares = squared_weights(n_directions, gamma)
    return float(feature_dimension / squares[FIRST - 1]), float(
        feature_dimension / squares[last - 1]
    )


def law_of_error(error: Vector, gamma: float) -> Vector:
    """What is a power of n: the error above gamma = 1/2, 1 minus it below."""
    return error if gamma > CRITICAL else 1 - error


def tail_sum(sample_size: Vector, feature_dimension: float, squares: Vector) -> Vector:
    """Sum of lambda_i^2 over the directions with n < D / lambda_i^2."""
    hidden = sample_size[:, None] < feature_dimension / squares
    return np.asarray((hidden * squares).sum(axis=1))


def tail_law(
    first: float, last: float, feature_dimension: float, n_directions: int, gamma: float
) -> tuple[Vector, Vector]:
    """Log n and log of :func:`law_of_error` of the tail sum, from sample size first to last."""
    grid = np.geomspace(first, last, _TAIL_POINTS)
    tail = tail_sum(grid, feature_dimension, squared_weights(n_directions, gamma))
    return np.log(grid), np.log(law_of_error(tail, gamma))
