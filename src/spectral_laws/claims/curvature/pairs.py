"""Differences between two measurements of the same layers, within each seed or training."""

from typing import Literal

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.selections import variant_layers, with_roles
from spectral_laws.claims.resampling import TRAINING, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

SEED = ["seed"]
"""Networks of an experiment that share a seed share their data; pairs of them are resampled."""


def measure_variants(
    tables: ClaimTables,
    resampling: Resampling,
    *,
    experiment: str,
    variants: tuple[str | float, str | float],
    column: str,
    roles: tuple[str, ...] | None = None,
    magnitude: bool = False,
    first_layer: bool = False,
    scope: str = "",
) -> Measurement:
    """B7, B8, B18, B19: median over layers at one variant minus at another, paired by seed.

    Only layers with a value at both variants count. The difference is taken within each seed and
    averaged over seeds, which are resampled.

    Args:
        tables: with experiments.
        resampling: how the interval is made.
        experiment: name of the experiment.
        variants: the first minus the second.
        column: of the experiments table.
        roles: of the layers; all for None.
        magnitude: whether to take |column|.
        first_layer: whether only each network's first layer counts.
        scope: of the measurement.

    Raises:
        NoFitError: if a variant was not trained, no layer has both, or there are too few seeds.
    """
    sides, names = [], []
    for variant in variants:
        layers = variant_layers(tables, experiment, variant)
        names.append(f"{layers['over'].iloc[0]} {layers['variant'].iloc[0]}".replace("_", " "))
        rows = with_roles(layers, roles)
        if first_layer:
            rows = rows[rows["layer_index"] == rows["layer_index"].min()]
        sides.append(rows.assign(value=rows[column].abs() if magnitude else rows[column]))
    return measure_change(
        *sides,
        resampling=resampling,
        unit=SEED,
        names=(names[0], names[1]),
        summary="median",
        scope=scope,
    )


def measure_change(
    after: pd.DataFrame,
    before: pd.DataFrame,
    *,
    resampling: Resampling,
    unit: list[str],
    names: tuple[str, str],
    summary: Literal["median", "mean"],
    scope: str = "",
) -> Measurement:
    """Summary over layers of ``value`` in ``after`` minus in ``before``, mean over units.

    Args:
        after: rows with the columns of ``unit``, layer, and value, missing where there is none.
        before: likewise; layers are paired by unit and name.
        resampling: how the interval is made; units are resampled, trainings within each network.
        unit: columns that name the independent unit.
        names: of the two sides, for the reason.
        summary: ``median`` or ``mean`` over the layers of a unit.
        scope: of the measurement.

    Raises:
        NoFitError: if no layer has both, or there are too few units.
    """
    key = [*unit, "layer"]
    sides = [rows.loc[rows["value"].notna(), [*key, "value"]] for rows in (after, before)]
    pairs = sides[0].merge(sides[1], on=key, suffixes=("_after", "_before"), validate="one_to_one")
    asked = len(pd.concat([after[key], before[key]]).drop_duplicates())
    if pairs.empty:
        raise NoFitError(f"none of {asked} layers has a fit in both, {names[0]} and {names[1]}")
    ends = ["value_after", "value_before"]
    units = pairs.groupby(unit)[ends].agg(summary).reset_index()
    change = (units["value_after"] - units["value_before"]).to_numpy(np.float64)
    means = [float(units[end].mean()) for end in ends]
    word = "seeds" if unit == SEED else "trainings"
    return resampling.measure(
        units,
        lambda index: float(change[index].mean()),
        cluster=unit,
        strata=["model"] if unit == TRAINING else (),
        n=len(pairs),
        reason=(
            f"{len(pairs)} layers of {len(units)} {word} with a fit in both, {asked - len(pairs)} "
            f"without; {summary} {means[0]:.3g} ({names[0]}) against {means[1]:.3g} ({names[1]})"
        ),
        scope=scope,
    )
