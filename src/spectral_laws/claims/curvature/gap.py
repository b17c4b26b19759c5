"""Measurements of the claims on Kronecker curvature: B5, B6, B10, B16, B21."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from spectral_laws.claims.curvature.layers import medians, over_layers
from spectral_laws.claims.curvature.selections import (
    final_layers,
    having,
    models_of,
    scope_of,
    with_roles,
)
from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, Vector
from spectral_laws.settings.roles import GAPS, LAYER, MAIN

_FISHER = "gauss_newton/fisher"
"""A part of the gap to the empirical Kronecker curvature, which grows as the loss goes to zero."""


def measure_identity(tables: ClaimTables, resampling: Resampling, *, column: str) -> Measurement:
    """B5, B6: largest gap of an identity over the layers of every trained network.

    ``kronecker_gap`` is max_k |h_Kron - rho rho Lambda Lambda| / |h_Kron|, ``identity_gap`` is
    alpha - (beta + phi + chi'). An identity has no sampling error, so there is no interval.
    """
    rows, scope = having(tables.require("decomposition"), column, "layers")
    worst = float(rows[column].abs().max())
    clusters = TRAINING.count(rows), TRAINING.name
    return Measurement(worst, None, None, len(rows), "layers", *clusters, scope)


def measure_gap_slope(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    kronecker: str = "kronecker",
    roles: tuple[str, ...],
    units: str,
    experiment: str = MAIN,
) -> Measurement:
    """B10: median over layers of the slope of log chi on log sigma, chi = exact / Kronecker.

    Beside it chi itself, how far slopes are from 0 (those of both signs have a small median), and
    Gauss-Newton over empirical Fisher.
    """
    ladder = with_roles(final_layers(tables, "ladder", models_of(tables, experiment)), roles)
    rows, scope = having(ladder[ladder["ratio"] == GAPS[kronecker]], "slope", units)
    measured = over_layers(rows, rows["slope"], resampling, units=units, scope=scope)
    tilted = (rows["slope_low"] > 0) | (rows["slope_high"] < 0)
    names = {"median": "median chi", "size": "median |slope|"}
    beside = medians(rows.assign(size=rows["slope"].abs()), resampling, names)
    beside["share of slopes whose interval leaves 0 out"] = over_layers(
        rows, tilted, resampling, judged=False, summary="mean"
    )
    if kronecker == "kronecker":
        name = "Gauss-Newton over empirical Fisher, median"
        names = {"median": name, "slope": f"{name} slope"}
        beside |= medians(_fisher(ladder, rows), resampling, names)
    return replace(measured, beside=beside)


def measure_gap_correlation(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    kronecker: str = "kronecker",
    within: bool = False,
) -> Measurement:
    """B16: Spearman correlation over layers of |alpha - 2| and |log10 chi|, chi the layer's median.

    Of the layers of all networks together, or (``within``) of each training's layers, median over
    trainings: then differences between architectures do not count.
    """
    models = models_of(tables)
    ladder = final_layers(tables, "ladder", models)
    gaps = ladder.loc[ladder["ratio"] == GAPS[kronecker], [*LAYER, "median"]]
    alphas = final_layers(tables, "exponents", models)[[*LAYER, "alpha"]]
    layers = alphas.merge(gaps, on=LAYER, how="left", validate="one_to_one")
    chi = layers["median"].where(layers["median"] > 0)
    layers = layers.assign(
        gap=np.log10(chi).abs().where(layers["alpha"].notna()), distance=(layers["alpha"] - 2).abs()
    )
    rows, scope = having(layers, "gap", "layers")
    distance, gap = (rows[name].to_numpy(np.float64) for name in ("distance", "gap"))

    def spearman(index: Index) -> float:
        return pearson(stats.rankdata(distance[index]), stats.rankdata(gap[index]))

    if within:
        trainings = [
            dict(zip(TRAINING.columns, key, strict=True)) | {"r": spearman(group.index.to_numpy())}
            for key, group in rows.groupby(list(TRAINING.columns))
        ]
        by_training, scope = having(pd.DataFrame(trainings), "r", "correlations")
        return over_layers(
            by_training, by_training["r"], resampling, units="correlations", scope=scope
        )
    measured = resampling.measure(
        rows, spearman, units="layers", cluster=TRAINING, strata=["model"], scope=scope
    )
    names = {"distance": "median |alpha - 2|", "gap": "median |log10 chi|"}
    beside = medians(rows, resampling, names)
    if kronecker == "kronecker":
        names = {"median": "Gauss-Newton over empirical Fisher, median"}
        beside |= medians(_fisher(ladder, rows), resampling, names)
    return replace(measured, beside=beside)


def measure_kronecker_correlation(
    tables: ClaimTables, resampling: Resampling, *, kronecker: str = "kronecker"
) -> Measurement:
    """B21: Pearson correlation of log Kronecker curvature and log sigma^2, all layers pooled.

    Of each layer the directions that its exponents are fitted to.
    """
    models = models_of(tables)
    fits = final_layers(tables, "exponents", models)[[*LAYER, "n_directions"]]
    columns = [*LAYER, "index", "singular_value", kronecker]
    spectra = final_layers(tables, "spectra", models)[columns]
    spectra = spectra.merge(fits, on=LAYER, validate="many_to_one")
    spectra = spectra[spectra["index"] <= spectra["n_directions"]]
    positive = (spectra[kronecker] > 0) & (spectra["singular_value"] > 0)
    rows = spectra[positive].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(f"none of {count_groups(spectra, LAYER)} layers has a Kronecker curvature")
    log_kronecker = np.log(rows[kronecker].to_numpy(np.float64))
    log_square = 2 * np.log(rows["singular_value"].to_numpy(np.float64))
    return resampling.measure(
        rows,
        lambda index: pearson(log_kronecker[index], log_square[index]),
        units="directions",
        cluster=TRAINING,
        strata=["model"],
        scope=scope_of(rows, len(spectra) - len(rows), "without a positive Kronecker curvature"),
    )


def measure_layer_correlation(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B21: median over layers of each layer's own correlation."""
    layers = final_layers(tables, "decomposition", models_of(tables))
    rows, scope = having(layers, "r_kronecker", "layers")
    return over_layers(rows, rows["r_kronecker"], resampling, scope=scope)


def measure_factor_models(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B21: share of Kronecker factors whose rank model is that of the gradient."""
    factors = final_layers(tables, "factor_models", models_of(tables))
    rows, scope = having(factors, "same", "factors")
    parts = {"": rows, **dict(iter(rows.groupby("factor")))}
    shares = {
        str(name): over_layers(
            part, part["same"], resampling, units="factors", scope="" if name else scope,
            judged=False, summary="mean",
        )
        for name, part in parts.items()
    }  # fmt: skip
    return replace(shares.pop(""), beside=shares)


def pearson(x: Vector, y: Vector) -> float:
    """Pearson correlation; NaN where either is constant or there are fewer than three entries."""
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    dx, dy = x - x.mean(), y - y.mean()
    return float(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)))


def _fisher(ladder: pd.DataFrame, layers: pd.DataFrame) -> pd.DataFrame:
    """The rung Gauss-Newton over empirical Fisher of the same layers, where it is known."""
    rungs = ladder.loc[ladder["ratio"] == _FISHER, [*LAYER, "median", "slope"]]
    return rungs.merge(layers[LAYER], on=LAYER, validate="one_to_one").dropna()
