"""Measurements of the claims on the layers of trained networks: B1, B2, B3, B12, B13.

Layers of one training depend on each other, so whole trainings are resampled, within each model.
"""

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.selections import (
    MAIN,
    final_layers,
    having,
    medians_text,
    models_of,
    with_roles,
)
from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError


def measure_alpha(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    roles: tuple[str, ...],
    what: str,
    experiment: str = MAIN,
    variant: str | float | None = None,
) -> Measurement:
    """B1, B2, B3: median alpha of the layers of some roles.

    Args:
        tables: with exponents and experiments.
        resampling: how the interval is made.
        roles: of the layers.
        what: a name for these layers.
        experiment: whose networks they belong to.
        variant: of the experiment; all for None.

    Raises:
        NoFitError: if no such layer was fitted, or a network was trained too few times.
    """
    models = models_of(tables, experiment, variant)
    layers = with_roles(final_layers(tables, "exponents", models), roles)
    rows, text = having(layers, "alpha", what)
    return layer_median(rows, "alpha", resampling, text + medians_text(rows, "alpha"))


def measure_lognormal_share(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B12: share of layers whose smallest BIC is log-normal.

    Raises:
        NoFitError: if no layer was fitted, or a network was trained too few times.
    """
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, text = having(layers, "rank_model", "layers")
    counts = rows["rank_model"].value_counts()
    listing = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return _share(rows, rows["rank_model"].eq("lognormal"), resampling, f"{text}; {listing}")


def measure_participation_bound(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B13: share of layers whose participation ratio is at most the bound, where it is finite.

    Raises:
        NoFitError: if no layer has a finite bound, or a network was trained too few times.
    """
    layers = final_layers(tables, "exponents", models_of(tables))
    rows, text = having(layers, "participation_ratio", "layers")
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


def layer_median(
    rows: pd.DataFrame, column: str, resampling: Resampling, reason: str
) -> Measurement:
    """Median of a column over layers, whole trainings resampled within each network."""
    values = rows[column].to_numpy(np.float64)
    return resampling.measure(
        rows,
        lambda index: float(np.median(values[index])),
        cluster=TRAINING,
        strata=["model"],
        n=len(rows),
        reason=reason,
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
