"""What theory says beside the measurements: thresholds, tail sums and the edges of the bulk.

Source: arXiv:2605.14567 for thresholds and laws; the bulk's edges are this project's own.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from spectral_laws.artifacts import check_finite


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
    """Exact finite-d1 tail sum_{i > m(n)} lambda_i^2: the MSE if the first m(n) are known.

    Args:
        sample_size: n, any shape.
        feature_dimension: D.
        weights: lambda, by decreasing magnitude.
    """
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


def bulk_edges(labels: ArrayLike, aspect_ratio: float) -> tuple[float, float]:
    """Left and right edge of the bulk of C, from the labels alone.

    With y centred, c = D/n and z(m) = -1/m + mean[y / (1 + c y m)], the right edge is the minimum
    of z over m in (-1/(c max y), 0), and the left edge is minus the right edge for -y. They are
    the edges for Gaussian features that do not depend on the labels. Labels so large that each
    makes an outlier of its own are inside the edges, so with unbounded labels the edges bound the
    bulk from outside; with bounded labels they are sharp.

    Args:
        labels: y, n numbers.
        aspect_ratio: c = D/n.

    Raises:
        ValueError: if the labels are all equal or the ratio is not positive.
        NumericalError: if a label is NaN or infinite.
    """
    y = np.asarray(labels, dtype=np.float64)
    check_finite("labels of bulk_edges", y)
    if not aspect_ratio > 0:
        raise ValueError(f"aspect_ratio must be positive, got {aspect_ratio}")
    y = y - y.mean()
    if y.max() <= 0:
        raise ValueError("labels are all equal: there is no bulk")
    return -_right_edge(-y, aspect_ratio), _right_edge(y, aspect_ratio)


def _right_edge(y: NDArray[np.float64], c: float) -> float:
    """Minimum of z: with m = -s / (c max y), z' = 0 where mean[(r s / (1 - r s))^2] = c.

    r = y / max y. The left side grows with s from 0 to infinity on (0, 1), so there is one root.
    """
    ratio = y / y.max()

    def excess(gap: float) -> float:
        s = 1.0 - gap
        return math.log(float(np.mean((ratio * s / (1.0 - ratio * s)) ** 2)) / c)

    gap = float(brentq(excess, 1e-14, 1.0 - 1e-14, xtol=1e-15, rtol=1e-12))
    s = 1.0 - gap
    return float(c * y.max() / s + np.mean(y / (1.0 - ratio * s)))
