"""Second layer and scalar readout of the layer-wise algorithm (arXiv:2605.14567)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import NDArray


def second_latent(
    second_layer: NDArray[np.float64], first_latents: NDArray[np.float64]
) -> NDArray[np.float64]:
    """hhat2 = <A2, He_2(hhat1)> with He_2(v) = v v^T - I, n numbers.

    A2 is d1 x d1 symmetric, hhat1 = U^T F is n x d1.
    """
    quadratic = np.einsum("ni,ij,nj->n", first_latents, second_layer, first_latents, optimize=True)
    return np.asarray(quadratic - np.trace(second_layer))


@dataclass(frozen=True)
class ScalarReadout:
    """y as a polynomial of hhat2, in Hermite polynomials of its standardised value.

    Attributes:
        mean: of hhat2 on the readout sample.
        scale: standard deviation there; 0 if hhat2 is constant, and then so is the readout.
        bounds: smallest and largest standardised value there. Beyond them the polynomial is not
            extrapolated: its value at the bound is used.
        coefficients: of He_k / sqrt(k!), k = 0 .. degree.
    """

    mean: float
    scale: float
    bounds: tuple[float, float]
    coefficients: NDArray[np.float64]

    @classmethod
    def fit(
        cls,
        latent: NDArray[np.float64],
        labels: NDArray[np.float64],
        *,
        degree: int = 5,
        ridge: float = 1e-3,
    ) -> "ScalarReadout":
        """Minimise mean (y - sum_k c_k He_k(v) / sqrt(k!))^2 + ridge sum_{k>0} c_k^2.

        ``latent`` and ``labels`` are hhat2 and y on the readout sample; the constant is not
        penalised.

        Raises:
            ValueError: if the degree or the ridge is out of range or the lengths differ.
        """
        if degree < 1 or ridge < 0:
            raise ValueError(f"need degree >= 1 and ridge >= 0, got {degree} and {ridge}")
        if latent.shape != labels.shape or latent.ndim != 1:
            raise ValueError(f"need two lists of one length, got {latent.shape}, {labels.shape}")
        mean, scale = float(latent.mean()), float(latent.std())
        if scale <= 1e-12 * (abs(mean) + float(np.abs(latent).max())):
            return cls(mean, 0.0, (0.0, 0.0), np.array([labels.mean()], dtype=np.float64))
        standard = (latent - mean) / scale
        design = _design(standard, degree)
        penalty = ridge * len(latent) * np.diag(np.arange(degree + 1) > 0).astype(np.float64)
        coefficients = np.asarray(
            np.linalg.solve(design.T @ design + penalty, design.T @ labels), dtype=np.float64
        )
        return cls(mean, scale, (float(standard.min()), float(standard.max())), coefficients)

    def predict(self, latent: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predicted labels of hhat2, n numbers."""
        if self.scale == 0.0:
            return np.full(len(latent), self.coefficients[0])
        standard = np.clip((latent - self.mean) / self.scale, *self.bounds)
        return np.asarray(_design(standard, len(self.coefficients) - 1) @ self.coefficients)


def normalised_mse(predicted: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    """Mean (y - yhat)^2 / Var(y).

    Raises:
        ValueError: if the labels are all equal.
    """
    variance = float(labels.var())
    if variance == 0.0:
        raise ValueError("labels are all equal: their variance cannot normalise an error")
    return float(np.mean((labels - predicted) ** 2) / variance)


def _design(standard: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    norms = [math.sqrt(math.factorial(k)) for k in range(degree + 1)]
    return np.asarray(hermevander(standard, degree) / norms)
