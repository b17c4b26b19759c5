"""Which rows of the recovery tables a claim rests on."""

from typing import Literal

import pandas as pd

from spectral_laws.errors import NoFitError

Features = Literal["equivalent", "hermite"]
"""The Gaussian equivalent, in which the paper's laws are exact at large d, or true features."""

CURVE = ["study", "degree", "dimension", "seed", "direction"]
"""One direction of one teacher along the sample sizes."""


def count_groups(rows: pd.DataFrame, columns: list[str]) -> int:
    """Number of distinct combinations of ``columns``."""
    return len(rows.drop_duplicates(columns))


def identity_readout(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of studies whose readout is the identity."""
    return table[table["readout"] == "identity"]


def with_features(table: pd.DataFrame, features: Features) -> pd.DataFrame:
    """Rows of the Gaussian equivalent, or of true Hermite features of degree 2 and more.

    At degree 1 true features are Gaussian, so they say nothing about the difference.
    """
    rows = table["features"] == features
    return table[rows & (table["degree"] >= 2)] if features == "hermite" else table[rows]


def uncensored(thresholds: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows of directions whose n* lies inside the grid for every seed, and how many do not.

    A direction of a study and dimension is left out as a whole if one of its seeds is censored:
    keeping the other seeds would select those that were recovered early.
    """
    key = ["study", "dimension", "direction"]
    inside = thresholds["censored"].eq("no")
    whole = inside.groupby([thresholds[name] for name in key]).transform("all")
    left_out = count_groups(thresholds[~whole], key)
    return thresholds[whole].reset_index(drop=True), left_out


def left_out_text(count: int, what: str) -> str:
    """', 2 directions off the grid left out', for a scope; empty where there are none."""
    return f", {count} {what} left out" if count else ""


def widest_study(table: pd.DataFrame, *, minimum: int) -> pd.DataFrame:
    """Rows of the study with the most directions per teacher, of those with enough dimensions.

    Of equals the one with the most dimensions, then the one whose name comes first. NoFitError if
    none has ``minimum`` dimensions; both as in the next two functions.
    """
    return _first(table, _studies(table, minimum), ["directions", "dimensions"])


def fixed_width_study(table: pd.DataFrame, *, minimum: int = 3) -> pd.DataFrame:
    """Rows of the study with the largest dimension, of those with one width at all of theirs."""
    studies = _studies(table, minimum)
    return _first(table, studies[studies["widths"] == 1], ["largest", "dimensions"])


def growing_width_study(table: pd.DataFrame, *, minimum: int = 2) -> pd.DataFrame:
    """Rows of the study with the most dimensions, of those whose width grows with d as d^eps."""
    studies = _studies(table, minimum)
    return _first(table, studies[studies["widths"] > 1], ["dimensions"])


def dimensions_text(rows: pd.DataFrame) -> str:
    """The dimensions of ``rows`` in a few words: 'd = 50' or 'd = 25 to 64'."""
    low, high = int(rows["dimension"].min()), int(rows["dimension"].max())
    return f"d = {low}" if low == high else f"d = {low} to {high}"


def _studies(table: pd.DataFrame, minimum: int) -> pd.DataFrame:
    """One row per study with at least ``minimum`` dimensions, by name."""
    studies = table.groupby("study").agg(
        directions=("n_directions", "mean"),
        widths=("n_directions", "nunique"),
        dimensions=("dimension", "nunique"),
        largest=("dimension", "max"),
    )
    return pd.DataFrame(studies[studies["dimensions"] >= minimum])


def _first(table: pd.DataFrame, studies: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows of the study that comes first by decreasing ``columns``."""
    if studies.empty:
        raise NoFitError("no study has enough dimensions with the widths asked for")
    order = studies.sort_values(columns, ascending=False, kind="stable")
    return table[table["study"].eq(str(order.index[0]))].reset_index(drop=True)
