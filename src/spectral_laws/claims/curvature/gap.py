"""Measurements of the claims on Kronecker curvature: B5, B6, B10, B16, B21."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from spectral_laws.claims.curvature.layers import layer_median
from spectral_laws.claims.curvature.selections import (
    LAYER,
    MAIN,
    final_layers,
    having,
    medians_text,
    models_of,
    models_text,
    with_roles,
)
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.resampling import TRAINING, Index, Resampling, Vector
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement, judge
from spectral_laws.errors import NoFitError

_FLAT = 0.15  # slopes up to this count as none, as in the registry
_GAPS = {"kronecker": "exact/kronecker", "kronecker_true": "exact/kronecker_true"}
"""Ratio of the ladder by the Kronecker curvature in it; true: expectation over the classes."""
_FISHER = "gauss_newton/fisher"
"""The part of a gap to the empirical Kronecker curvature that the true one does not have."""


def measure_identity(tables: ClaimTables, resampling: Resampling, *, column: str) -> Measurement:
    """B5, B6: largest gap of an identity over the layers of every trained network.

    ``kronecker_gap`` is max_k |h_Kron - rho rho Lambda Lambda| / |h_Kron|, ``identity_gap`` is
    alpha - (beta + phi + chi'). An identity has no sampling error, so there is no interval.

    Raises:
        NoFitError: if no layer has it.
    """
    table = tables.require("decomposition")
    rows, text = having(table, column, "layers")
    return Measurement(float(rows[column].abs().max()), None, None, len(rows), text)


def measure_gap_slope(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    kronecker: str = "kronecker",
    roles: tuple[str, ...],
    what: str,
    experiment: str = MAIN,
) -> Measurement:
    """B10: median over layers of the slope of log chi on log sigma, chi = exact / Kronecker.

    The reason says how large chi itself is, and how many layers do depend on sigma: slopes of both
    signs have a small median. With empirical factors it also says how large
    Gauss-Newton over empirical Fisher is, a part of chi that grows as the loss goes to zero, and
    whether factors of the true Fisher, which do without it, get another verdict.

    Raises:
        NoFitError: if no such layer was fitted, or a network was trained too few times.
    """
    ladder = with_roles(final_layers(tables, "ladder", models_of(tables, experiment)), roles)
    measured, rows = _median_slope(ladder, kronecker, what, resampling)
    if kronecker != "kronecker":
        return measured
    away = (rows["slope"].abs() > _FLAT).mean()
    tilted = ((rows["slope_low"] > 0) | (rows["slope_high"] < 0)).mean()
    reason = (
        f"{measured.reason}; layer by layer |slope| is above {_FLAT} in {away:.0%}, and its "
        f"interval leaves 0 out in {tilted:.0%}; {_fisher_text(ladder, rows, slope=True)}"
    )
    return replace(measured, reason=reason + _disagreement(ladder, what, measured, resampling))


def measure_gap_correlation(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    kronecker: str = "kronecker",
    within: bool = False,
) -> Measurement:
    """B16: Spearman correlation over layers of |alpha - 2| and |log10 chi|, chi the layer's median.

    Of the layers of all networks together, or (``within``) of each training's layers, median over
    trainings: then differences between architectures do not count. With empirical factors the
    reason of the former says how large Gauss-Newton over empirical Fisher is, a part of chi.

    Raises:
        NoFitError: if fewer than three layers have both, or a network was trained too few times.
    """
    models = models_of(tables)
    ladder = final_layers(tables, "ladder", models)
    gaps = ladder.loc[ladder["ratio"] == _GAPS[kronecker], [*LAYER, "median"]]
    alphas = final_layers(tables, "exponents", models)[[*LAYER, "alpha"]]
    layers = alphas.merge(gaps, on=LAYER, how="left", validate="one_to_one")
    chi = layers["median"].where(layers["median"] > 0)
    layers = layers.assign(
        gap=np.log10(chi).abs().where(layers["alpha"].notna()), distance=(layers["alpha"] - 2).abs()
    )
    rows, text = having(layers, "gap", "layers")
    distance, gap = (rows[name].to_numpy(np.float64) for name in ("distance", "gap"))
    reason = (
        f"{text}; median |alpha - 2| {np.median(distance):.3g}, median |log10 chi| "
        f"{np.median(gap):.3g}"
    )

    def spearman(index: Index) -> float:
        return pearson(stats.rankdata(distance[index]), stats.rankdata(gap[index]))

    if not within:
        if kronecker == "kronecker":
            reason += f"; {_fisher_text(ladder, rows, slope=False)}"
        return _measure_pooled(rows, spearman, resampling, reason)
    trainings = [
        {"model": group["model"].iloc[0], "seed": group["seed"].iloc[0],
         "r": spearman(group.index.to_numpy())}
        for _, group in rows.groupby(TRAINING)
    ]  # fmt: skip
    by_training, text = having(pd.DataFrame(trainings), "r", "correlations")
    return layer_median(by_training, "r", resampling, text)


def measure_kronecker_correlation(
    tables: ClaimTables, resampling: Resampling, *, kronecker: str = "kronecker"
) -> Measurement:
    """B21: Pearson correlation of log Kronecker curvature and log sigma^2, all layers pooled.

    Of each layer the directions that its exponents are fitted to. The reason holds the share of
    Kronecker factors whose rank model is the gradient's.

    Raises:
        NoFitError: if fewer than three directions have both, or a network was trained too few
            times.
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
    text = (
        f"{len(rows)} directions of {count_groups(rows, LAYER)} layers of "
        f"{count_groups(rows, TRAINING)} trainings ({models_text(rows)}), "
        f"{len(spectra) - len(rows)} directions without a positive Kronecker curvature"
    )
    measured = _measure_pooled(
        rows, lambda index: pearson(log_kronecker[index], log_square[index]), resampling, text
    )
    return replace(measured, reason=f"{text}; {_factors_text(tables, models, resampling)}")


def measure_layer_correlation(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B21: median over layers of each layer's own correlation.

    Raises:
        NoFitError: if no layer has one, or a network was trained too few times.
    """
    layers = final_layers(tables, "decomposition", models_of(tables))
    rows, text = having(layers, "r_kronecker", "layers")
    return layer_median(rows, "r_kronecker", resampling, text + medians_text(rows, "r_kronecker"))


def _median_slope(
    ladder: pd.DataFrame, kronecker: str, what: str, resampling: Resampling
) -> tuple[Measurement, pd.DataFrame]:
    """B10 of one kind of factors, and the layers it is of."""
    rows, text = having(ladder[ladder["ratio"] == _GAPS[kronecker]], "slope", what)
    chi = rows["median"]
    reason = (
        f"{text}{medians_text(rows, 'slope')}; chi itself is {chi.median():.3g} in the median "
        f"layer, {chi.min():.3g} to {chi.max():.3g}"
    )
    return layer_median(rows, "slope", resampling, reason), rows


def _fisher_text(ladder: pd.DataFrame, layers: pd.DataFrame, *, slope: bool) -> str:
    """How large Gauss-Newton over empirical Fisher is in the same layers."""
    rungs = ladder.loc[ladder["ratio"] == _FISHER, [*LAYER, "median", "slope"]]
    rows = rungs.merge(layers[LAYER], on=LAYER, validate="one_to_one").dropna()
    name = "Gauss-Newton over empirical Fisher, a part of chi,"
    if rows.empty:
        return f"{name} is not known in these layers"
    fewer = f" of the {len(rows)} that have it" if len(rows) < len(layers) else ""
    text = f"{name} is {rows['median'].median():.3g} in the median layer{fewer}"
    return f"{text}, its median slope {rows['slope'].median():.3g}" if slope else text


def _disagreement(
    ladder: pd.DataFrame, what: str, measured: Measurement, resampling: Resampling
) -> str:
    """The verdicts on B10 with empirical and with true factors, if they differ."""
    try:
        true, _ = _median_slope(ladder, "kronecker_true", what, resampling)
    except NoFitError:  # there is none to disagree with; beside the claim stands why
        return ""
    claim = next(claim for claim in load_claims() if claim.id == "B10")
    verdicts = judge(claim, measured), judge(claim, true)
    if verdicts[0] == verdicts[1]:
        return ""
    return (
        f"; the factors disagree: {verdicts[0]} with those of the empirical Fisher, {verdicts[1]} "
        "with those of the true one"
    )


def pearson(x: Vector, y: Vector) -> float:
    """Pearson correlation; NaN where either is constant or there are fewer than three entries."""
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    dx, dy = x - x.mean(), y - y.mean()
    return float(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)))


def _factors_text(tables: ClaimTables, models: list[str], resampling: Resampling) -> str:
    """Share of the factors whose rank model is that of the gradient's singular values."""
    try:
        rows = final_layers(tables, "factor_models", models)
    except NoFitError as error:
        return f"{error}, so no rank model of a factor is compared with the gradient's"
    rows = rows[rows["same"].notna()].reset_index(drop=True)
    if rows.empty:
        return "no factor has a rank model to compare with the gradient's"
    same = rows["same"].to_numpy(np.float64)
    by_factor = rows.assign(same=same).groupby("factor")["same"].mean()
    listing = ", ".join(f"{name} {share:.0%}" for name, share in by_factor.items())

    def share(index: Index) -> float:
        return float(same[index].mean())

    text = resampling.text(rows, share, cluster=TRAINING, strata=["model"])
    return (
        f"a factor and the gradient share their rank model in a share of {text} of {len(rows)} "
        f"factors ({listing})"
    )


def _measure_pooled(
    rows: pd.DataFrame, statistic: Callable[[Index], float], resampling: Resampling, reason: str
) -> Measurement:
    """A statistic of all rows together, whole trainings resampled within each network."""
    return resampling.measure(
        rows, statistic, cluster=TRAINING, strata=["model"], n=len(rows), reason=reason
    )
