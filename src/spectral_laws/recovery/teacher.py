"""The hierarchical teacher: d1 directions in feature space, combined into one scalar label."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.recovery.hermite import feature_dimension, hermite_features
from spectral_laws.rng import generator

Readout = Literal["identity", "tanh", "relu"]
Rows = Literal["orthonormal", "gaussian"]


@dataclass(frozen=True)
class Teacher:
    """Labels y = g(h2) with h2 = (1/sqrt 2) sum_i lambda_i (h1_i^2 - 1) and h1 = A F(x).

    Source: arXiv:2605.14567, the hierarchical model.

    Var(h2) = 1 exactly for degree 1 and orthonormal rows. For degree 2 the fourth cumulants of the
    quadratic forms h1 add a term that falls with d,
    (1/2) sum_ij lambda_i lambda_j [8 tr(A_i^2 A_j^2) + 4 tr(A_i A_j A_i A_j)],
    with A_i written as a symmetric matrix.

    Attributes:
        directions: A, d1 x D float64, one row A_i per direction.
        weights: lambda, d1 signed numbers, |lambda_i| decreasing, sum of squares 1.
        dimension: d, of the inputs.
        degree: q, of the Hermite features.
        readout: g, ``identity``, ``tanh`` or ``relu``; see :func:`apply_readout`.
        noise: standard deviation of the Gaussian noise on the labels of a sample. It is drawn by
            :class:`~spectral_laws.recovery.samples.Samples`; :meth:`labels` has none.
    """

    directions: NDArray[np.float64]
    weights: NDArray[np.float64]
    dimension: int
    degree: int
    readout: Readout = "identity"
    noise: float = 0.0

    def __post_init__(self) -> None:
        size = feature_dimension(self.dimension, self.degree)
        if self.directions.shape != (len(self.weights), size):
            raise ValueError(
                f"directions must be d1 x D = {len(self.weights)} x {size}, "
                f"got {self.directions.shape}"
            )
        check_target(self.weights, self.readout, self.noise)
        check_finite("directions of a teacher", self.directions)
        if not np.linalg.norm(self.directions, axis=1).all():
            raise ValueError("directions must not be zero")

    @classmethod
    def draw(
        cls,
        *,
        dimension: int,
        n_directions: int,
        gamma: float,
        degree: int = 2,
        rows: Rows = "orthonormal",
        readout: Readout = "identity",
        noise: float = 0.0,
        seed: int = 0,
        replicate: int = 0,
    ) -> "Teacher":
        """Draw a teacher.

        The stream is named by degree, dimension and replicate: teachers that differ in readout or
        noise alone have the same directions and weights, so they can be compared in pairs. Weights
        are |lambda_i| = Z i^-gamma with random signs; rows are ``orthonormal``, or ``gaussian``
        with variance 1/D. ``replicate`` is which of several independent teachers under one seed.
        """
        size = feature_dimension(dimension, degree)
        if not 1 <= n_directions <= size:
            raise ValueError(f"n_directions must be in 1..D = {size}, got {n_directions}")
        if rows not in ("orthonormal", "gaussian"):
            raise ValueError(f"rows must be orthonormal or gaussian, got {rows!r}")
        random = generator(seed, "teacher", degree, dimension, replicate)
        weights = draw_weights(n_directions, gamma, random)
        directions = random.standard_normal((n_directions, size)) / math.sqrt(size)
        if rows == "orthonormal":
            directions = np.ascontiguousarray(np.linalg.qr(directions.T)[0].T)
        return cls(directions, weights, dimension, degree, readout, noise)

    @property
    def n_directions(self) -> int:
        """d1."""
        return len(self.weights)

    @property
    def feature_dimension(self) -> int:
        """D."""
        return feature_dimension(self.dimension, self.degree)

    @property
    def unit_directions(self) -> NDArray[np.float64]:
        """u_i = A_i / ||A_i||, d1 x D."""
        return np.asarray(self.directions / np.linalg.norm(self.directions, axis=1, keepdims=True))

    def first_latents(self, inputs: NDArray[np.floating]) -> NDArray[np.float64]:
        """h1 = A F(x), n x d1 in float64, of inputs n x d."""
        return hermite_features(inputs, self.degree) @ self.directions.T

    def respond(self, first_latents: NDArray[np.floating]) -> NDArray[np.float64]:
        """Labels y = g(h2) without noise, n numbers, of h1 n x d1."""
        return respond(first_latents, self.weights, self.readout)

    def labels(self, inputs: NDArray[np.floating]) -> NDArray[np.float64]:
        """Labels y without noise of inputs n x d, in float64."""
        return self.respond(self.first_latents(inputs))


def check_target(weights: NDArray[np.float64], readout: Readout, noise: float) -> None:
    """Check what makes a label of latents."""
    check_finite("weights of a teacher", weights)
    if weights.ndim != 1 or len(weights) == 0 or not weights.all():
        raise ValueError(f"weights must be d1 numbers and not zero, got {weights}")
    if abs(float(np.sum(weights**2)) - 1.0) > 1e-8:
        raise ValueError(f"weights must have sum of squares 1, got {float(np.sum(weights**2))}")
    if np.any(np.diff(np.abs(weights)) > 1e-12):
        raise ValueError("weights must be ordered by decreasing magnitude")
    if readout not in get_args(Readout):
        raise ValueError(f"readout must be one of {get_args(Readout)}, got {readout!r}")
    if not (noise >= 0.0 and math.isfinite(noise)):
        raise ValueError(f"noise must be non-negative and finite, got {noise}")


def respond(
    first_latents: NDArray[np.floating], weights: NDArray[np.float64], readout: Readout
) -> NDArray[np.float64]:
    """Labels y = g(h2) with h2 = (1/sqrt 2) sum_i lambda_i (h1_i^2 - 1) of latents h1, n x d1."""
    h1 = np.asarray(first_latents, dtype=np.float64)
    return apply_readout(np.asarray((h1**2 - 1.0) @ weights / math.sqrt(2.0)), readout)


def apply_readout(second_latent: NDArray[np.float64], readout: Readout) -> NDArray[np.float64]:
    """g(h2), elementwise: ``identity``, ``tanh``, or ``relu``, max(h2, 0).

    The last is not centred. E[g] plays no part: labels are centred wherever they are used.
    """
    if readout == "tanh":
        return np.asarray(np.tanh(second_latent))
    if readout == "relu":
        return np.asarray(np.maximum(second_latent, 0.0))
    return second_latent


def draw_weights(
    n_directions: int, gamma: float, random: np.random.Generator
) -> NDArray[np.float64]:
    """lambda_i = z_i Z i^-gamma with random signs z_i; see :func:`power_law_weights`."""
    signs = random.choice((-1.0, 1.0), n_directions)
    return np.asarray(power_law_weights(n_directions, gamma) * signs)


def power_law_weights(n_directions: int, gamma: float) -> NDArray[np.float64]:
    """|lambda_i| = Z i^-gamma for i = 1..d1, with Z = (sum_i i^(-2 gamma))^(-1/2).

    Raises:
        ValueError: if d1 < 1 or gamma is negative or not finite.
    """
    if n_directions < 1:
        raise ValueError(f"n_directions must be at least 1, got {n_directions}")
    if not (gamma >= 0.0 and math.isfinite(gamma)):
        raise ValueError(f"gamma must be non-negative and finite, got {gamma}")
    magnitudes = np.arange(1, n_directions + 1, dtype=np.float64) ** -gamma
    return np.asarray(magnitudes / np.linalg.norm(magnitudes))
