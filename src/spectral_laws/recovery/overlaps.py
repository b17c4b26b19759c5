"""How much of the teacher an estimate holds."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_laws.fitting.crossings import first_crossing

Censored = Literal["no", "below", "above"]


def direction_cos2(
    unit_directions: NDArray[np.float64], estimate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """cos^2(theta_i) = ||U^T u_i||^2, one per teacher direction.

    u_i are the unit rows of ``unit_directions`` (d1 x D), U^T is the ``estimate`` (k x D) with
    orthonormal rows.
    """
    return np.asarray(np.clip(((unit_directions @ estimate.T) ** 2).sum(axis=1), 0.0, 1.0))


def matched_overlap(
    unit_directions: NDArray[np.float64], estimate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """|<uhat_k, u_k>|: the k-th estimate against the k-th direction, d1 numbers."""
    return np.asarray(np.abs(np.einsum("kf,kf->k", unit_directions, estimate)).clip(0.0, 1.0))


def feature_overlap(
    true_features: NDArray[np.float64], learned_features: NDArray[np.float64]
) -> float:
    """q_h = ||Q^T Qhat||_F^2 / d1, in [0, 1].

    Q and Qhat are orthonormal bases of the column spaces of the two matrices, so q_h does not
    change under an invertible mixing of either's columns. The features, h1 and hhat1, are of the
    same inputs, n x d1 and n x k.

    Raises:
        ValueError: if there are fewer inputs than features.
    """
    if true_features.shape[0] < max(true_features.shape[1], learned_features.shape[1]):
        raise ValueError("feature_overlap needs at least as many test inputs as features")
    basis, learned = np.linalg.qr(true_features)[0], np.linalg.qr(learned_features)[0]
    return float(np.sum((basis.T @ learned) ** 2) / true_features.shape[1])


def n_recovered(cos2: ArrayLike) -> int:
    """Number of directions with cos^2 >= 1/2."""
    return int(np.count_nonzero(np.asarray(cos2) >= 0.5))


def half_recovery(sample_sizes: ArrayLike, cos2: ArrayLike) -> tuple[float | None, Censored]:
    """Sample size n* at which cos^2 first rises through 1/2, by interpolation in log n.

    It is ``(n*, "no")``, or ``(None, "below")`` if cos^2 is 1/2 or more at the first n already, or
    ``(None, "above")`` if it stays below 1/2.

    Raises:
        ValueError: if the sizes are not increasing and positive, or the lengths differ.
        NumericalError: if a cos^2 is NaN or infinite.
    """
    crossing = first_crossing(sample_sizes, cos2, 0.5)
    if crossing is not None:
        return crossing, "no"
    return None, "below" if np.asarray(cos2)[0] >= 0.5 else "above"
