"""Measurements of the claims on what sets the exponents: B9 (class counts), B19 (width).

The other ablations, B7, B8 and B18, are differences of two variants: ``curvature_pairs``.
"""

import math

import numpy as np
import pandas as pd

from spectral_laws.claims.curvature.pairs import SEED
from spectral_laws.claims.curvature.selections import LAYER, final_layers, having, models_of
from spectral_laws.claims.resampling import TRAINING, Index, Resampling, slope
from spectral_laws.claims.selections import count_groups
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

_CLASSES = "classes"
_WIDTH_FACTOR = 8.0
"""The paper's widths span 64 to 512."""


def measure_alignment_drop(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """B9: mean log10 rho_delta of heads beyond k = c minus up to c, c the number of classes.

    A head of c outputs has only c singular directions, and its gradient rank c - 1, because
    the output gradients of a sample sum to zero. Beyond c there is something to measure only where
    a head has more outputs than classes.

    Raises:
        NoFitError: if no head has directions on both sides of k = c, or a network was trained too
            few times.
    """
    rows = _alignments(tables, kind="head")
    beyond = rows["index"] > rows["n_classes"]
    if not beyond.any():
        raise NoFitError(
            f"no head has a singular direction beyond k = c: with c outputs there are c of them, "
            f"and output gradients that sum to zero leave c - 1 above the numerical rank (the "
            f"last direction that was measured, of {_ends_text(rows)}); the claim speaks of "
            "directions that a softmax head does not have"
        )
    return _measure_drop(rows, beyond, resampling, "heads")


def measure_alignment_at_rank(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B9: the same at k = c - 1, the last direction in a head's gradient, minus before it.

    Raises:
        NoFitError: if no head has it and one before it, or a network was trained too few times.
    """
    rows = _alignments(tables, kind="head")
    rows = rows[rows["index"] < rows["n_classes"]].reset_index(drop=True)
    last = rows["index"] == rows["n_classes"] - 1
    return _measure_drop(rows, last, resampling, "heads, k = c - 1 against k < c - 1")


def measure_hidden_drop(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B9: the same beyond k = c in the other layers, which have such directions.

    Raises:
        NoFitError: if no layer has directions on both sides, or a network was trained too few
            times.
    """
    rows = _alignments(tables, kind="hidden")
    return _measure_drop(rows, rows["index"] > rows["n_classes"], resampling, "hidden layers")


def measure_width_growth(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B19: growth of the first layer's participation ratio per factor 8 in width.

    Least squares on log width over all widths of the experiment, seeds resampled.

    Raises:
        NoFitError: if fewer than two widths were trained, or there are too few seeds.
    """
    models = models_of(tables, "width")
    layers = final_layers(tables, "experiments", models)
    layers = layers[layers["experiment"] == "width"]
    first = layers[layers["layer_index"] == layers.groupby("model")["layer_index"].transform("min")]
    rows, text = having(first, "participation_ratio", "first layers")
    log_width = np.log(rows["value"].to_numpy(np.float64))
    ratio = rows["participation_ratio"].to_numpy(np.float64)
    medians = rows.groupby("value")["participation_ratio"].median()
    listing = ", ".join(f"{width:g}: {value:.3g}" for width, value in medians.items())

    def growth(index: Index) -> float:
        return slope(log_width[index], ratio[index]) * math.log(_WIDTH_FACTOR)

    return resampling.measure(
        rows,
        growth,
        cluster=SEED,
        n=len(rows),
        reason=f"{text}; medians by width {listing}",
        scope=f"width {rows['value'].min():g} to {rows['value'].max():g}",
    )


def _alignments(tables: ClaimTables, *, kind: str) -> pd.DataFrame:
    """Directions with an alignment in the networks of the experiment on class counts."""
    models = models_of(tables, _CLASSES)
    experiments = final_layers(tables, "experiments", models)
    counts = experiments.loc[experiments["experiment"] == _CLASSES, ["model", "value"]]
    n_classes = counts.drop_duplicates().rename(columns={"value": "n_classes"})
    spectra = final_layers(tables, "spectra", models)
    chosen = ((spectra["role"] == "head") == (kind == "head")) & (spectra["rho_delta"] > 0)
    rows = spectra.loc[chosen, [*LAYER, "index", "rho_delta"]].merge(
        n_classes, on="model", validate="many_to_one"
    )
    if rows.empty:
        raise NoFitError(f"no {kind} layer of experiment {_CLASSES} has an output alignment")
    return rows


def _measure_drop(
    rows: pd.DataFrame, beyond: "pd.Series[bool]", resampling: Resampling, what: str
) -> Measurement:
    """Mean over layers of (mean log10 rho_delta where ``beyond`` minus where not).

    The reason holds the step from the last direction before to the first beyond: a mean falls also
    where the alignment falls all along.
    """
    logs = rows.assign(log=np.log10(rows["rho_delta"].to_numpy(np.float64)), beyond=beyond)
    logs = logs.sort_values("index")
    sides = (logs[logs["beyond"]], logs[~logs["beyond"]])
    after, before = (side.groupby([*LAYER, "n_classes"])["log"] for side in sides)
    layers = pd.DataFrame(
        {"drop": after.mean() - before.mean(), "step": after.first() - before.last()}
    )
    layers = layers.dropna().reset_index()
    if layers.empty:
        raise NoFitError(
            f"{what}: none of {count_groups(rows, LAYER)} has directions on both sides"
        )
    drop, step = (layers[name].to_numpy(np.float64) for name in ("drop", "step"))
    by_count = layers.groupby("n_classes")["drop"].mean()
    listing = ", ".join(f"c = {count:g}: {value:.3g}" for count, value in by_count.items())
    text = (
        f"{len(layers)} {what} of {count_groups(layers, TRAINING)} trainings with directions on "
        f"both sides, of {count_groups(rows, LAYER)}; {listing}; the step between neighbours alone "
        f"is {step.mean():.3g}"
    )
    return resampling.measure(
        layers,
        lambda index: float(drop[index].mean()),
        cluster=TRAINING,
        strata=["model"],
        n=len(layers),
        reason=text,
    )


def _ends_text(rows: pd.DataFrame) -> str:
    """The last aligned direction by number of classes: 'c = 10: 9, c = 100: 20'."""
    last = rows.groupby("n_classes")["index"].max()
    return ", ".join(f"c = {count:g}: {k}" for count, k in last.items())
