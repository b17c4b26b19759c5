"""The result files that the paper's author published, checked as they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from spectral_laws.errors import DataError

Number = Annotated[float, Field(allow_inf_nan=False)]
Numbers = Annotated[list[Number], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Parsed = TypeVar("Parsed")

TRIANGLE = "results_alpha_triangle.json"
GAP = "results_conv_gap_v2.json"
HYPOTHESIS = "results_hypothesis.json"
DIMENSION = "results_intrinsic_dim.json"
RANK_MODELS = "results_model_fit_comparison.json"
FILES = (TRIANGLE, GAP, HYPOTHESIS, DIMENSION, RANK_MODELS)


class Entry(BaseModel):
    """One layer of a file; keys that are not used here are left aside."""

    model_config = ConfigDict(frozen=True)
    name: str

    def array(self, key: str) -> NDArray[np.float64]:
        """A list of numbers of the entry."""
        return np.asarray(getattr(self, key), dtype=np.float64)


class _Spectrum(Entry):
    sigma: Numbers
    h_exact: Numbers

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        _same_lengths(self, "sigma", "h_exact")
        return self


class TriangleLayer(_Spectrum):
    """Singular values, curvatures and the exponents fitted to them."""

    gamma: Number
    alpha: Number
    s_hessian: Number
    s_weight: Number
    triangle_relative_error: Number


class GapLayer(_Spectrum):
    """Exact and Kronecker curvatures; ``L_spatial`` positions, absent in a linear layer."""

    alpha_exact: Number
    h_kron: Numbers
    h_sum_of_products: Numbers
    cos2_theta: Numbers
    L_spatial: Count = 1

    @model_validator(mode="after")
    def _as_many_kronecker_values(self) -> Self:
        _same_lengths(self, "sigma", "h_kron", "h_sum_of_products", "cos2_theta")
        return self


class HypothesisLayer(_Spectrum):
    """Singular values and curvatures under one variant of an ablation."""

    alpha: Number


class DimensionLayer(Entry):
    """Participation ratio of ``top_k`` curvatures, of which five are kept."""

    top_k: Count
    alpha: Number
    alpha_gamma_product: Number
    eff_rank_curvature_pr: Number
    h_top: Numbers
    width: Count | None = None


class RankModelLayer(Entry):
    """The rank model with the smallest BIC."""

    experiment: str
    best_model_bic: str


class Triangle(BaseModel):
    """Layers of one network."""

    experiment: str
    results: list[TriangleLayer]


class Gap(BaseModel):
    """Convolutions and the output layer of one network."""

    conv_results: Annotated[list[GapLayer], Field(min_length=1)]
    fc_result: GapLayer


class Hypothesis(BaseModel):
    """Layers by variant, of two ablations."""

    output_dim: Mapping[str, list[HypothesisLayer]]
    task_structure: Mapping[str, list[HypothesisLayer]]


class Dimension(BaseModel):
    """Layers of one network, or of one layer at several widths."""

    experiment: str
    results: list[DimensionLayer]


class RankModels(BaseModel):
    """Winners of the comparison by BIC."""

    layers: Annotated[list[RankModelLayer], Field(min_length=1)]


@dataclass(frozen=True)
class ReferenceFiles:
    """Contents of the files; None where a file is not in the folder."""

    triangle: Sequence[Triangle] | None
    gap: Gap | None
    hypothesis: Hypothesis | None
    dimension: Sequence[Dimension] | None
    rank_models: RankModels | None

    @property
    def contents(self) -> Mapping[str, object]:
        """What each file holds, by its name."""
        values = (self.triangle, self.gap, self.hypothesis, self.dimension, self.rank_models)
        return dict(zip(FILES, values, strict=True))


def read_reference(folder: Path) -> ReferenceFiles:
    """Read the author's five result files.

    Malformed ones raise DataError, naming file and key.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    triangle = _read(folder / TRIANGLE, list[Triangle])
    if triangle == []:
        raise DataError(f"{folder / TRIANGLE}: holds no experiment")
    return ReferenceFiles(
        triangle=triangle,
        gap=_read(folder / GAP, Gap),
        hypothesis=_read(folder / HYPOTHESIS, Hypothesis),
        dimension=_read(folder / DIMENSION, list[Dimension]),
        rank_models=_read(folder / RANK_MODELS, RankModels),
    )


def _read(path: Path, kind: type[Parsed]) -> Parsed | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    raise DataError(f"{path}: {_place(first)}{first['msg']}")


def _place(mistake: Any) -> str:  # noqa: ANN401  (pydantic's own dictionary)
    """The key of a mistake: '1.results.3.sigma: '."""
    return ".".join(str(part) for part in mistake["loc"]) + ": " if mistake["loc"] else ""


def _same_lengths(entry: Entry, *keys: str) -> None:
    lengths = {key: len(getattr(entry, key)) for key in keys}
    if len(set(lengths.values())) > 1:
        listing = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise ValueError(f"arrays of {entry.name} differ in length: {listing}")
