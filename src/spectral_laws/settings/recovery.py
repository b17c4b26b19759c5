"""Settings of arXiv:2605.14567: studies of teachers, estimator, baselines, theory."""

import math
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from spectral_laws.settings.base import (
    DISTINCT,
    MOST,
    Count,
    Name,
    Noise,
    NonNegative,
    Positive,
    Repeats,
    Settings,
    check_known,
)

Features = Literal["hermite", "equivalent"]
Readout = Literal["identity", "tanh", "relu"]
Rows = Literal["orthonormal", "gaussian"]
Gamma = Annotated[float, Field(ge=0, le=10)]
Dimension = Annotated[int, Field(ge=2, le=MOST)]
Dimensions = Annotated[tuple[Dimension, ...], Field(min_length=1), DISTINCT]
Width = Annotated[int, Field(ge=10, le=MOST)]
MAX_SAMPLE_SIZE = 10**10
"""Larger sample sizes are taken for a mistyped exponent."""


class SampleExponents(Settings):
    """Sample sizes n = d^a for ``count`` values of a, evenly spaced from start to stop."""

    start: Positive
    stop: Annotated[float, Field(gt=0, le=10)]
    count: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.stop < self.start:
            raise ValueError(f"stop {self.stop} is below start {self.start}")
        return self

    def sample_sizes(self, dimension: int) -> list[int]:
        """Distinct sample sizes, rounded, increasing."""
        exponents = np.linspace(self.start, self.stop, self.count)
        return sorted({round(dimension**a) for a in exponents})


class TeacherFamily(Settings):
    """The teachers of a study, whatever their dimension, and the grid of sample sizes.

    ``features`` are true Hermite features, or their Gaussian equivalent N(0, I_D). The number of
    directions is d^width_exponent, rounded down, or ``width`` at every dimension.
    """

    features: Features = "hermite"
    degree: Annotated[int, Field(ge=1, le=6)]
    width_exponent: Annotated[float, Field(gt=0, le=10)] | None = None
    width: Count | None = None
    gamma: Gamma
    rows: Rows = "orthonormal"
    readout: Readout = "identity"
    noise: Noise = 0.0
    sample_exponents: SampleExponents

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if (self.width_exponent is None) == (self.width is None):
            raise ValueError("needs either width_exponent (d1 = d^eps) or width (d1), not both")
        return self

    @model_validator(mode="after")
    def _equivalent_has_orthonormal_rows(self) -> Self:
        if self.features == "equivalent" and self.rows != "orthonormal":
            raise ValueError("rows must be orthonormal where features is equivalent")
        return self

    def n_directions(self, dimension: int) -> int:
        """Number of teacher directions, d1."""
        if self.width_exponent is None:
            assert self.width is not None
            return self.width
        return math.floor(math.pow(dimension, self.width_exponent) + 1e-9)

    def feature_dimension(self, dimension: int) -> int:
        """Number of features, D = C(d + q - 1, q)."""
        return math.comb(dimension + self.degree - 1, self.degree)


class RecoveryStudy(TeacherFamily):
    """A family of teachers, the dimensions at which it is drawn, and how many of each."""

    dimensions: Dimensions
    seeds: Repeats

    @model_validator(mode="after")
    def _widths_fit(self) -> Self:
        for dimension in self.dimensions:
            width, size = self.n_directions(dimension), self.feature_dimension(dimension)
            if width > size:
                raise ValueError(
                    f"{width} directions are asked for at d = {dimension}, but there are only "
                    f"D = {size} features"
                )
            sizes = self.sample_exponents.sample_sizes(dimension)
            if sizes[0] < 2 or sizes[-1] > MAX_SAMPLE_SIZE:
                raise ValueError(
                    f"sample_exponents give n = {sizes[0]} to {sizes[-1]} at d = {dimension}, but "
                    f"n must be 2 to {MAX_SAMPLE_SIZE:g}"
                )
        return self


class Estimator(Settings):
    """How the top eigenvectors of the moment matrix are found."""

    tolerance: Annotated[float, Field(gt=0, lt=1)]
    equivalent_tolerance: Annotated[float, Field(gt=0, lt=1)]
    max_iterations: Count
    memory_mb: Count


class Evaluation(Settings):
    """Test set and scalar readout of the recovery experiments."""

    test_size: Annotated[int, Field(ge=100, le=MOST)]
    readout_size: Annotated[int, Field(ge=100, le=MOST)]
    readout_degree: Annotated[int, Field(ge=1, le=12)]
    ridge: NonNegative


