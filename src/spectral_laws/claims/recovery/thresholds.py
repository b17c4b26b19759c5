"""Measurements of the claims on half-recovery sample sizes n*: A1, A3, A10."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from spectral_laws.claims.resampling import TEACHER, Resampling, number
from spectral_laws.claims.selections import (
    Features,
    dimensions_text,
    growing_width_study,
    identity_readout,
    left_out_text,
    uncensored,
    widest_study,
    with_features,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, joint_slopes, log_of

_CENSORED_RANK = {"above": math.inf, "below": -math.inf}
_NAMES = ("slope on log(1/lambda^2)", "slope on log D")


def measure_threshold_exponent(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A1: slopes of log n*_i on log(1/lambda_i^2) and on log D, fitted together.

    The claim has slope 1 on both, so the value is the slope farther from 1. Beside it stand the
    other, those of the sharp theory, and those of a study whose width grows with d as in the
    paper. The law is one of weak directions (n* lambda^2 / D tends to 1 as lambda does to 0), so
    the study with the most directions per teacher is judged.
    """
    table = with_features(identity_readout(tables.require("thresholds")), features)
    table = table[table["degree"] == 2]
    study = widest_study(table, minimum=2)
    rows, left_out = uncensored(study)
    slopes = joint_slopes(rows, "half_recovery")
    found = slopes(np.arange(len(rows)))
    if np.isnan(found).any():
        raise NoFitError(
            f"{len(rows)} half-recovery sizes inside the grid do not tell strength and dimension "
            "apart"
        )
    judged = int(np.argmax(np.abs(found - 1)))

    def one(which: int) -> Callable[[Index], float]:
        return lambda index: float(slopes(index)[which])

    beside = {
        name: resampling.beside(rows, one(i), units="directions", cluster=TEACHER)
        for i, name in enumerate(_NAMES)
    }
    del beside[_NAMES[judged]]
    beside |= _theory(rows) | _decades(rows) | _paper_proportions(table, study)
    return resampling.measure(
        rows,
        one(judged),
        units="directions",
        cluster=TEACHER,
        scope=f"{_NAMES[judged]}, {_study_text(rows, left_out)}",
        beside=beside,
    )


def _study_text(rows: pd.DataFrame, left_out: int) -> str:
    return (
        f"study {rows['study'].iloc[0]}, {dimensions_text(rows)}"
        f"{left_out_text(left_out, 'directions off the grid')}"
    )


def _both_slopes(
    rows: pd.DataFrame, column: str, where: str, scope: str = ""
) -> dict[str, Measurement]:
    """Both slopes of ``column``, where it is known; empty if they cannot be told apart."""
    known = rows[rows[column].notna()]
    values = joint_slopes(known, column)(np.arange(len(known)))
    return {
        f"{name}, {where}": number(float(value), known, "directions", TEACHER, scope)
        for name, value in zip(_NAMES, values, strict=True)
        if not np.isnan(value)
    }


def _theory(rows: pd.DataFrame, where: str = "sharp theory") -> dict[str, Measurement]:
    return _both_slopes(rows, "predicted_half_recovery", where)


def _decades(rows: pd.DataFrame) -> dict[str, Measurement]:
    """How many decades n* spans, over all dimensions and at least at every single one."""
    sizes = rows.groupby("dimension")["half_recovery"]
    inside = np.log10(sizes.max() / sizes.min()).min()
    whole = math.log10(rows["half_recovery"].max() / rows["half_recovery"].min())
    names = {"decades of n*": whole, "decades of n* at one dimension": inside}
    return {
        name: number(float(value), rows, "directions", TEACHER) for name, value in names.items()
    }


def _paper_proportions(table: pd.DataFrame, judged: pd.DataFrame) -> dict[str, Measurement]:
    """The same slopes where d1 grows with d as d^eps, unless that is the study judged."""
    try:
        study = growing_width_study(table)
    except NoFitError:
        return {}
    rows, left_out = uncensored(study)
    if rows.empty or rows["study"].iloc[0] == judged["study"].iloc[0]:
        return {}
    where = "d1 growing with d"
    return _both_slopes(rows, "half_recovery", where, _study_text(rows, left_out)) | _theory(
        rows, f"{where}, sharp theory"
    )


