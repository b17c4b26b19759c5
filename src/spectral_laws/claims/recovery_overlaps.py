"""Measurements of the claims on overlaps along the sample sizes: A2, A4, A8."""

import math

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import (
    TEACHER,
    Index,
    Resampling,
    count_groups,
    identity_readout,
    slope,
)
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.crossings import first_crossing

_CURVE = ["study", *TEACHER, "direction"]
FAR = 4.0
"""Well above (below) the half-recovery sample size: this many times it (a quarter of it)."""
HIDDEN, RECOVERED = 0.1, 0.9
"""cos^2 of a direction that counts as hidden or as recovered."""


def measure_transition(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A2: the smaller of the shares hidden at n <= n*/4 and recovered at n >= 4 n*.

    Where n* lies above the grid, all that is known is that it is above the largest sample size,
    and a quarter of that bounds the entries that count as well below; likewise at the other end.

    Raises:
        NoFitError: if no degree-2 entry lies well below, or none well above.
    """
    rows = _with_half_recovery(tables)
    rows = rows[rows["degree"] == 2]
    below = rows["sample_size"] <= rows["at_least"] / FAR
    above = rows["sample_size"] >= rows["at_most"] * FAR
    rows = rows.assign(below=below, above=above)[below | above].reset_index(drop=True)
    cos2 = rows["cos2"].to_numpy(np.float64)
    is_below, is_above = rows["below"].to_numpy(bool), rows["above"].to_numpy(bool)

    if not is_below.any() or not is_above.any():
        raise NoFitError(
            f"{int(is_below.sum())} overlaps well below n*, {int(is_above.sum())} well above; "
            "both are needed"
        )

    def shares(index: Index) -> tuple[float, float]:
        hidden = cos2[index][is_below[index]] <= HIDDEN
        recovered = cos2[index][is_above[index]] >= RECOVERED
        if hidden.size == 0 or recovered.size == 0:
            return math.nan, math.nan
        return float(hidden.mean()), float(recovered.mean())

    hidden, recovered = shares(np.arange(len(rows)))
    return resampling.measure(
        rows,
        lambda index: min(shares(index)),
        cluster=TEACHER,
        n=len(rows),
        reason=(
            f"{int(is_below.sum())} overlaps well below n*, share hidden {hidden:.3g}; "
            f"{int(is_above.sum())} well above, share recovered {recovered:.3g}; "
            f"{count_groups(rows, TEACHER)} teachers"
        ),
    )


def measure_angle_decay(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A4: slope of log(1 - cos theta_k) on log n where n >= 4 n*_k.

    Every direction of every teacher has its own intercept; cos theta = sqrt(cos^2).

    Raises:
        NoFitError: if no direction has two sample sizes that far.
    """
    rows = _with_half_recovery(tables)
    rows = rows[rows["censored"].eq("no") & (rows["sample_size"] >= FAR * rows["at_most"])]
    gap = 1 - np.sqrt(rows["cos2"].to_numpy(np.float64))
    positive = gap > 0
    rows = rows[positive].assign(
        x=np.log(rows["sample_size"].to_numpy(np.float64)[positive]), y=np.log(gap[positive])
    )
    curves = rows.groupby(_CURVE)
    rows = rows[curves["x"].transform("size") >= 2].reset_index(drop=True)
    if rows.empty:
        raise NoFitError("no direction has two sample sizes beyond 4 times its half-recovery")
    curves = rows.groupby(_CURVE)
    x, y = (
        (rows[name] - curves[name].transform("mean")).to_numpy(np.float64) for name in ("x", "y")
    )
    return resampling.measure(
        rows,
        lambda index: float(x[index] @ y[index] / (x[index] @ x[index])),
        cluster=TEACHER,
        n=len(rows),
        reason=(
            f"{len(rows)} overlaps of {count_groups(rows, _CURVE)} directions, "
            f"{count_groups(rows, TEACHER)} teachers; {int((~positive).sum())} overlaps of exactly "
            "1 left out"
        ),
    )


def measure_smoothing(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """A8: slope on log d of the width of direction 1's transition, one intercept per study.

    The width is log n where cos^2 first reaches 0.9 minus log n where it first reaches 0.1. A
    dimension counts if every seed has both inside the grid, a study if three dimensions count.

    Raises:
        NoFitError: if no study counts.
    """
    table = identity_readout(tables.require("directions"))
    rows = _widths(table[table["direction"] == 1])
    whole = rows["width"].notna().groupby([rows["study"], rows["dimension"]]).transform("all")
    dropped = count_groups(rows[~whole], ["study", "dimension"])
    rows = rows[whole]
    enough = rows.groupby("study")["dimension"].transform("nunique") >= 3
    rows = rows[enough].reset_index(drop=True)
    if rows.empty:
        raise NoFitError(
            "no study has three dimensions at which cos^2 of direction 1 rises through 0.1 and "
            f"0.9 inside the grid ({dropped} dimension(s) left out)"
        )
    log_d = np.log(rows["dimension"].to_numpy(np.float64))
    x = log_d - pd.Series(log_d).groupby(rows["study"]).transform("mean").to_numpy()
    width = rows["width"].to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: slope(x[index], width[index]),
        cluster=TEACHER,
        strata=["degree", "dimension"],
        n=len(rows),
        reason=(
            f"{len(rows)} transitions, studies {', '.join(sorted(rows['study'].unique()))}; "
            f"{dropped} dimension(s) outside the grid left out"
        ),
    )


def _widths(table: pd.DataFrame) -> pd.DataFrame:
    """Width in log n of each curve's transition; NaN where it is not inside the grid."""
    records = []
    for key, curve in table.groupby(["study", *TEACHER]):
        curve = curve.sort_values("sample_size")
        start, end = (
            first_crossing(curve["sample_size"], curve["cos2"], level)
            for level in (HIDDEN, RECOVERED)
        )
        width = math.nan if start is None or end is None else math.log(end / start)
        records.append([*key, width])
    return pd.DataFrame(records, columns=["study", *TEACHER, "width"])


def _with_half_recovery(tables: ClaimTables) -> pd.DataFrame:
    """Overlaps of identity studies with bounds ``at_least`` <= n* <= ``at_most`` per direction.

    Both are n* itself where it lies inside the grid; beyond the grid's end one is that end and the
    other infinite or 0.
    """
    overlaps = identity_readout(tables.require("directions"))
    thresholds = tables.require("thresholds")
    rows = overlaps.merge(
        thresholds[[*_CURVE, "half_recovery", "censored"]], on=_CURVE, validate="many_to_one"
    )
    grid = rows.groupby(_CURVE)["sample_size"]
    above, below = rows["censored"].eq("above"), rows["censored"].eq("below")
    return rows.assign(
        at_least=rows["half_recovery"].mask(above, grid.transform("max")).mask(below, 0.0),
        at_most=rows["half_recovery"].mask(below, grid.transform("min")).mask(above, math.inf),
    )
