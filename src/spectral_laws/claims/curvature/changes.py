"""Measurements of what changes: between networks (B7, B8, B18, B19), in training, in a spectrum.

B17 and B20 compare the two ends of training, B9 the two sides of k = c, the number of classes.
"""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.layers import over_layers
from spectral_laws.claims.curvature.selections import (
    final_layers,
    having,
    models_of,
    scope_of,
    variant_layers,
    with_roles,
)
from spectral_laws.claims.resampling import TRAINING, Cluster, Resampling
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, Vector, slope
from spectral_laws.settings.roles import LAYER

SEED = Cluster("seeds", ("seed",))
"""Networks of an experiment that share a seed share their data; pairs of them are resampled."""
_WIDTH_FACTOR = 8.0
"""The paper's widths span 64 to 512."""


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
) -> Measurement:
    """B7, B8, B18, B19: median over layers at one variant minus at another, paired by seed.

    Of ``column`` of the experiments table or of its ``magnitude``, over layers of some ``roles`` or
    each network's first. Only layers with a value at both variants count. The difference is taken
    within each seed and averaged over seeds, which are resampled.
    """
    sides = {}
    for variant in variants:
        layers = variant_layers(tables, experiment, variant)
        name = f"{layers['over'].iloc[0]} {layers['variant'].iloc[0]}".replace("_", " ")
        rows = with_roles(layers, roles)
        if first_layer:
            rows = rows[rows["layer_index"] == rows["layer_index"].min()]
        sides[name] = rows.assign(value=rows[column].abs() if magnitude else rows[column])
    return _measure_change(
        sides, resampling, unit=SEED, summary="median", scope=" minus ".join(sides)
    )


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
    """
    table = tables.require("exponents")
    start = table[(table["epoch"] == 0) & ~table["final"].astype(bool)]
    if start.empty:
        raise NoFitError("no network was measured at initialisation")
    end = table[table["final"].astype(bool) & table["model"].isin(start["model"])]
    after, before = (_with_value(with_roles(rows, roles), quantity) for rows in (end, start))
    return _measure_change(
        {"trained": after, "at initialisation": before},
        resampling,
        unit=TRAINING,
        summary="median" if quantity == "alpha" else "mean",
        scope=scope_of(start, 0),
    )


def _with_value(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    if quantity == "alpha":
        return rows.assign(value=rows["alpha"])
    lognormal = rows["rank_model"].eq("lognormal").astype("float64")
    return rows.assign(value=lognormal.where(rows["rank_model"].notna()))


def _measure_change(
    sides: dict[str, pd.DataFrame],
    resampling: Resampling,
    *,
    unit: Cluster,
    summary: Literal["median", "mean"],
    scope: str,
) -> Measurement:
    """Summary over layers of ``value`` on one side minus on the other, mean over units.

    ``sides`` are, by name, the first minus the second: rows with the columns of ``unit``, layer,
    and value, missing where there is none. Layers are paired by unit and name. Units are resampled,
    trainings within each network. To the scope the number of layers left out is added.
    """
    key = [*unit.columns, "layer"]
    after, before = (rows.loc[rows["value"].notna(), [*key, "value"]] for rows in sides.values())
    pairs = after.merge(before, on=key, validate="one_to_one")
    asked = len(pd.concat([rows[key] for rows in sides.values()]).drop_duplicates())
    if pairs.empty:
        raise NoFitError(f"none of {asked} layers has a fit in both, {' and '.join(sides)}")
    ends = pairs.rename(columns=dict(zip(("value_x", "value_y"), sides, strict=True)))
    units = ends.groupby(list(unit.columns))[[*sides]].agg(summary).reset_index()
    first, second = (units[name].to_numpy(np.float64) for name in sides)

    def mean(values: Vector, *, judged: bool = False, scope: str = "") -> Measurement:
        measured = (resampling.measure if judged else resampling.beside)(
            units,
            lambda index: float(values[index].mean()),
            units="layers",
            cluster=unit,
            strata=["model"] if unit is TRAINING else (),
            scope=scope,
        )
        return replace(measured, n_units=len(pairs))

    if left_out := asked - len(pairs):
        scope += f", {left_out} without a fit in both"
    measured = mean(first - second, judged=True, scope=scope)
    levels = (mean(values) for values in (first, second))
    return replace(measured, beside=dict(zip(sides, levels, strict=True)))


def measure_width_growth(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B19: growth of the first layer's participation ratio per factor 8 in width.

    Least squares on log width over all widths of the experiment, seeds resampled.
    """
    layers = final_layers(tables, "experiments", models_of(tables, "width"))
    layers = layers[layers["experiment"] == "width"]
    first = layers[layers["layer_index"] == layers.groupby("model")["layer_index"].transform("min")]
    rows, scope = having(first, "participation_ratio", "first layers")
    log_width = np.log(rows["value"].to_numpy(np.float64))
    ratio = rows["participation_ratio"].to_numpy(np.float64)

    def growth(index: Index) -> float:
        return slope(log_width[index], ratio[index]) * math.log(_WIDTH_FACTOR)

    widths = f"width {rows['value'].min():g} to {rows['value'].max():g}"
    return resampling.measure(
        rows, growth, units="first layers", cluster=SEED, scope=f"{widths}, {scope}"
    )


