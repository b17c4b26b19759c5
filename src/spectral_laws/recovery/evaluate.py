"""What is measured of one estimate of a teacher, for either kind of features."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.overlaps import feature_overlap, n_recovered
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent
from spectral_laws.recovery.scaling_laws import tail_mse
from spectral_laws.recovery.theory import SECOND_LAYERS, Prediction, predict_mse

Matrix = NDArray[np.float64]


def localised_share(sample_size: int) -> float:
    """Share of one sample from which on an estimate is spurious: an outlier of a large label.

    A tenth, or 4 log(n)^2 / n where that is more: twice the largest of n terms (h^2 - 1) h^2 over
    their sum, which the only direction of a teacher has. Below about 80 samples nothing can be
    told.
    """
    return max(0.1, 4.0 * math.log(sample_size) ** 2 / sample_size)


@dataclass(frozen=True)
class Estimate:
    """The d1 leading eigenvectors of C at one sample size."""

    sample_size: int  # n
    eigenvalues: Matrix  # theta_k of largest magnitude, in that order
    cos2: Matrix  # cos^2(theta_i) = ||U^T u_i||^2, per teacher direction
    matched_overlap: Matrix  # |<uhat_k, u_k>|, per rank
    localisation: Matrix  # largest share of one sample in sum_mu |y_mu - ybar| (uhat_k . F_mu)^2
    independent: Matrix  # A2 of a second sample of the same size, d1 x d1
    iterations: int  # passes over the samples, or steps of the block Krylov method
    residual: float  # of the eigenvectors that had to converge, relative to the largest |theta|


@dataclass(frozen=True)
class Recovery:
    """An estimate with its measurements, and what the sharp theory predicts for them.

    Attributes:
        estimate: eigenvalues, overlaps, convergence.
        feature_overlap: q_h on the test inputs.
        mse: test MSE / Var(y), per second layer (``same_sample``, ``independent``, ``outliers``).
        outside: per rank, whether the eigenvalue lies outside the edges of the bulk.
        prediction: edges, outliers and overlaps of the Gaussian-equivalent model.
        predicted_cos2: cos^2_i of the sharp theory, d1 numbers, 0 where spurious outliers take
            the direction's place.
        predicted_mse: per second layer.
        tail_mse: the paper's order, sum of lambda_i^2 over directions with D / lambda_i^2 > n.
    """

    estimate: Estimate
    feature_overlap: float
    mse: Mapping[str, float]
    outside: NDArray[np.bool_]
    prediction: Prediction
    predicted_cos2: Matrix
    predicted_mse: Mapping[str, float]
    tail_mse: float

    @property
    def sample_size(self) -> int:
        """N."""
        return self.estimate.sample_size

    @property
    def cos2(self) -> Matrix:
        """cos^2(theta_i) = ||U^T u_i||^2, d1 numbers, one per teacher direction."""
        return self.estimate.cos2

    @property
    def n_recovered(self) -> int:
        """m(n): directions with cos^2 >= 1/2."""
        return n_recovered(self.cos2)

    @property
    def spurious(self) -> NDArray[np.bool_]:
        """Per rank, whether a single large label made the outlier (:func:`localised_share`)."""
        return self.outside & (self.estimate.localisation >= localised_share(self.sample_size))


@dataclass(frozen=True)
class Evaluator:
    """Test and readout samples of one teacher."""

    law: LabelLaw  # of the teacher's labels in the Gaussian-equivalent model
    feature_dimension: int  # D
    test_latents: Matrix  # true h1 on the test inputs, n x d1
    test_labels: Matrix  # noise-free labels there
    readout_labels: Matrix  # labels of the readout sample
    degree: int  # Hermite polynomials of the scalar readout
    ridge: float  # its penalty

    def measure(
        self, estimate: Estimate, prediction: Prediction, *, readout: Matrix, test: Matrix
    ) -> Recovery:
        """All metrics of one estimate, of whose prediction ``prediction`` is for the same n.

        ``readout`` are the learned first latents hhat1 = U^T F on the readout sample, n x d1,
        ``test`` those on the test inputs.
        """
        values, edges = estimate.eigenvalues, prediction.edges
        outside = (values < edges[0]) | (values > edges[1])
        genuine = outside & (estimate.localisation < localised_share(estimate.sample_size))
        layers = {
            "same_sample": np.diag(values),
            "independent": estimate.independent,
            "outliers": np.diag(np.where(genuine, values, 0.0)),
        }
        n, weights = estimate.sample_size, self.law.weights
        visible = prediction.visible(n)
        return Recovery(
            estimate=estimate,
            feature_overlap=feature_overlap(self.test_latents, test),
            mse={name: self._mse(layers[name], readout, test) for name in SECOND_LAYERS},
            outside=outside,
            prediction=prediction,
            predicted_cos2=visible.cos2,
            predicted_mse={
                name: predict_mse(self.law, visible, name, readout_degree=self.degree)
                for name in SECOND_LAYERS
            },
            tail_mse=float(tail_mse(n, self.feature_dimension, weights)),
        )

    def _mse(self, second_layer: Matrix, readout: Matrix, test: Matrix) -> float:
        fitted = ScalarReadout.fit(
            second_latent(second_layer, readout),
            self.readout_labels,
            degree=self.degree,
            ridge=self.ridge,
        )
        return normalised_mse(fitted.predict(second_latent(second_layer, test)), self.test_labels)