class NetworkBaseline(Settings):
    """Three-layer ReLU network trained by AdamW."""

    width: Count
    epochs: Count
    batch_size: Count
    learning_rate: Positive
    weight_decay: NonNegative


class Baselines(Settings):
    """Methods without spectral recovery, on the same samples, for some of the studies."""

    studies: Annotated[tuple[Name, ...], DISTINCT] = ()
    max_sample_size: Annotated[int, Field(ge=10, le=MOST)]
    ridges: Annotated[tuple[Positive, ...], Field(min_length=1)]
    random_features: Count
    network: NetworkBaseline


class Population(Settings):
    """Teachers of degree 2 whose moment matrix is taken at infinitely many samples."""

    dimensions: Dimensions
    width_exponent: Annotated[float, Field(gt=0, le=1)]
    gamma: Gamma
    seeds: Repeats


class ErrorExponents(Settings):
    """Exponents of the test error from the sharp theory, at finite widths.

    A width d1 uses the sample sizes at which ``first`` to ``last_share`` * d1 directions are past
    their thresholds.
    """

    gammas: Annotated[tuple[Gamma, ...], Field(min_length=1), DISTINCT]
    widths: Annotated[tuple[Width, ...], Field(min_length=1), DISTINCT]
    first: Count
    last_share: Annotated[float, Field(gt=0, le=1)]
    seeds: Repeats

    @model_validator(mode="after")
    def _windows_hold_a_law(self) -> Self:
        for gamma in self.gammas:
            if gamma in (0.0, 0.5):
                raise ValueError(f"gammas holds {gamma}, at which there is no power law")
        for width in self.widths:
            last = round(self.last_share * width)
            if last <= self.first:
                raise ValueError(
                    f"last_share {self.last_share} of width {width} is direction {last}, which is "
                    f"not behind first, {self.first}"
                )
        return self


class SpectrumPoint(Settings):
    """The one moment matrix whose whole spectrum is drawn."""

    study: Name
    dimension: Dimension
    sample_exponent: Annotated[float, Field(gt=0, le=10)]

    @property
    def sample_size(self) -> int:
        """N = d^sample_exponent, rounded."""
        return round(math.pow(self.dimension, self.sample_exponent))


class Recovery(Settings):
    """Everything about arXiv:2605.14567."""

    batch: Count
    studies: Annotated[dict[Name, RecoveryStudy], Field(min_length=1)]
    estimator: Estimator
    evaluation: Evaluation
    baselines: Baselines
    spectrum: SpectrumPoint
    perturbation: Annotated[dict[Name, RecoveryStudy], Field(min_length=1)]
    population: Population
    error_exponents: ErrorExponents

    @model_validator(mode="after")
    def _baselines_have_sample_sizes(self) -> Self:
        limit = self.baselines.max_sample_size
        if not self.baselines.studies:
            raise ValueError("baselines.studies names no study")
        for name in self.baselines.studies:
            check_known("baselines.studies", name, self.studies)
            study = self.studies[name]
            if study.features != "hermite":
                raise ValueError(
                    f"baselines.studies: {name!r} has no inputs, its features are drawn"
                )
            for dimension in study.dimensions:
                smallest = study.sample_exponents.sample_sizes(dimension)[0]
                if smallest > limit:
                    raise ValueError(
                        f"baselines.max_sample_size {limit} is below every sample size of study "
                        f"{name!r} at d = {dimension} (the smallest is {smallest})"
                    )
        return self

    @model_validator(mode="after")
    def _perturbed_matrices_are_known(self) -> Self:
        for name, study in self.perturbation.items():
            if study.features != "hermite" or study.degree > 2 or study.readout != "identity":
                raise ValueError(
                    f"perturbation.{name}: the population matrix is known for hermite features of "
                    "degree 1 or 2 with readout identity"
                )
        return self

    @model_validator(mode="after")
    def _spectrum_is_of_a_study(self) -> Self:
        check_known("spectrum.study", self.spectrum.study, self.studies)
        study = self.studies[self.spectrum.study]
        if study.features != "hermite":
            raise ValueError(f"spectrum.study {self.spectrum.study!r} must have hermite features")
        dimension, size = self.spectrum.dimension, self.spectrum.sample_size
        if study.n_directions(dimension) > study.feature_dimension(dimension):
            raise ValueError(
                f"spectrum.dimension {dimension} has fewer features than study "
                f"{self.spectrum.study!r} has directions"
            )
        if not 2 <= size <= MAX_SAMPLE_SIZE:
            raise ValueError(
                f"spectrum.sample_exponent gives n = {size:g} at d = {dimension}, but n must be 2 "
                f"to {MAX_SAMPLE_SIZE:g}"
            )
        return self