def measure_alignment_drop(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B9: mean log10 rho_delta of heads beyond k = c minus up to c, c the number of classes.

    A head of c outputs has only c singular directions, and its gradient rank c - 1, because
    the output gradients of a sample sum to zero. Beyond c there is something to measure only where
    a head has more outputs than classes.
    """
    rows = _alignments(tables, head=True)
    beyond = rows["index"] > rows["n_classes"]
    if not beyond.any():
        raise NoFitError("no head has a singular direction beyond k = c")
    return _measure_drop(rows, beyond, resampling, "heads")


def measure_alignment_at_rank(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B9: the same at k = c - 1, the last direction in a head's gradient, minus earlier."""
    rows = _alignments(tables, head=True)
    rows = rows[rows["index"] < rows["n_classes"]].reset_index(drop=True)
    return _measure_drop(rows, rows["index"] == rows["n_classes"] - 1, resampling, "heads")


def measure_hidden_drop(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B9: the same beyond k = c in the other layers, which have such directions."""
    rows = _alignments(tables, head=False)
    return _measure_drop(rows, rows["index"] > rows["n_classes"], resampling, "hidden layers")


def _alignments(tables: ClaimTables, *, head: bool) -> pd.DataFrame:
    """Directions with an alignment in the networks of the experiment on class counts."""
    models = models_of(tables, "classes")
    experiments = final_layers(tables, "experiments", models)
    counts = experiments.loc[experiments["experiment"] == "classes", ["model", "value"]]
    n_classes = counts.drop_duplicates().rename(columns={"value": "n_classes"})
    spectra = final_layers(tables, "spectra", models)
    chosen = ((spectra["role"] == "head") == head) & (spectra["rho_delta"] > 0)
    rows = spectra.loc[chosen, [*LAYER, "index", "rho_delta"]].merge(
        n_classes, on="model", validate="many_to_one"
    )
    if rows.empty:
        kind = "head" if head else "hidden layer"
        raise NoFitError(f"no {kind} of experiment classes has an output alignment")
    return rows


def _measure_drop(
    rows: pd.DataFrame, beyond: "pd.Series[bool]", resampling: Resampling, units: str
) -> Measurement:
    """Mean over layers of (mean log10 rho_delta where ``beyond`` minus where not).

    Beside it the step from the last direction before to the first beyond: a mean falls also where
    the alignment falls all along.
    """
    logs = rows.assign(log=np.log10(rows["rho_delta"].to_numpy(np.float64)), beyond=beyond)
    logs = logs.sort_values("index")
    sides = (logs[logs["beyond"]], logs[~logs["beyond"]])
    after, before = (side.groupby(LAYER)["log"] for side in sides)
    changes = {"drop": after.mean() - before.mean(), "step": after.first() - before.last()}
    layers = pd.DataFrame(changes).dropna().reset_index()
    asked = count_groups(rows, LAYER)
    if layers.empty:
        raise NoFitError(f"none of {asked} {units} has directions on both sides")
    scope = scope_of(layers, asked - len(layers), "without directions on both sides")
    drop, step = (
        over_layers(
            layers, layers[name], resampling, units=units, scope=scope, judged=name == "drop",
            summary="mean",
        )
        for name in ("drop", "step")
    )  # fmt: skip
    return replace(drop, beside={"step between neighbours": replace(step, scope="")})
