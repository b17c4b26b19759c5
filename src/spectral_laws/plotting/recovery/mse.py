"""Test error and feature overlap against sample size: the paper's figure 2."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectral_laws.palette import FAINT
from spectral_laws.plotting.recovery.panels import (
    STEPS,
    describe,
    draw_curve,
    finish_logarithmic,
    kind_handle,
    of_layer,
    of_study,
    size_handles,
    staircases,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, markers, ordered_colors, styled


@styled
def draw(metrics: pd.DataFrame, *, study: str = "quadratic", confidence: float = 0.95) -> Figure:
    """Test MSE / Var(y), with two second layers, and feature overlap against log n / log d.

    Points are means over seeds (of the MSE: geometric) with Student's interval, one colour and
    marker per d. Lines are the sharp theory of the Gaussian equivalent. The faint steps of the
    largest d are the paper's tail sum of lambda_i^2 over i > m(n), m(n) = #{i : n >= D/lambda_i^2}.
    """
    rows = of_study(metrics, study, name="metrics")
    independent, same = of_layer(rows, "independent"), of_layer(rows, "same_sample")
    dimensions = sorted(rows["dimension"].unique())
    colors, symbols = ordered_colors(dimensions), markers(dimensions)
    figure = Figure(figsize=(COLUMN_WIDTH, 5.6), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    panels = (
        (independent, "mse", "predicted_mse", "second layer from an independent sample"),
        (same, "mse", "predicted_mse", "second layer from the same sample, as published"),
        (independent, "feature_overlap", "predicted_overlap", "first layer"),
    )
    for axis, letter, (table, measured, predicted, title) in zip(axes, "abc", panels, strict=True):
        for rank, dimension in enumerate(dimensions):
            of_dimension = table[table["dimension"] == dimension]
            draw_curve(
                axis, of_dimension, measured, predicted, place=(rank, len(dimensions)),
                exponent_axis=True, confidence=confidence, logarithmic=measured == "mse",
                color=colors[dimension], marker=symbols[dimension],
            )  # fmt: skip
        axis.set_title(f"({letter}) {title}")
    limits = axes[2].get_xlim()
    for axis in axes[:2]:
        draw_tail_sum(axis, rows[rows["dimension"] == dimensions[-1]])
        axis.set_ylabel(r"test MSE / Var($y$)")
        finish_logarithmic(axis)
    axes[2].set(xlim=limits, ylim=(-0.03, 1.03), ylabel="feature overlap (fraction)")
    axes[2].set_xlabel(r"sample size, $\log n\,/\log d$")
    handles = [
        *size_handles(rows, colors, symbols),
        kind_handle("sharp theory", linewidth=0.9),
        kind_handle(r"tail sum, largest $d$", linewidth=0.8, linestyle=STEPS),
    ]
    title = f"{describe(rows)}, {rows['readout'].iloc[0]} readout"
    figure.legend(handles=handles, title=title, loc="outside upper center", ncols=2)
    return figure


def draw_tail_sum(axis: Axes, rows: pd.DataFrame) -> None:
    """The paper's tail sum of one d as faint steps, as far down as the measured errors go."""
    limits, _, tails = staircases(rows)
    dimension = float(rows["dimension"].iloc[0])
    floor = 0.5 * float(rows[["mse", "predicted_mse"]].min().min())
    n = np.concatenate([[min(float(rows["sample_size"].min()), limits[0])], limits])
    heights = np.maximum(np.concatenate([[1.0], tails]), floor)
    x = np.log(n) / np.log(dimension)
    axis.step(x, heights, where="post", color=FAINT, linestyle=STEPS, linewidth=0.8, zorder=0)
