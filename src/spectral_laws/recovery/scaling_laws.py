"""The paper's laws, up to constants: thresholds, recovered count, and the tail sum of the error.

Source: arXiv:2605.14567. The sharp theory, with constants, is in :mod:`.theory`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def thresholds(weights: ArrayLike, feature_dimension: int) -> NDArray[np.float64]:
    """Order of the sample size at which direction i appears, n_i = D / lambda_i^2.

    Raises:
        ValueError: if a weight is zero.
    """
    values = np.asarray(weights, dtype=np.float64)
    if np.any(values == 0):
        raise ValueError("weights must not be zero")
    return feature_dimension / values**2


def recovered_count(
    sample_size: ArrayLike, feature_dimension: int, weights: ArrayLike
) -> NDArray[np.int64]:
    """m(n) = #{i : n >= D / lambda_i^2}.

    For |lambda_i| = Z i^-gamma this is the integer part of (Z^2 n / D)^(1 / (2 gamma)), up to d1.
    """
    n = np.asarray(sample_size, dtype=np.float64)
    return np.asarray((n[..., None] >= thresholds(weights, feature_dimension)).sum(-1))


def tail_mse(
    sample_size: ArrayLike, feature_dimension: int, weights: ArrayLike
) -> NDArray[np.float64]:
    """Exact finite-d1 tail sum_{i > m(n)} lambda_i^2: the MSE if the first m(n) are known."""
    squares = np.asarray(weights, dtype=np.float64) ** 2
    tails = np.append(np.cumsum(squares[::-1])[::-1], 0.0)
    return np.asarray(tails[recovered_count(sample_size, feature_dimension, weights)])


def asymptotic_mse(
    sample_size: ArrayLike, *, dimension: int, degree: int, n_directions: int, gamma: float
) -> NDArray[np.float64]:
    """The paper's scaling law of the MSE, without its constant.

    gamma > 1/2: (n / d^q)^(-1 + 1/(2 gamma)), for n >> d^q;
    gamma < 1/2: 1 - (n / (d1 d^q))^(1/(2 gamma) - 1), for d^q << n << d1 d^q.

    Raises:
        ValueError: at gamma = 1/2 and gamma = 0, where there is no power law, and for n outside
            the window of the law.
    """
    n = np.asarray(sample_size, dtype=np.float64)
    scale = float(dimension) ** degree
    if gamma <= 0.0 or gamma == 0.5:
        raise ValueError(f"no power law at gamma = {gamma}")
    if np.any(n < scale):
        raise ValueError(f"the law holds for n above d^q = {scale:g}")
    if gamma > 0.5:
        return np.asarray((n / scale) ** (-1.0 + 1.0 / (2.0 * gamma)))
    if np.any(n > n_directions * scale):
        raise ValueError(f"the law holds for n below d1 d^q = {n_directions * scale:g}")
    return np.asarray(1.0 - (n / (n_directions * scale)) ** (1.0 / (2.0 * gamma) - 1.0))
