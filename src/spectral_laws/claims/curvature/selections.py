"""Which layers of the curvature tables a claim rests on.

The experiments table says which networks there are: those of the experiment ``architectures`` are
the ones that claims without an ablation speak of.
"""

import pandas as pd

from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError
from spectral_laws.settings.roles import MAIN

_NAMED = 3


def models_of(
    tables: ClaimTables, experiment: str = MAIN, variant: str | float | None = None
) -> list[str]:
    """Names of the networks of an experiment, all or those of one variant; NoFitError if none.

    A variant is a value of the attribute that the experiment varies: text, or a number.
    """
    table = tables.require("experiments")
    rows = table[table["experiment"] == experiment]
    if rows.empty:
        raise NoFitError(f"no experiment {experiment}")
    if variant is not None:
        column = "variant" if isinstance(variant, str) else "value"
        found = rows[rows[column] == variant]
        if found.empty:
            present = ", ".join(rows["variant"].astype(str).unique())
            over = rows["over"].iloc[0]
            raise NoFitError(
                f"experiment {experiment} has no network with {over} {variant}, only {present}"
            )
        rows = found
    return sorted(rows["model"].unique())


def final_layers(tables: ClaimTables, name: str, models: list[str]) -> pd.DataFrame:
    """Rows of a table (:meth:`.ClaimTables.require`) of trained networks, on the whole batch."""
    table = tables.require(name)
    rows = table[table["model"].isin(models)]
    if "final" in rows.columns:
        rows = rows[rows["final"].astype(bool)]
    if "part" in rows.columns:
        rows = rows[rows["part"] == "whole"]
    return rows.reset_index(drop=True)


def variant_layers(tables: ClaimTables, experiment: str, variant: str | float) -> pd.DataFrame:
    """Rows of the experiments table for a variant's one network; NoFitError if not just one."""
    models = models_of(tables, experiment, variant)
    if len(models) > 1:
        raise NoFitError(
            f"experiment {experiment} has several networks at {variant} ({', '.join(models)}); "
            "a comparison needs one"
        )
    rows = final_layers(tables, "experiments", models)
    rows = rows[rows["experiment"] == experiment].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(f"experiment {experiment} has no trained network at {variant}")
    return rows


def with_roles(rows: pd.DataFrame, roles: tuple[str, ...] | None) -> pd.DataFrame:
    """Rows of the given roles; all of them for None."""
    return rows if roles is None else rows[rows["role"].isin(roles)]


def having(rows: pd.DataFrame, column: str, units: str) -> tuple[pd.DataFrame, str]:
    """Rows that have a value of ``column``, if any, and the scope of a measurement of them."""
    kept = rows[rows[column].notna()].reset_index(drop=True)
    if kept.empty:
        raise NoFitError(f"none of {len(rows)} {units} has a fit")
    return kept, scope_of(kept, len(rows) - len(kept))


def scope_of(rows: pd.DataFrame, left_out: int, why: str = "without a fit") -> str:
    """Names of the networks, or their number, and what was left out, as 'mlp, 3 without a fit'."""
    models = sorted(rows["model"].unique())
    networks = ", ".join(models) if len(models) <= _NAMED else f"{len(models)} networks"
    return f"{networks}, {left_out} {why}" if left_out else networks
