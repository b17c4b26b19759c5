"""Measurements of the claims on layers' exponents: B1, B3, B11, B12, B13.

Layers of one training depend on each other, so whole trainings are resampled, within each model.
"""

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError


def measure_conv_alpha(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B1: median alpha of convolutional layers.

    Raises:
        NoFitError: if no convolutional layer was fitted, or a model was trained too few times.
    """
    return _median(tables, resampling, column="alpha", kind="conv")


def measure_head_alpha(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B3: median alpha of output layers.

    Raises:
        NoFitError: if no output layer was fitted, or a model was trained too few times.
    """
    return _median(tables, resampling, column="alpha", kind="head")


def measure_transfer_error(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B11: median of |s - alpha gamma| / |s| over layers.

    Raises:
        NoFitError: if no layer was fitted, or a model was trained too few times.
    """
    rows, _ = _fitted(tables)
    by_sorting = float(rows["transfer_error_sorted"].median())
    note = (
        f"{by_sorting:.3g} with s fitted to sorted curvatures, as in the author's files; the "
        "test on disjoint halves of the batch is not run"
    )
    return _median(tables, resampling, column="transfer_error", note=note)


def measure_lognormal_share(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B12: share of layers whose smallest BIC is log-normal.

    Raises:
        NoFitError: if no layer was fitted, or a model was trained too few times.
    """
    rows, text = _fitted(tables)
    counts = rows["rank_model"].value_counts()
    listing = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return _share(rows, rows["rank_model"].eq("lognormal"), resampling, f"{text}; {listing}")


def measure_participation_bound(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B13: share of layers whose participation ratio is at most the bound, where it is finite.

    Raises:
        NoFitError: if no layer has a finite bound, or a model was trained too few times.
    """
    rows, text = _fitted(tables)
    finite = rows["participation_bound"].notna()
    bounded = rows[finite].reset_index(drop=True)
    if bounded.empty:
        raise NoFitError(f"{text}; none has a finite bound (alpha gamma <= 1)")
    text += (
        f"; {int((~finite).sum())} with alpha gamma <= 1 have no finite bound; median ratio "
        f"{bounded['participation_ratio'].median():.3g}, median bound "
        f"{bounded['participation_bound'].median():.3g}"
    )
    holds = bounded["participation_ratio"] <= bounded["participation_bound"]
    return _share(bounded, holds, resampling, text)


def _fitted(tables: ClaimTables, kind: str | None = None) -> tuple[pd.DataFrame, str]:
    """Layers with a fit (of one kind), and a sentence that counts them."""
    table = tables.require("exponents")
    if kind is not None:
        table = table[table["kind"] == kind]
    rows = table[table["status"] == "fit"].reset_index(drop=True)
    what = "layers" if kind is None else f"{kind} layers"
    if rows.empty:
        raise NoFitError(f"none of {len(table)} {what} has a fit")
    models = ", ".join(sorted(rows["model"].unique()))
    return rows, (
        f"{len(rows)} {what} of {count_groups(rows, TRAINING)} trainings ({models}), "
        f"{len(table) - len(rows)} without a fit"
    )


def _median(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    column: str,
    kind: str | None = None,
    note: str = "",
) -> Measurement:
    rows, text = _fitted(tables, kind)
    values = rows[column].to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: float(np.median(values[index])),
        cluster=TRAINING,
        strata=["model"],
        n=len(rows),
        reason=f"{text}; {note}" if note else text,
    )


def _share(
    rows: pd.DataFrame, holds: "pd.Series[bool]", resampling: Resampling, text: str
) -> Measurement:
    values = holds.to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: float(values[index].mean()),
        cluster=TRAINING,
        strata=["model"],
        n=len(rows),
        reason=text,
    )
