"""Eigenvectors of a perturbed symmetric matrix: first-order expansion and Davis-Kahan bound.

Applied to the moment matrix, C = E C + Delta, where E C is known (:mod:`.population`). Source:
arXiv:2605.14567, resolvent expansion of the estimated directions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.population import population_moment
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher, tabulate
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.settings.recovery import RecoveryStudy

# Eigenvalues closer than this, relative to the largest, have no eigenvectors of their own.
_DEGENERATE = 1e-9


@dataclass(frozen=True)
class Spectrum:
    """Eigenpairs of a symmetric matrix: values (D,), and unit columns (D x D)."""

    values: NDArray[np.float64]
    columns: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> "Spectrum":
        """The spectrum of ``matrix``, by increasing eigenvalue."""
        check_finite("matrix of a spectrum", matrix)
        return cls(*np.linalg.eigh(matrix))

    def gap(self, index: int) -> float:
        """Distance of eigenvalue ``index`` to the rest of the spectrum."""
        return float(np.abs(np.delete(self.values, index) - self.values[index]).min())

    def is_simple(self, index: int) -> bool:
        """Whether eigenvalue ``index`` has an eigenvector of its own."""
        return self.gap(index) > _DEGENERATE * float(np.abs(self.values).max())


@dataclass(frozen=True)
class Perturbation:
    """One eigenvector u_k of a matrix E, and uhat_k of E + Delta.

    Attributes:
        operator_norm: ||Delta||, the largest |eigenvalue|.
        gap: distance of l_k to the rest of the spectrum of E.
        sin_theta: sine of the angle between u_k and uhat_k.
        first_order_sin: sine of the angle between u_k and its first-order expansion.
        expansion_error: norm of the difference of the expansion and of uhat_k, both scaled to
            <., u_k> = 1.
        davis_kahan: ||Delta|| / gap.
        resolved: ||Delta|| < gap / 2. Beyond it l_k + Delta may have crossed its neighbour and the
            expansion does not apply.
    """

    operator_norm: float
    gap: float
    sin_theta: float
    first_order_sin: float
    expansion_error: float
    davis_kahan: float
    resolved: bool


def perturb(
    population: Spectrum, perturbed: NDArray[np.float64], indices: NDArray[np.int64]
) -> list[Perturbation]:
    """How the eigenvectors ``indices`` of E move when E becomes ``perturbed`` = E + Delta.

    The first-order expansion is

        u_k + sum_{j != k} (u_j^T Delta u_k) / (l_k - l_j) u_j

    over all other eigenvectors; where E has low rank, those of eigenvalue 0 make the term
    (1/l_k) P_ker Delta u_k. It has no part along u_k beyond u_k itself, so uhat_k is scaled to
    <uhat_k, u_k> = 1, which removes the second order along u_k (-||.||^2/2 for unit vectors) from
    the comparison. uhat_k is the eigenvector of E + Delta with the largest |<uhat, u_k>|.

    The bound is Davis and Kahan's with the gap of E alone, as the paper uses it, sin theta <=
    ||Delta|| / gap. It holds to first order; for every Delta, the sin 2 theta theorem gives sin
    theta cos theta <= ||Delta|| / gap, and Yu, Wang and Samworth (2015) sin theta <= 2 ||Delta|| /
    gap for the eigenvector of the same rank. ``perturbed`` is E + Delta, ``indices`` are positions
    k in the spectrum ``population`` of E.

    Raises:
        ValueError: if an eigenvalue l_k is not simple: it has no eigenvector of its own.
    """
    values, columns = population.values, population.columns
    # In the eigenbasis of E, so that E is diagonal and Delta is formed without cancellation.
    delta = columns.T @ perturbed @ columns - np.diag(values)
    delta = (delta + delta.T) / 2
    norm = float(np.abs(np.linalg.eigvalsh(delta)).max())
    moved = Spectrum.of(np.diag(values) + delta).columns
    return [_perturb_one(population, delta, norm, moved, int(k)) for k in indices]


def _perturb_one(
    population: Spectrum,
    delta: NDArray[np.float64],
    norm: float,
    moved: NDArray[np.float64],
    k: int,
) -> Perturbation:
    if not population.is_simple(k):
        raise ValueError(f"population eigenvalue {population.values[k]} is not simple")
    gap = population.gap(k)
    others = np.arange(len(delta)) != k
    expansion = delta[others, k] / (population.values[k] - population.values[others])
    exact = moved[:, np.argmax(np.abs(moved[k]))]
    exact = exact[others] / exact[k]  # tan theta, as a vector
    return Perturbation(
        operator_norm=norm,
        gap=gap,
        sin_theta=_sine(float(np.linalg.norm(exact))),
        first_order_sin=_sine(float(np.linalg.norm(expansion))),
        expansion_error=float(np.linalg.norm(exact - expansion)),
        davis_kahan=norm / gap,
        resolved=norm < gap / 2,
    )


def _sine(tangent: float) -> float:
    return tangent / math.hypot(1.0, tangent)


def match_directions(teacher: Teacher, population: Spectrum) -> NDArray[np.int64]:
    """The eigenvector of E C that is each teacher direction's: d1 different positions.

    The assignment with the largest sum of <u_i, A_i/||A_i||>^2. At degree 1 with orthonormal rows
    they are equal; otherwise the part of E C beyond the rows turns them.
    """
    overlaps = (teacher.unit_directions @ population.columns) ** 2
    return np.asarray(linear_sum_assignment(overlaps, maximize=True)[1], dtype=np.int64)


def tabulate_perturbation(
    study_name: str, study: RecoveryStudy, *, seed: int, memory_mb: float = 500.0
) -> pd.DataFrame:
    """Expansion and Davis-Kahan bound on the moment matrices of a study, in float64.

    One row per dimension, seed, sample size and teacher direction, of true features of degree 1 or
    2 and the identity readout; ``eigenvalue`` is l_k of E C. Samples are those of the study's
    ``train`` streams, kept up to ``memory_mb`` and drawn again for each size beyond it. C is
    centred by the sample mean of y, so Delta holds -E C / n, far below the noise.
    """
    if study.features != "hermite":
        raise ConfigError(
            f"perturbation.{study_name}: features must be hermite; at degree 1 they are Gaussian, "
            "so degree 1 is the Gaussian equivalent"
        )
    places = [(d, r) for d in study.dimensions for r in range(study.seeds)]
    tables = []
    for dimension, replicate in track(places, total=len(places), label=study_name):
        teacher = draw_teacher(study, dimension=dimension, replicate=replicate, seed=seed)
        population = Spectrum.of(population_moment(teacher))
        indices = match_directions(teacher, population)
        if not all(population.is_simple(int(k)) for k in indices):
            raise ConfigError(
                f"perturbation.{study_name}: gamma {study.gamma} gives directions of equal "
                "strength, which have no eigenvectors of their own"
            )
        stream = ("train", teacher.degree, teacher.dimension, replicate)
        samples = Samples(teacher, *stream, seed=seed, dtype=torch.float64, memory_mb=memory_mb)
        rows = [
            row
            for n in study.sample_exponents.sample_sizes(dimension)
            for row in _perturbation_rows(population, indices, MomentMatrix(samples, n))
        ]
        tables.append(
            tabulate(
                rows, study_name=study_name, family=study, dimension=dimension, replicate=replicate
            )
        )
    return pd.concat(tables, ignore_index=True)


def _perturbation_rows(
    population: Spectrum, indices: NDArray[np.int64], moment: MomentMatrix
) -> Iterator[dict[str, object]]:
    moved = perturb(population, moment.dense(), indices)
    for i, (k, perturbation) in enumerate(zip(indices, moved, strict=True)):
        yield {
            "sample_size": moment.sample_size,
            "direction": i + 1,
            "weight": float(moment.samples.teacher.weights[i]),
            "eigenvalue": float(population.values[k]),
            **vars(perturbation),
        }
