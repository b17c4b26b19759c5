"""Measurements of the claims on single layers of trained networks: B1 to B4, B11 to B13, B22.

Layers of one training depend on each other, so whole trainings are resampled, within each network.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.selections import (
    final_layers,
    having,
    models_of,
    with_roles,
)
from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.settings.roles import LAYER, MAIN

Curvature = Literal["finite_difference", "directional_curvature"]
TransferControl = Literal["error_halves", "error_repeat", "error_permuted", "error_free"]


def measure_alpha(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    roles: tuple[str, ...],
    units: str,
    experiment: str = MAIN,
    variant: str | float | None = None,
) -> Measurement:
    """B1, B2, B3: median alpha of the layers of some roles, and of each network's."""
    models = models_of(tables, experiment, variant)
    layers = with_roles(final_layers(tables, "exponents", models), roles)
    rows, scope = having(layers, "alpha", units)
    measured = over_layers(rows, rows["alpha"], resampling, units=units, scope=scope)
    networks = dict(iter(rows.groupby("model")))
    if len(networks) == 1:
        return measured
    beside = {
        str(name): over_layers(part, part["alpha"], resampling, units=units, judged=False)
        for name, part in networks.items()
    }
    return replace(measured, beside=beside)


def measure_difference_fit(
    tables: ClaimTables, resampling: Resampling, *, column: Curvature = "finite_difference"
) -> Measurement:
    """B4: median over layers of R^2 of log h on log sigma, h from finite differences.

    Only positive h can be fitted, so R^2 is that of what is left; the share of others is beside it.
    """
    table = tables.require("finite_differences")
    layers = pd.DataFrame(
        [
            {**dict(zip(LAYER, key, strict=True)), "r2": _r2(layer, column)}
            for key, layer in table.groupby(LAYER)
        ]
    )
    rows, scope = having(layers, "r2", "layers")
    scope += ", step " + ", ".join(f"{step:g}" for step in sorted(table["step"].unique()))
    measured = over_layers(rows, rows["r2"], resampling, scope=scope)
    unfitted = over_layers(
        table, table[column] <= 0, resampling, units="directions", judged=False, summary="mean"
    )
    return replace(measured, beside={"share of h at or below zero": unfitted})


def _r2(layer: pd.DataFrame, column: Curvature) -> float:
    """R^2 of the power law, missing where too few entries are positive."""
    try:
        return fit_loglog(layer["singular_value"], layer[column]).r2
    except NoFitError:
        return float(np.nan)


def measure_transfer_error(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B11: median of |s - alpha gamma| / |s| over layers, all three from the same batch.

    Beside it the same with s fitted to sorted curvatures, as in the author's files.
    """
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, scope = having(layers, "transfer_error", "layers")
    measured = over_layers(rows, rows["transfer_error"], resampling, scope=scope)
    names = {"transfer_error_sorted": "s fitted to sorted curvatures"}
    return replace(measured, beside=medians(rows, resampling, names))


def measure_transfer_control(
    tables: ClaimTables, resampling: Resampling, *, column: TransferControl, judged: bool = True
) -> Measurement:
    """Beside B11: the median error of one control.

    ``error_halves``: alpha of one half of the batch, gamma and s of the other, both ways: least
    squares makes it the difference of the two alphas. ``error_repeat``: s of one half against s of
    the other, the noise to set beside it.
    ``error_permuted``: h permuted among the directions. ``error_free``: what least squares leaves
    for residuals of random direction at the observed R^2, no matter what relates h and sigma.
    """
    layers = final_layers(tables, "independence", models_of(tables))
    rows, scope = having(layers, column, "layers")
    return over_layers(rows, rows[column], resampling, scope=scope, judged=judged)


def measure_lognormal_share(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B12: share of layers whose smallest BIC is log-normal, and that of every other rank model."""
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, scope = having(layers, "rank_model", "layers")
    lognormal = rows["rank_model"].eq("lognormal")
    measured = over_layers(rows, lognormal, resampling, scope=scope, summary="mean")
    others = sorted({*rows["rank_model"]} - {"lognormal"})
    beside = {
        name: over_layers(
            rows, rows["rank_model"].eq(name), resampling, judged=False, summary="mean"
        )
        for name in others
    }
    return replace(measured, beside=beside)


def measure_participation_bound(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B13: share of layers whose participation ratio is at most the bound, where it is finite."""
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, scope = having(layers, "participation_ratio", "layers")
    bounded = rows[rows["participation_bound"].notna()].reset_index(drop=True)
    if bounded.empty:
        raise NoFitError(f"none of {len(rows)} layers has a finite bound (alpha gamma <= 1)")
    if unbounded := len(rows) - len(bounded):
        scope += f", {unbounded} without a finite bound (alpha gamma <= 1)"
    holds = bounded["participation_ratio"] <= bounded["participation_bound"]
    measured = over_layers(bounded, holds, resampling, scope=scope, summary="mean")
    names = {"participation_ratio": "median ratio", "participation_bound": "median bound"}
    return replace(measured, beside=medians(bounded, resampling, names))


def measure_weight_tail(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    column: Literal["decay", "tail_exponent"] = "decay",
) -> Measurement:
    """B22: median over layers of the weight's exponent minus s.

    ``decay`` is minus the slope of log singular value of W on log k, as in the author's files;
    ``tail_exponent`` that of the density of the eigenvalues of W^T W.
    """
    models = models_of(tables)
    tails = final_layers(tables, "weights", models)[[*LAYER, column]]
    decays = final_layers(tables, "exponents", models)[[*LAYER, "s"]]
    layers = tails.merge(decays, on=LAYER, how="left", validate="one_to_one")
    rows, scope = having(layers.assign(gap=layers[column] - layers["s"]), "gap", "layers")
    measured = over_layers(rows, rows["gap"], resampling, scope=scope)
    beside = medians(rows, resampling, {column: "median of the weights", "s": "median s"})
    below = over_layers(rows, rows["gap"] < 0, resampling, judged=False, summary="mean")
    return replace(measured, beside=beside | {"share below s": below})


def over_layers(
    rows: pd.DataFrame,
    values: "pd.Series[Any]",
    resampling: Resampling,
    *,
    units: str = "layers",
    scope: str = "",
    judged: bool = True,
    summary: Literal["median", "mean"] = "median",
) -> Measurement:
    """Median or mean of one value per row, whole trainings resampled within each network."""
    numbers = values.to_numpy(np.float64)
    summarise = np.median if summary == "median" else np.mean
    return (resampling.measure if judged else resampling.beside)(
        rows,
        lambda index: float(summarise(numbers[index])),
        units=units,
        cluster=TRAINING,
        strata=["model"],
        scope=scope,
    )


def medians(
    rows: pd.DataFrame, resampling: Resampling, names: Mapping[str, str]
) -> dict[str, Measurement]:
    """Medians of columns over the rows that have them, by the names given to them; not judged."""
    parts = {column: rows[rows[column].notna()] for column in names}
    return {
        names[column]: over_layers(part, part[column], resampling, judged=False)
        for column, part in parts.items()
        if len(part)
    }
