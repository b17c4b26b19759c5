"""Nonlinear readouts against the identity: the paper's figure 5."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.palette import READOUT_COLORS, THEORY
from spectral_laws.plotting.recovery.panels import (
    complete,
    describe,
    draw_curve,
    draw_points,
    finish_logarithmic,
    kind_handle,
    label_logarithmic,
    of_layer,
    of_study,
)
from spectral_laws.plotting.style import TEXT_WIDTH, markers, styled
from spectral_laws.plotting.tables import summarise_seeds

_READOUTS = ("identity", "tanh", "relu")
_SAME = ("degree", "n_directions", "gamma", "noise")
"""What studies that differ in the readout have in common."""


@styled
def draw(
    metrics: pd.DataFrame,
    thresholds: pd.DataFrame,
    *,
    study: str = "quadratic",
    equivalent: str = "equivalent",
    confidence: float = 0.95,
) -> Figure:
    """Test MSE / Var(y) and feature overlap against n / D, and ratios of thresholds, by readout.

    Left: the studies ``study``, ``study``_tanh and ``study``_relu; right: the same of
    ``equivalent``; each at the largest d that its readouts share. Points are means over seeds of
    the independent second layer (of the MSE: geometric) with Student's interval, lines the sharp
    theory of the Gaussian equivalent. Bottom: n*_i under a readout over n*_i under the identity,
    same teachers and inputs, geometric mean over seeds, for the directions that cross 1/2 inside
    the grid for every seed under both; the paper has 1 (line).
    """
    symbols = markers(_READOUTS)
    figure = Figure(figsize=(TEXT_WIDTH, 5.6), layout="constrained")
    axes = figure.subplots(3, 2)
    present: set[str] = set()
    for column, base in enumerate((study, equivalent)):
        tables = readout_studies(metrics, base)
        present |= set(tables)
        for rank, (readout, rows) in enumerate(tables.items()):
            for axis, measured, predicted in (
                (axes[0, column], "mse", "predicted_mse"),
                (axes[1, column], "feature_overlap", "predicted_overlap"),
            ):
                draw_curve(
                    axis, rows, measured, predicted, place=(rank, len(tables)),
                    exponent_axis=False, confidence=confidence, logarithmic=measured == "mse",
                    color=READOUT_COLORS[readout], marker=symbols[readout],
                )  # fmt: skip
        title = describe(pd.concat(tables.values()), dimension=True)
        axes[0, column].set_title(f"({'ab'[column]}) {title}")
        axes[1, column].set(xscale="log", xlabel=r"samples per feature, $n\,/\,D$")
        axes[0, column].sharex(axes[1, column])
        axes[0, column].tick_params(labelbottom=False)
        studies = {readout: str(rows["study"].iloc[0]) for readout, rows in tables.items()}
        mine = thresholds[thresholds["dimension"] == tables["identity"]["dimension"].iloc[0]]
        _draw_ratios(axes[2, column], mine, studies, confidence)
    axes[0, 0].set_ylabel(r"test MSE / Var($y$)")
    axes[1, 0].set_ylabel("feature overlap (fraction)")
    axes[2, 0].set_ylabel(r"$n^*_i$ / $n^*_i$ of the identity")
    for axis in axes[1]:
        axis.set_ylim(-0.03, 1.03)
    for row in (axes[0], axes[2]):
        for axis in row:
            finish_logarithmic(axis)
        limits = [end for axis in row for end in axis.get_ylim()]
        for axis in row:
            axis.set_ylim(min(limits), max(limits))
    for axis in axes.flat:
        label_logarithmic(axis)
    handles = [
        kind_handle(f"readout {name}", color=READOUT_COLORS[name], marker=symbols[name],
                    linestyle="none")
        for name in _READOUTS
        if name in present
    ]  # fmt: skip
    handles.append(kind_handle("sharp theory", linewidth=0.9))
    handles.append(kind_handle("equal thresholds", color=THEORY, linewidth=0.9))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _draw_ratios(
    axis: Axes, thresholds: pd.DataFrame, studies: dict[str, str], confidence: float
) -> None:
    total = int(thresholds.loc[thresholds["study"] == studies["identity"], "n_directions"].iloc[0])
    missing = []
    axis.axhline(1.0, color=THEORY, linewidth=0.9, zorder=1)
    for rank, readout in enumerate(tuple(studies)[1:]):
        points = threshold_ratios(thresholds, studies["identity"], studies[readout], confidence)
        missing.append(f"{readout} {total - len(points)}")
        x = points["direction"] + 0.2 * (rank - (len(studies) - 2) / 2)
        color, marker = READOUT_COLORS[readout], markers(_READOUTS)[readout]
        draw_points(axis, x, points, color=color, marker=marker)
    axis.set(xlim=(0.5, total + 0.5), xticks=range(1, total + 1), xlabel="direction $i$")
    axis.set_title(f"directions left out of {total}: {', '.join(missing)}")


def threshold_ratios(
    thresholds: pd.DataFrame, base: str, other: str, confidence: float
) -> pd.DataFrame:
    """n*_i of ``other`` over that of ``base`` by direction, geometric mean over common seeds.

    Only directions that cross 1/2 inside the grid for every seed of both, as in the claims.
    """
    key = ["seed", "direction"]
    sizes = [
        complete(thresholds[thresholds["study"] == study], "half_recovery")
        .set_index(key)["half_recovery"]
        for study in (other, base)
    ]  # fmt: skip
    ratios = (sizes[0] / sizes[1]).dropna().rename("ratio").reset_index()
    return summarise_seeds(ratios, ["direction"], "ratio", confidence=confidence, logarithmic=True)


def readout_studies(metrics: pd.DataFrame, base: str) -> dict[str, pd.DataFrame]:
    """Rows of ``base``, ``base``_tanh, ``base``_relu by readout, at their largest common d.

    Raises:
        DataError: if ``base`` is missing, stands alone, shares no d with the others, or has other
            teachers than they.
    """
    metrics = of_layer(metrics, "independent")
    tables = {"identity": of_study(metrics, base, name="metrics")}
    for readout in _READOUTS[1:]:
        rows = metrics[metrics["study"] == f"{base}_{readout}"]
        if len(rows):
            tables[readout] = rows
    if len(tables) == 1:
        raise DataError(f"metrics table: no study {base}_tanh or {base}_relu beside {base}")
    shared = set.intersection(*(set(rows["dimension"]) for rows in tables.values()))
    if not shared:
        raise DataError(f"metrics table: {base} and its other readouts have no dimension in common")
    tables = {name: rows[rows["dimension"] == max(shared)] for name, rows in tables.items()}
    for name, rows in tables.items():
        for column in _SAME:
            ours, theirs = rows[column].iloc[0], tables["identity"][column].iloc[0]
            if ours != theirs:
                raise DataError(
                    f"metrics table: study {base} has {column} {theirs}, its readout {name} has "
                    f"{ours}; teachers that differ cannot be compared"
                )
    return tables
