"""Measurements of the claims on half-recovery sample sizes n*: A1, A3, A7, A10."""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from spectral_laws.claims.resampling import (
    TEACHER,
    Index,
    Resampling,
    count_groups,
    identity_readout,
    largest_study,
    slope,
    uncensored,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.crossings import first_crossing

_CENSORED_RANK = {"above": math.inf, "below": -math.inf}


def measure_threshold_exponent(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A1: slopes of log n*_i on log(1/lambda_i^2) and on log D, fitted together.

    The claim has slope 1 on both, so the value is the slope farther from 1; the reason states both.

    Raises:
        NoFitError: without a degree-2 study of two dimensions and two strengths inside the grid.
    """
    study = largest_study(tables.require("thresholds"), degree=2, minimum=2)
    rows, left_out = uncensored(study)
    weakness = -2 * np.log(rows["weight"].abs().to_numpy(np.float64))
    log_d = np.log(rows["feature_dimension"].to_numpy(np.float64))
    design = np.column_stack([np.ones(len(rows)), weakness, log_d])
    log_n = np.log(rows["half_recovery"].to_numpy(np.float64))

    def slopes(index: Index) -> NDArray[np.float64]:
        solution, _, rank, _ = np.linalg.lstsq(design[index], log_n[index], rcond=1e-10)
        return solution[1:] if rank == design.shape[1] else np.full(2, np.nan)

    found = slopes(np.arange(len(rows)))
    if np.isnan(found).any():
        raise NoFitError(
            f"{len(rows)} half-recovery sizes inside the grid do not tell strength and dimension "
            "apart"
        )
    judged = int(np.argmax(np.abs(found - 1)))
    return resampling.measure(
        rows,
        lambda index: float(slopes(index)[judged]),
        cluster=TEACHER,
        n=len(rows),
        reason=(
            f"slope on log(1/lambda^2) {found[0]:.3g}, slope on log D {found[1]:.3g}, the one "
            f"farther from 1 is judged; {len(rows)} directions of {count_groups(rows, TEACHER)} "
            f"teachers, study {rows['study'].iloc[0]}; {_left_out(left_out)}"
        ),
    )


def measure_recovery_order(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A3: mean over teachers of the Spearman correlation of k and n*_k.

    A censored n* ranks above or below all others and ties with its like. Teachers with fewer than
    three directions, equal strengths, or no two distinct n* have no order and are left out.

    Raises:
        NoFitError: if no teacher, or too few, are left.
    """
    table = identity_readout(tables.require("thresholds"))
    table = table[table["gamma"] > 0]
    correlations = []
    undecided = 0
    for key, teacher in table.groupby(["study", *TEACHER]):
        place = teacher["half_recovery"].where(
            teacher["censored"].eq("no"), teacher["censored"].map(_CENSORED_RANK)
        )
        if len(teacher) < 3 or place.nunique() < 2:
            undecided += 1
            continue
        ranks = [rankdata(values) for values in (teacher["direction"], place)]
        correlations.append([*key, float(np.corrcoef(ranks)[0, 1])])
    rows = pd.DataFrame(correlations, columns=["study", *TEACHER, "rho"])
    if rows.empty:
        raise NoFitError("no teacher has three directions and two distinct recovery sizes")
    rho = rows["rho"].to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: float(rho[index].mean()),
        cluster=TEACHER,
        n=len(rows),
        reason=f"{len(rows)} teachers; {undecided} without an order inside the grid left out",
    )


def measure_kernel_gap(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A7: exponent in d of the kernel's n at MSE 1/2 minus that of n*_1.

    The strength of direction 1 falls as the number of directions grows with d; the reason also
    states the exponent of n*_1 lambda_1^2. A dimension counts if every seed has both sizes inside
    the grid.

    Raises:
        NoFitError: if fewer than three dimensions count.
    """
    study = largest_study(tables.require("thresholds"), degree=1, minimum=3)
    strongest, _ = uncensored(study[study["direction"] == 1])
    log_n = np.log(strongest["half_recovery"].to_numpy(np.float64))
    strength = 2 * np.log(strongest["weight"].abs().to_numpy(np.float64))
    spectral = strongest[TEACHER].assign(spectral=log_n, scaled=log_n + strength)
    kernel = _kernel_sizes(tables.require("kernel"), str(study["study"].iloc[0]))
    rows = spectral.merge(kernel, on=TEACHER)
    dimensions = sorted(int(d) for d in rows["dimension"].unique())
    if len(dimensions) < 3:
        alone = slope(
            np.log(spectral["dimension"].to_numpy(np.float64)), spectral["spectral"].to_numpy()
        )
        both = sorted(int(d) for d in spectral["dimension"].unique())
        known = f"; spectral exponent {alone:.3g} over d = {both}" if len(both) > 1 else ""
        raise NoFitError(
            "an exponent needs 3 dimensions; the kernel's MSE falls through 1/2 inside its sample "
            f"sizes, and the spectral method recovers direction 1, at d = {dimensions}{known}"
        )
    log_d = np.log(rows["dimension"].to_numpy(np.float64))
    sizes = {name: rows[name].to_numpy(np.float64) for name in ("kernel", "spectral", "scaled")}
    exponents = {name: slope(log_d, size) for name, size in sizes.items()}
    gap = sizes["kernel"] - sizes["spectral"]
    return resampling.measure(
        rows,
        lambda index: slope(log_d[index], gap[index]),
        cluster=TEACHER,
        strata=["dimension"],
        n=len(rows),
        reason=(
            f"{len(rows)} teachers, d = {dimensions}; kernel exponent {exponents['kernel']:.3g}, "
            f"spectral exponent {exponents['spectral']:.3g} (of n*_1 lambda_1^2 "
            f"{exponents['scaled']:.3g})"
        ),
    )


def _kernel_sizes(kernel: pd.DataFrame, study: str) -> pd.DataFrame:
    """Log n at which 1 - MSE first reaches 1/2, for dimensions where every seed has it."""
    sizes = []
    for key, curve in kernel[kernel["study"] == study].groupby(TEACHER):
        curve = curve.sort_values("sample_size")
        size = first_crossing(curve["sample_size"], 1 - curve["mse"], 0.5)
        sizes.append([*key, math.nan if size is None else math.log(size)])
    rows = pd.DataFrame(sizes, columns=[*TEACHER, "kernel"])
    known = rows["kernel"].notna().groupby(rows["dimension"]).transform("all")
    return rows[known]


def measure_readout_ratio(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A10: geometric mean of n*_k under tanh over n*_k under identity, paired.

    Pairs agree in degree, dimension, widths, gamma, seed, direction and the weight itself, so they
    have one teacher and one set of inputs.

    Raises:
        NoFitError: if there is no pair with both sizes inside the grid for every seed.
    """
    table = tables.require("thresholds")
    families = table.loc[table["readout"] == "tanh", ["degree", "dimension", "gamma"]]
    rows, left_out = uncensored(table.merge(families.drop_duplicates()))
    key = [*TEACHER, "feature_dimension", "n_directions", "gamma", "direction"]
    columns = [*key, "weight", "half_recovery"]
    pairs = identity_readout(rows)[columns].merge(
        rows.loc[rows["readout"] == "tanh", columns], on=key, suffixes=("_identity", "_tanh")
    )
    same = np.isclose(pairs["weight_identity"], pairs["weight_tanh"], rtol=1e-9)
    pairs = pairs[same].reset_index(drop=True)
    if pairs.empty:
        raise NoFitError("no teacher was recovered under both tanh and identity")
    ratio = pairs["half_recovery_tanh"] / pairs["half_recovery_identity"]
    log_ratio = np.log(ratio.to_numpy(np.float64))
    return resampling.measure(
        pairs,
        lambda index: math.exp(float(log_ratio[index].mean())),
        cluster=TEACHER,
        n=len(pairs),
        reason=(
            f"{len(pairs)} pairs of {count_groups(pairs, TEACHER)} teachers; {_left_out(left_out)}"
        ),
    )


def _left_out(count: int) -> str:
    return f"{count} direction(s) with n* outside the grid left out"
