"""Measurements of the claims on training: B17 (alpha), B20 (rank models)."""

from typing import Literal

import pandas as pd

from spectral_laws.claims.curvature.pairs import measure_change
from spectral_laws.claims.curvature.selections import with_roles
from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError


def measure_trajectory(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    quantity: Literal["alpha", "lognormal"],
    roles: tuple[str, ...] | None = None,
) -> Measurement:
    """B17, B20: a quantity after training minus at initialisation, paired by training.

    Median over layers of alpha, or share of layers whose smallest BIC is log-normal. Only layers
    fitted at both ends of the training count; any network that was measured at epoch 0.

    Raises:
        NoFitError: if no network was measured at epoch 0, no layer was fitted at both ends, or a
            network was trained too few times.
    """
    table = tables.require("exponents")
    start = table[(table["epoch"] == 0) & ~table["final"].astype(bool)]
    if start.empty:
        raise NoFitError("no network was measured at initialisation")
    models = sorted(start["model"].unique())
    end = table[table["final"].astype(bool) & table["model"].isin(models)]
    after, before = (_with_value(with_roles(rows, roles), quantity) for rows in (end, start))
    return measure_change(
        after,
        before,
        resampling=resampling,
        unit=TRAINING,
        names=("trained", "at initialisation"),
        summary="median" if quantity == "alpha" else "mean",
        scope=", ".join(models),
    )


def _with_value(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    if quantity == "alpha":
        return rows.assign(value=rows["alpha"])
    lognormal = rows["rank_model"].eq("lognormal").astype("float64")
    return rows.assign(value=lognormal.where(rows["rank_model"].notna()))