def measure_recovery_order(
    tables: ClaimTables, resampling: Resampling, *, features: Features = "equivalent"
) -> Measurement:
    """A3: mean over teachers of the Spearman correlation of k and n*_k.

    A censored n* ranks above or below all others and ties with its like. Teachers with fewer than
    three directions, equal strengths, or no two distinct n* have no order and are left out.
    """
    table = with_features(identity_readout(tables.require("thresholds")), features)
    table = table[table["gamma"] > 0]
    correlations = []
    undecided = 0
    for key, teacher in table.groupby(["study", *TEACHER.columns]):
        place = teacher["half_recovery"].where(
            teacher["censored"].eq("no"), teacher["censored"].map(_CENSORED_RANK)
        )
        if len(teacher) < 3 or place.nunique() < 2:
            undecided += 1
            continue
        ranks = [rankdata(values) for values in (teacher["direction"], place)]
        correlations.append([*key, float(np.corrcoef(ranks)[0, 1])])
    rows = pd.DataFrame(correlations, columns=["study", *TEACHER.columns, "rho"])
    if rows.empty:
        raise NoFitError("no teacher has three directions and two distinct recovery sizes")
    rho = rows["rho"].to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: float(rho[index].mean()),
        units="correlations",
        cluster=TEACHER,
        scope=f"{rows['study'].nunique()} studies, {dimensions_text(rows)}"
        f"{left_out_text(undecided, 'teachers without an order')}",
    )


def measure_readout_ratio(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    features: Features = "equivalent",
    readout: str = "tanh",
) -> Measurement:
    """A10: geometric mean of n*_k under another readout over n*_k under identity, paired.

    Pairs agree in degree, dimension, widths, gamma, noise, seed, direction and the weight itself,
    so they have one teacher and one set of inputs. The other readouts stand beside.
    """
    table = with_features(tables.require("thresholds"), features)
    pairs, left_out = _readout_pairs(table, readout)
    if pairs.empty:
        raise NoFitError(f"no teacher was recovered under both {readout} and identity")
    beside = {}
    for other in sorted(set(table["readout"]) - {"identity", readout}):
        rows, _ = _readout_pairs(table, other)
        if len(rows):
            beside[f"{other} over identity"] = resampling.beside(
                rows, _geometric_mean(rows), units="pairs of directions", cluster=TEACHER
            )
    return resampling.measure(
        pairs,
        _geometric_mean(pairs),
        units="pairs of directions",
        cluster=TEACHER,
        scope=f"{dimensions_text(pairs)}{left_out_text(left_out, 'directions off the grid')}",
        beside=beside,
    )


def _geometric_mean(pairs: pd.DataFrame) -> Callable[[Index], float]:
    log_ratio = log_of(pairs, "half_recovery_other") - log_of(pairs, "half_recovery_identity")
    return lambda index: math.exp(float(log_ratio[index].mean()))


def _readout_pairs(table: pd.DataFrame, readout: str) -> tuple[pd.DataFrame, int]:
    family = ["degree", "dimension", "n_directions", "gamma", "noise"]
    families = table.loc[table["readout"] == readout, family].drop_duplicates()
    either = table[table["readout"].isin(["identity", readout])]
    rows, left_out = uncensored(either.merge(families))
    key = [*TEACHER.columns, "feature_dimension", "n_directions", "gamma", "noise", "direction"]
    columns = [*key, "weight", "half_recovery"]
    pairs = identity_readout(rows)[columns].merge(
        rows.loc[rows["readout"] == readout, columns], on=key, suffixes=("_identity", "_other")
    )
    same = np.isclose(pairs["weight_identity"], pairs["weight_other"], rtol=1e-9)
    return pairs[same].reset_index(drop=True), left_out
