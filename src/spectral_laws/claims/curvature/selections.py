"""Which layers of the curvature tables a claim rests on.

The experiments table says which networks there are: those of the experiment ``architectures`` are
the ones that claims without an ablation speak of.
"""

import pandas as pd

from spectral_laws.claims.resampling import TRAINING
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError

_NAMED = 8

LAYER = ["model", "seed", "layer_index"]
"""One layer of one training."""

MAIN = "architectures"
"""The experiment whose networks stand for their architectures, without ablation."""

CONV = ("conv", "pointwise_conv")
"""Roles of the convolutions that mix channels; depth-wise ones have one row per channel."""

ATTENTION = ("attention_qkv", "attention_output")
BLOCK = (*ATTENTION, "mlp_up", "mlp_down")
"""Roles of the layers inside a transformer's blocks."""


def models_of(
    tables: ClaimTables, experiment: str = MAIN, variant: str | float | None = None
) -> list[str]:
    """Names of the networks of an experiment, all or those of one variant.

    Args:
        tables: with the experiments table.
        experiment: its name.
        variant: value of the attribute that the experiment varies; text, or a number.

    Raises:
        NoFitError: if there is none.
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
    """Rows of a table of trained networks, measured on the whole batch.

    Raises:
        NoFitError: if the table is absent or empty.
    """
    table = tables.require(name)
    rows = table[table["model"].isin(models)]
    if "final" in rows.columns:
        rows = rows[rows["final"].astype(bool)]
    if "part" in rows.columns:
        rows = rows[rows["part"] == "whole"]
    return rows.reset_index(drop=True)


def variant_layers(tables: ClaimTables, experiment: str, variant: str | float) -> pd.DataFrame:
    """Rows of the experiments table for the one trained network of a variant.

    Raises:
        NoFitError: if there is no such network, or more than one.
    """
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


def having(rows: pd.DataFrame, column: str, what: str) -> tuple[pd.DataFrame, str]:
    """Layers that have a value of ``column``, and a sentence that counts them.

    Raises:
        NoFitError: if no layer has one.
    """
    kept = rows[rows[column].notna()].reset_index(drop=True)
    if kept.empty:
        raise NoFitError(f"none of {len(rows)} {what} has a fit")
    return kept, (
        f"{len(kept)} {what} of {count_groups(kept, TRAINING)} trainings "
        f"({models_text(kept)}), {len(rows) - len(kept)} without a fit"
    )


def models_text(rows: pd.DataFrame) -> str:
    """Names of the networks, or their number if there are many."""
    models = sorted(rows["model"].unique())
    return ", ".join(models) if len(models) <= _NAMED else f"{len(models)} networks"


def medians_text(rows: pd.DataFrame, column: str) -> str:
    """'; medians: mlp 1.2, vgg11 2' by network, of one network by role; empty for one group."""
    by = next((name for name in ("model", "role") if len(rows[name].unique()) > 1), None)
    if by is None:
        return ""
    medians = rows.groupby(by)[column].median()
    return "; medians: " + ", ".join(f"{name} {value:.3g}" for name, value in medians.items())
