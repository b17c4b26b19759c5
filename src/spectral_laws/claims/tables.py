"""The measured tables the claims rest on; any of them may be absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from spectral_laws.artifacts import read_table
from spectral_laws.claims.registry import load_claims
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.tables.schemas import check_table

NAMES = {name.split("/")[1]: name for claim in load_claims() for name in claim.tables}
"""Schemas of the tables that claims rest on, by the name of their file."""


@dataclass(frozen=True)
class ClaimTables:
    """Tables of all jobs, as docs/tables.md describes them; None where a step was not run."""

    metrics: pd.DataFrame | None = None
    directions: pd.DataFrame | None = None
    thresholds: pd.DataFrame | None = None
    baselines: pd.DataFrame | None = None
    perturbation: pd.DataFrame | None = None
    error_exponents: pd.DataFrame | None = None
    spectra: pd.DataFrame | None = None
    exponents: pd.DataFrame | None = None
    ladder: pd.DataFrame | None = None
    decomposition: pd.DataFrame | None = None
    independence: pd.DataFrame | None = None
    weights: pd.DataFrame | None = None
    factor_models: pd.DataFrame | None = None
    finite_differences: pd.DataFrame | None = None
    experiments: pd.DataFrame | None = None
    race: pd.DataFrame | None = None
    tuning: pd.DataFrame | None = None
    layer_rates: pd.DataFrame | None = None

    def require(self, name: str) -> pd.DataFrame:
        """The table called ``name``; NoFitError if it is absent or empty."""
        table = getattr(self, name)
        if table is None or table.empty:
            raise NoFitError(f"the {name} table is absent")
        return pd.DataFrame(table)


def read_claim_tables(paths: Sequence[Path]) -> ClaimTables:
    """Read Parquet files, each named after its table, as in ``metrics.parquet``.

    Raises:
        DataError: if a name is none of :data:`NAMES` or comes twice, a file is missing or
            damaged, or a table lacks a column.
    """
    tables: dict[str, pd.DataFrame] = {}
    for path in paths:
        name = path.stem
        if name not in NAMES:
            raise DataError(
                f"{path}: no claim rests on a table {name!r}; there are {', '.join(NAMES)}"
            )
        if name in tables:
            raise DataError(f"{path}: there is another {name} table")
        tables[name] = check_table(read_table(path), NAMES[name])
    return ClaimTables(**tables)
