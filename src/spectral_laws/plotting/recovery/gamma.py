"""Test error and feature overlap for several decays of the strengths: the paper's figure 3."""

import pandas as pd
from matplotlib.figure import Figure

from spectral_laws.errors import DataError
from spectral_laws.palette import FEATURES
from spectral_laws.plotting.recovery.panels import (
    draw_curve,
    finish_logarithmic,
    kind_handle,
    of_largest_dimension,
    of_layer,
    seed_range,
)
from spectral_laws.plotting.style import COLUMN_WIDTH, markers, ordered_colors, styled


@styled
def draw(metrics: pd.DataFrame, *, prefix: str = "gamma_", confidence: float = 0.95) -> Figure:
    """Test MSE / Var(y) and feature overlap against log n / log d, one colour per gamma.

    The studies are those whose names start with ``prefix``; they must differ in gamma alone. Points
    are means over seeds of the independent second layer at the largest d (of the MSE: geometric)
    with Student's interval, lines the sharp theory of the Gaussian equivalent.
    """
    rows = gamma_studies(metrics, prefix)
    rows = of_largest_dimension(of_layer(rows, "independent"))
    gammas = sorted(rows["gamma"].unique())
    colors, symbols = ordered_colors(gammas, palette="magma"), markers(gammas)
    figure = Figure(figsize=(COLUMN_WIDTH, 4.3), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    panels = (
        ("mse", "predicted_mse", "second layer from an independent sample"),
        ("feature_overlap", "predicted_overlap", "first layer"),
    )
    for axis, letter, (measured, predicted, title) in zip(axes, "ab", panels, strict=True):
        for rank, gamma in enumerate(gammas):
            draw_curve(
                axis, rows[rows["gamma"] == gamma], measured, predicted,
                place=(rank, len(gammas)), exponent_axis=True, confidence=confidence,
                logarithmic=measured == "mse", color=colors[gamma], marker=symbols[gamma],
            )  # fmt: skip
        axis.set_title(f"({letter}) {title}")
    axes[0].set_ylabel(r"test MSE / Var($y$)")
    finish_logarithmic(axes[0])
    axes[1].set(ylim=(-0.03, 1.03), ylabel="feature overlap (fraction)")
    axes[1].set_xlabel(r"sample size, $\log n\,/\log d$")
    handles = [
        kind_handle(rf"$\gamma$ = {gamma:g}", color=colors[gamma], marker=symbols[gamma],
                    linestyle="none")
        for gamma in gammas
    ]  # fmt: skip
    first = rows.iloc[0]
    heading = (
        rf"{FEATURES[first['features']]}, $q$ = {first['degree']}, $d$ = {first['dimension']}, "
        rf"$d_1$ = {first['n_directions']}, {first['readout']} readout, {seed_range(rows)}"
    )
    handles.append(kind_handle("sharp theory", linewidth=0.9))
    figure.legend(handles=handles, title=heading, loc="outside upper center", ncols=4)
    return figure


def gamma_studies(metrics: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Rows of the studies whose names start with ``prefix``.

    Raises:
        DataError: if there are none, or two of them have one gamma or differ in anything else.
    """
    rows = metrics[metrics["study"].str.startswith(prefix)]
    if rows.empty:
        known = ", ".join(dict.fromkeys(metrics["study"]))
        raise DataError(f"metrics table: no study named {prefix}..., there are {known}")
    settings = ["features", "degree", "readout", "noise", "n_directions"]
    for study, table in rows.groupby("study"):
        for setting in settings:
            here, there = (set(t[setting]) for t in (table, rows))
            if here != there:
                raise DataError(
                    f"metrics table: study {study} differs from the others in {setting}"
                )
    pairs = rows[["study", "gamma"]].drop_duplicates()
    if pairs["gamma"].duplicated().any():
        raise DataError(f"metrics table: two studies named {prefix}... have the same gamma")
    return rows
