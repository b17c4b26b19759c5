"""The hierarchical teacher: d1 directions in feature space, combined into one scalar label."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.recovery.hermite import feature_dimension, hermite_features
from spectral_laws.rng import generator

Readout = Literal["identity", "tanh"]
Rows = Literal["orthonormal", "gaussian"]


@dataclass(frozen=True)
class Teacher:
    """Labels y = g(h2) with h2 = (1/sqrt 2) sum_i lambda_i (h1_i^2 - 1) and h1 = A F(x).

    Source: arXiv:2605.14567, the hierarchical model.

    Attributes:
        directions: A, d1 x D float64, one row A_i per direction.
        weights: lambda, d1 signed numbers, |lambda_i| decreasing, sum of squares 1.
        dimension: d, of the inputs.
        degree: q, of the Hermite features, 1 or 2.
        readout: g, ``identity`` or ``tanh``.
    """

    directions: NDArray[np.float64]
    weights: NDArray[np.float64]
    dimension: int
    degree: int
    readout: Readout = "identity"

    def __post_init__(self) -> None:
        size = feature_dimension(self.dimension, self.degree)
        if self.directions.shape != (len(self.weights), size):
            raise ValueError(
                f"directions must be d1 x D = {len(self.weights)} x {size}, "
                f"got {self.directions.shape}"
            )
        check_finite("weights of a teacher", self.weights)
        check_finite("directions of a teacher", self.directions)
        if not np.linalg.norm(self.directions, axis=1).all():
            raise ValueError("directions must not be zero")
        if abs(float(np.sum(self.weights**2)) - 1.0) > 1e-8:
            raise ValueError(
                f"weights must have sum of squares 1, got {float(np.sum(self.weights**2))}"
            )
        if np.any(np.diff(np.abs(self.weights)) > 1e-12):
            raise ValueError("weights must be ordered by decreasing magnitude")
        if self.readout not in ("identity", "tanh"):
            raise ValueError(f"readout must be identity or tanh, got {self.readout!r}")

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
        seed: int = 0,
        replicate: int = 0,
    ) -> "Teacher":
        """Draw a teacher.

        The stream is named by degree, dimension and replicate: teachers that differ in the
        readout alone have the same directions and weights, so they can be compared in pairs.

        Args:
            dimension: d.
            n_directions: d1, at most D.
            gamma: |lambda_i| = Z i^-gamma with random signs.
            degree: q, 1 or 2.
            rows: ``orthonormal``, or ``gaussian`` with variance 1/D.
            readout: g, ``identity`` or ``tanh``.
            seed: root of the random streams.
            replicate: which of several independent teachers under one seed.

        Raises:
            ValueError: if an argument is out of range.
        """
        size = feature_dimension(dimension, degree)
        if not 1 <= n_directions <= size:
            raise ValueError(f"n_directions must be in 1..D = {size}, got {n_directions}")
        if rows not in ("orthonormal", "gaussian"):
            raise ValueError(f"rows must be orthonormal or gaussian, got {rows!r}")
        random = generator(seed, "teacher", degree, dimension, replicate)
        weights = power_law_weights(n_directions, gamma) * random.choice((-1.0, 1.0), n_directions)
        directions = random.standard_normal((n_directions, size)) / math.sqrt(size)
        if rows == "orthonormal":
            directions = np.ascontiguousarray(np.linalg.qr(directions.T)[0].T)
        return cls(directions, weights, dimension, degree, readout)

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

    def second_latent(self, first_latents: NDArray[np.floating]) -> NDArray[np.float64]:
        """h2 = (1/sqrt 2) sum_i lambda_i (h1_i^2 - 1), n numbers, of h1 n x d1."""
        h1 = np.asarray(first_latents, dtype=np.float64)
        return np.asarray((h1**2 - 1.0) @ self.weights / math.sqrt(2.0))

    def respond(self, first_latents: NDArray[np.floating]) -> NDArray[np.float64]:
        """Labels y = g(h2), n numbers, of h1 n x d1."""
        h2 = self.second_latent(first_latents)
        return np.tanh(h2) if self.readout == "tanh" else h2

    def labels(self, inputs: NDArray[np.floating]) -> NDArray[np.float64]:
        """Labels y of inputs n x d, in float64."""
        return self.respond(self.first_latents(inputs))


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
