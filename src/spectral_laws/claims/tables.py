"""The measured tables the claims rest on; any of them may be absent."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from spectral_laws.artifacts import read_table
from spectral_laws.errors import DataError, NoFitError

_STUDY = (
    "study",
    "features",
    "degree",
    "dimension",
    "feature_dimension",
    "n_directions",
    "gamma",
    "readout",
    "noise",
    "seed",
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "metrics": (*_STUDY, "sample_size", "second_layer", "mse"),
    "directions": (*_STUDY, "sample_size", "direction", "cos2", "predicted_cos2"),
    "thresholds": (
        *_STUDY,
        "direction",
        "weight",
        "half_recovery",
        "censored",
        "predicted_half_recovery",
    ),
    "baselines": (*_STUDY, "sample_size", "method", "mse"),
    "perturbation": (
        *_STUDY,
        "sample_size",
        "direction",
        "operator_norm",
        "sin_theta",
        "expansion_error",
        "davis_kahan",
        "resolved",
    ),
    "error_exponents": (
        "gamma",
        "n_directions",
        "seed",
        "first",
        "last",
        "second_layer",
        "exponent",
    ),
    "exponents": (
        "model",
        "seed",
        "layer",
        "kind",
        "status",
        "alpha",
        "transfer_error",
        "transfer_error_sorted",
        "participation_ratio",
        "participation_bound",
        "rank_model",
    ),
}
"""Columns each table must have; it may have more."""


@dataclass(frozen=True)
class ClaimTables:
    """Tables of all jobs; None where a step was not run.

    Attributes:
        metrics: test errors of recovery, one row per teacher, sample size and second layer.
        directions: overlaps, one row per teacher, sample size and direction.
        thresholds: half-recovery sample sizes, one row per teacher and direction.
        baselines: kernels and other methods, one row per teacher, sample size and method.
        perturbation: expansion and bound, one row per teacher, sample size and direction.
        error_exponents: of the sharp theory, one row per gamma, width, draw and second layer.
        exponents: curvature exponents, one row per trained model and layer.

    Raises:
        DataError: if a table lacks a column of :data:`COLUMNS`.
    """

    metrics: pd.DataFrame | None = None
    directions: pd.DataFrame | None = None
    thresholds: pd.DataFrame | None = None
    baselines: pd.DataFrame | None = None
    perturbation: pd.DataFrame | None = None
    error_exponents: pd.DataFrame | None = None
    exponents: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        for name, columns in COLUMNS.items():
            table = getattr(self, name)
            missing = [c for c in columns if table is not None and c not in table.columns]
            if missing:
                raise DataError(f"{name} table: no column {', '.join(missing)}")

    def require(self, name: str) -> pd.DataFrame:
        """The table called ``name``.

        Raises:
            NoFitError: if it is absent or empty.
        """
        table = getattr(self, name)
        if table is None or table.empty:
            raise NoFitError(f"the {name} table is absent")
        return pd.DataFrame(table)


def read_claim_tables(
    *,
    metrics: Path | None = None,
    directions: Path | None = None,
    thresholds: Path | None = None,
    baselines: Path | None = None,
    perturbation: Path | None = None,
    error_exponents: Path | None = None,
    exponents: Path | None = None,
) -> ClaimTables:
    """Read the Parquet file of each table that is given.

    Raises:
        DataError: if a file is missing or damaged, or a table lacks a column.
    """
    paths = {
        "metrics": metrics,
        "directions": directions,
        "thresholds": thresholds,
        "baselines": baselines,
        "perturbation": perturbation,
        "error_exponents": error_exponents,
        "exponents": exponents,
    }
    return ClaimTables(**{name: read_table(path) for name, path in paths.items() if path})
