"""The exponent alpha of every layer, in depth order."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spectral_laws.errors import DataError
from spectral_laws.plotting.curvature_layer_panels import layer_panels, layers_by_model
from spectral_laws.plotting.curvature_panels import (
    GROUP_COLORS,
    LAYER,
    check_roles,
    fitted,
    group_handles,
    main_rows,
    reference,
)
from spectral_laws.plotting.style import FAINT, SMALL, styled, widened
from spectral_laws.plotting.tables import groups, plural, seed_count, shorten

_COLUMNS = (*LAYER, "final", "status", "n_used", "alpha", "alpha_low", "alpha_high")
_ROW = 0.135


@styled
def draw_curvature_alpha_by_layer(exponents: pd.DataFrame, experiments: pd.DataFrame) -> Figure:
    """The exponent of h ~ sigma^alpha per layer with its bootstrap interval, one panel per model.

    Layers run from input (top) to output. The seeds of a layer stand one below the other; dashed
    lines stand at alpha = 1 and 2. A layer and seed without a fit is a cross at the left edge,
    with the number of usable entries on the right.

    Args:
        exponents: table of ``fit_exponents``; final rows of the experiment ``architectures`` are
            drawn.
        experiments: table of ``compare_models``, which names those models.

    Raises:
        DataError: if a column is missing or no row has a fit.
    """
    rows = check_roles(exponents, _COLUMNS, name="exponents")
    rows = main_rows(rows, experiments, name="exponents")
    fits = fitted(rows)
    if fits.empty:
        raise DataError("exponents table: no row has a fit, nothing to draw")
    layers = layers_by_model(rows)
    figure, axes = layer_panels(layers, row=_ROW, header=0.55)
    seeds = sorted(rows["seed"].unique())
    low, high = widened([*fits["alpha"], 1, 2], [fits["alpha_low"], fits["alpha_high"]])
    for model, axis in axes.items():
        _draw_model(axis, rows[rows["model"] == model], layers[model], seeds)
        axis.set_xlim(low - 0.06 * (high - low), high)  # room for the crosses on the left
    figure.supxlabel(
        r"$\alpha$ of $h_k \sim \sigma_k^{\alpha}$ ($h_k$: directional curvature)", fontsize=7
    )
    figure.legend(handles=_handles(rows), loc="outside upper center", ncols=3 + 3 * (len(axes) > 2))
    return figure


def _draw_model(axis: Axes, rows: pd.DataFrame, layers: list[str], seeds: list[int]) -> None:
    place = {layer: i for i, layer in enumerate(layers)}
    shifts = dict(zip(seeds, np.linspace(-0.36, 0.36, len(seeds) + 2)[1:-1], strict=True))
    reference(axis, 1, 2, horizontal=False)
    for (seed, group), part in groups(rows, "seed", "group"):
        y = part["layer"].map(place).to_numpy() + shifts[seed]
        fit = (part["status"] == "fit").to_numpy()
        good = part[fit]
        centre = good["alpha"].to_numpy()
        # A percentile interval need not hold the estimate; a bar is never drawn inwards.
        ends = [centre - good["alpha_low"], good["alpha_high"] - centre]
        axis.errorbar(
            centre, y[fit], xerr=np.maximum(np.stack(ends), 0), linestyle="none", marker="o",
            markersize=1.7, markeredgewidth=0, color=GROUP_COLORS[group], elinewidth=0.45,
            capsize=0,
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
    axis.set_title(f"{model}: {plural(len(layers), 'layer')}, {seed_count(rows)}", loc="left")


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    handles = group_handles(rows)
    if (rows["status"] != "fit").any():
        label = "no fit (n < 5 entries)"
        handles.append(Line2D([], [], color=FAINT, marker="x", linestyle="none", label=label))
    return handles
