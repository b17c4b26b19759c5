"""The measured tables the claims rest on; any of them may be absent."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from spectral_laws.artifacts import read_table
from spectral_laws.errors import DataError, NoFitError

_STUDY = (
    "study",
    "degree",
    "dimension",
    "feature_dimension",
    "n_directions",
    "gamma",
    "readout",
    "seed",
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "metrics": (*_STUDY, "sample_size", "second_layer", "mse", "n_recovered", "tail_mse"),
    "directions": (*_STUDY, "sample_size", "direction", "cos2"),
    "thresholds": (*_STUDY, "direction", "weight", "half_recovery", "censored"),
    "kernel": (*_STUDY, "sample_size", "mse"),
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
        kernel: kernel baseline, one row per teacher and sample size.
        exponents: curvature exponents, one row per trained model and layer.

    Raises:
        DataError: if a table lacks a column of :data:`COLUMNS`.
    """

    metrics: pd.DataFrame | None = None
    directions: pd.DataFrame | None = None
    thresholds: pd.DataFrame | None = None
    kernel: pd.DataFrame | None = None
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
    kernel: Path | None = None,
    exponents: Path | None = None,
) -> ClaimTables:
    """Read the Parquet file of each table that is given.

    Raises:
        DataError: if a file is missing or damaged, or a table lacks a column.
    """
    return ClaimTables(
        metrics=None if metrics is None else read_table(metrics),
        directions=None if directions is None else read_table(directions),
        thresholds=None if thresholds is None else read_table(thresholds),
        kernel=None if kernel is None else read_table(kernel),
        exponents=None if exponents is None else read_table(exponents),
    )
