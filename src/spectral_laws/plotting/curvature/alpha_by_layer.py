"""The exponent alpha of every layer, in depth order."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from spectral_laws.palette import FAINT, GROUP_COLORS
from spectral_laws.plotting.curvature.layer_panels import layer_panels, layers_by_model
from spectral_laws.plotting.curvature.panels import (
    NO_FIT,
    group_handles,
    main_rows,
    median_handle,
    reference,
    seed_medians,
    some_fits,
)
from spectral_laws.plotting.marks import bar_lengths
from spectral_laws.plotting.style import SMALL, styled, widened
from spectral_laws.plotting.tables import groups, plural, seed_count, shorten

PAPER_ALPHAS = {
    "convolution": (1.93, 2.17), "attention": (1.3, 1.3), "MLP block": (0.84, 1.0),
    "head": (2.0, 4.5),
}  # fmt: skip
"""Of the paper: smallest and largest mean or median of a family."""
_SUMMARY = "median over layers"
_ROW = 0.135


@styled
def draw(exponents: pd.DataFrame, experiments: pd.DataFrame, *, confidence: float = 0.95) -> Figure:
    """The exponent of h ~ sigma^alpha per layer with its bootstrap interval, one panel per model.

    Layers run from input (top) to output. The seeds of a layer stand one below the other; dashed
    lines stand at alpha = 1 and 2. A layer and seed without a fit is a cross at the left edge, with
    the number of usable entries on the right. The first panel has the median over layers of each
    family, mean over seeds with Student's interval, on the paper's range.
    """
    rows = main_rows(exponents, experiments, name="exponents")
    fits = some_fits(rows, name="exponents")
    summary = _medians(fits, confidence)
    layers = {_SUMMARY: summary["name"].tolist()} | layers_by_model(rows)
    figure, axes = layer_panels(layers, row=_ROW, header=0.75)
    seeds = sorted(rows["seed"].unique())
    low, high = widened([*fits["alpha"], 1, 2], [fits["alpha_low"], fits["alpha_high"]])
    _draw_medians(axes[_SUMMARY], summary)
    for model, axis in axes.items():
        if model != _SUMMARY:
            _draw_model(axis, rows[rows["model"] == model], layers[model], seeds)
        axis.set_xlim(low - 0.06 * (high - low), high)  # room for the crosses on the left
        axis.xaxis.set_major_locator(MultipleLocator(1))
    figure.supxlabel(
        r"$\alpha$ of $h_k \sim \sigma_k^{\alpha}$ ($h_k$: directional curvature)", fontsize=7
    )
    figure.legend(handles=_handles(rows), loc="outside upper center", ncols=3 + (len(axes) > 3))
    return figure


def _medians(fits: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Median over layers by family, of attention and MLP blocks also by network."""
    blocks = fits["group"].isin(["attention", "MLP block"])
    name = fits["group"].where(~blocks, fits["group"] + ", " + fits["model"].map(shorten))
    medians = seed_medians(fits.assign(name=name), ["group", "name"], "alpha",
                           confidence=confidence)  # fmt: skip
    order = medians["group"].map([*GROUP_COLORS].index)
    return medians.loc[order.sort_values(kind="stable").index].reset_index(drop=True)


def _draw_medians(axis: Axes, summary: pd.DataFrame) -> None:
    """Large points with intervals over seeds, on the range that the paper has."""
    reference(axis, 1, 2, horizontal=False)
    bars = bar_lengths(summary)
    for y, (_, row) in enumerate(summary.iterrows()):
        axis.errorbar(
            row["centre"], y, xerr=bars[:, [y]], fmt="o", color=GROUP_COLORS[row["group"]],
            markersize=3.8, markeredgecolor="black", ecolor="black", elinewidth=0.8, capsize=1.6,
            zorder=4,
        )  # fmt: skip
        if row["group"] in PAPER_ALPHAS:
            low, high = PAPER_ALPHAS[row["group"]]
            axis.plot([low - 0.02, high + 0.02], [y, y], color="0.7", linewidth=6,
                      solid_capstyle="butt", zorder=1)  # fmt: skip
    axis.set_title(_SUMMARY)


def _draw_model(axis: Axes, rows: pd.DataFrame, layers: list[str], seeds: list[int]) -> None:
    place = {layer: i for i, layer in enumerate(layers)}
    shifts = dict(zip(seeds, np.linspace(-0.36, 0.36, len(seeds) + 2)[1:-1], strict=True))
    reference(axis, 1, 2, horizontal=False)
    for (seed, group), part in groups(rows, "seed", "group"):
        y = part["layer"].map(place).to_numpy() + shifts[seed]
        fit = (part["status"] == "fit").to_numpy()
        good = part[fit]
        axis.errorbar(
            good["alpha"].to_numpy(np.float64), y[fit], xerr=bar_lengths(good, "alpha"),
            linestyle="none", marker="o", markersize=1.7, markeredgewidth=0,
            color=GROUP_COLORS[group], elinewidth=0.45, capsize=0,
        )  # fmt: skip
        axis.plot(
            np.full((~fit).sum(), 0.015), y[~fit], "x", color=GROUP_COLORS[group], markersize=2.2,
            transform=axis.get_yaxis_transform(),
        )  # fmt: skip
    for (layer,), part in groups(rows[rows["status"] != "fit"], "layer"):
        used = sorted(part["n_used"].astype(int).unique())
        text = f"n = {used[0]}" if len(used) == 1 else f"n = {used[0]}-{used[-1]}"
        axis.text(
            1.01, place[layer], text, transform=axis.get_yaxis_transform(), va="center",
            fontsize=SMALL, color="0.35",
        )  # fmt: skip
    model = shorten(str(rows["model"].iloc[0]))
    axis.set_title(f"{model}: {plural(len(layers), 'layer')}, {seed_count(rows)}")


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    handles = group_handles(rows)
    handles += [
        median_handle("median, interval over seeds"),
        Line2D([], [], color="0.7", linewidth=5, solid_capstyle="butt", label="paper"),
    ]
    if (rows["status"] != "fit").any():
        handles.append(Line2D([], [], color=FAINT, marker="x", linestyle="none", label=NO_FIT))
    return handles
